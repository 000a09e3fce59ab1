import { Fragment, type ComponentChildren } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { count } from '../format.ts';
import type { Pages } from '../use-data.ts';
import { Notice } from './notice.tsx';

export type Column<Item> = {
  readonly name: string;
  readonly cell: (item: Item) => ComponentChildren;
  /** Quiet words on the line below the value. */
  readonly below?: (item: Item) => ComponentChildren;
  /** Numbers are aligned. On a narrow screen, both have their name. */
  readonly kind?: 'number' | 'named';
  /**
   * On a narrow screen, `main` and `side` are the first line of a row, and the rest is below it and begins with `below`.
   * `wide`: left out there. Absent in all columns: the first is `main`.
   */
  readonly place?: 'main' | 'side' | 'below' | 'wide';
  /** What is below `main` is shown there, too. */
  readonly keepsBelow?: boolean;
};

/** A list of the daemon, with a button for the next page. `empty` is shown instead of no rows. */
export function ListTable<Item>({
  pages,
  empty,
  ...table
}: Omit<TableProps<Item>, 'rows'> & { pages: Pages<Item>; empty: ComponentChildren }) {
  const { items, error } = pages;
  if (error !== null && items === null) return <Notice tone="fail">{error.message}</Notice>;
  if (items === null) return <p class="quiet">Reading …</p>;
  if (items.length === 0) return <p class="empty">{empty}</p>;
  return (
    <>
      <Table rows={items} {...table} />
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

type TableProps<Item> = {
  caption: string;
  rows: readonly Item[];
  columns: readonly Column<Item>[];
  keyOf: (item: Item) => string | number;
  /** What a person can do with a row; null: nothing. */
  actions?: ((item: Item) => ComponentChildren) | undefined;
};

const narrow = matchMedia('(max-width: 600px)');

function useNarrow(): boolean {
  const [isNarrow, setNarrow] = useState(narrow.matches);
  useEffect(() => {
    const update = (): void => setNarrow(narrow.matches);
    narrow.addEventListener('change', update);
    return () => narrow.removeEventListener('change', update);
  }, []);
  return isNarrow;
}

/** A table that scrolls sideways, also by keyboard; on a narrow screen, a list. */
export function Table<Item>(props: TableProps<Item>) {
  return useNarrow() ? <Rows {...props} /> : <WideTable {...props} />;
}

function WideTable<Item>({ caption, rows, columns, keyOf, actions }: TableProps<Item>) {
  const all = actions === undefined ? columns : [...columns, { name: 'Actions', cell: actions }];
  return (
    <div class="table" role="region" aria-label={caption} tabIndex={0}>
      <table>
        <caption>{caption}</caption>
        <thead>
          <tr>
            {all.map(({ name, kind }) => (
              <th key={name} scope="col" data-kind={kind}>
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={keyOf(row)}>
              {all.map(({ name, cell, below, kind }) => (
                <td key={name} data-kind={kind}>
                  <div>{cell(row)}</div>
                  <Below>{below?.(row)}</Below>
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Below({ children }: { children: ComponentChildren }) {
  return isNothing(children) ? null : <div class="quiet">{children}</div>;
}

function isNothing(content: ComponentChildren): boolean {
  return content === null || content === undefined || content === false || content === '';
}

function Rows<Item>({ caption, rows, columns, keyOf, actions }: TableProps<Item>) {
  return (
    <section class="rows" aria-label={caption}>
      <p class="quiet">{caption}</p>
      <ul>
        {rows.map((row) => (
          <Row key={keyOf(row)} row={row} columns={columns} actions={actions?.(row) ?? null} />
        ))}
      </ul>
    </section>
  );
}

function Row<Item>({
  row,
  columns,
  actions,
}: {
  row: Item;
  columns: readonly Column<Item>[];
  actions: ComponentChildren;
}) {
  const [isOpen, setOpen] = useState(false);
  const main = columns.find(({ place }) => place === 'main') ?? columns[0];
  const side = columns.find(({ place }) => place === 'side');
  const rest = columns.filter((column) => column !== main && column.place === undefined);
  const below =
    main?.keepsBelow === true ? main.below?.(row) : columns.find(({ place }) => place === 'below')?.cell(row);
  const parts = rest.map(({ name, kind, cell }) => {
    const value = cell(row);
    if (isNothing(value)) return null;
    return kind === undefined ? value : [`${name.toLowerCase()} `, value];
  });
  const belowMain = [below, ...parts].filter((part) => !isNothing(part));
  return (
    <li>
      <div class="row">
        <div class="row-main">{main?.cell(row)}</div>
        <div>{side?.cell(row)}</div>
        {actions !== null && (
          <button type="button" aria-label="Actions" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
            ⋯
          </button>
        )}
      </div>
      <p class="quiet">
        {belowMain.map((part, index) => (
          <Fragment key={index}>
            <span>
              {part}
              {index < belowMain.length - 1 && ' ·'}
            </span>{' '}
          </Fragment>
        ))}
      </p>
      {isOpen && actions}
    </li>
  );
}
