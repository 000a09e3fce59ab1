import type { ComponentChildren } from 'preact';
import { count } from '../format.ts';
import type { Pages } from '../use-data.ts';
import { Notice } from './notice.tsx';

export type Column<Item> = {
  readonly name: string;
  readonly cell: (item: Item) => ComponentChildren;
  readonly kind?: 'number' | 'text';
};

/** A value, and quiet words on the line below it. */
export function Lines({ children, below }: { children: ComponentChildren; below: ComponentChildren }) {
  return (
    <>
      {children}
      {below !== null && below !== false && (
        <>
          <br />
          <span class="quiet">{below}</span>
        </>
      )}
    </>
  );
}

/** A list of the daemon, with a button for the next page. `empty` is shown instead of no rows. */
export function ListTable<Item>({
  caption,
  pages,
  columns,
  keyOf,
  empty,
}: {
  caption: string;
  pages: Pages<Item>;
  columns: readonly Column<Item>[];
  keyOf: (item: Item) => string | number;
  empty: ComponentChildren;
}) {
  const { items, error } = pages;
  if (error !== null && items === null) return <Notice tone="fail">{error.message}</Notice>;
  if (items === null) return <p class="quiet">Reading …</p>;
  if (items.length === 0) return <p class="empty">{empty}</p>;
  return (
    <>
      <Table caption={caption} rows={items} columns={columns} keyOf={keyOf} />
      <ListEnd pages={pages} />
    </>
  );
}

/** How much of a list is shown, and a button for the next page. */
export function ListEnd({ pages: { items, total, error, more } }: { pages: Pages<unknown> }) {
  const shown = items?.length ?? 0;
  return (
    <>
      {error !== null && <Notice tone="fail">{error.message}</Notice>}
      <p class="quiet">
        {count(shown)} of {count(total ?? shown)}{' '}
        {more !== null && (
          <button type="button" onClick={more}>
            Show more
          </button>
        )}
      </p>
    </>
  );
}

/**
 * A table that scrolls sideways, also by keyboard. On a narrow screen each row is a block with the names of its
 * values; the roles keep it a table for screen readers.
 */
export function Table<Item>({
  caption,
  rows,
  columns,
  keyOf,
}: {
  caption: string;
  rows: readonly Item[];
  columns: readonly Column<Item>[];
  keyOf: (item: Item) => string | number;
}) {
  return (
    <div class="table" role="region" aria-label={caption} tabIndex={0}>
      <table role="table">
        <caption>{caption}</caption>
        <thead>
          <tr role="row">
            {columns.map(({ name, kind }) => (
              <th key={name} scope="col" role="columnheader" data-kind={kind}>
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={keyOf(row)} role="row">
              {columns.map(({ name, cell, kind }) => (
                <td key={name} data-kind={kind} data-name={name} role="cell">
                  <div>{cell(row)}</div>
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
