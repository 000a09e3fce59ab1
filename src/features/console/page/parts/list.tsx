import type { ComponentChildren } from 'preact';
import { readAll, withQuery } from '../api.ts';
import type { Row } from '../csv.ts';
import { count } from '../format.ts';
import { hrefTo } from '../router.ts';
import { usePages } from '../use-data.ts';
import { Action, Actions, type ActionProps } from './action.tsx';
import { quoted, SameCommand } from './command.tsx';
import { Download } from './download.tsx';
import { Filters, type Filter } from './filter.tsx';
import { Heading, Section } from './page.tsx';
import { ListTable, type Column } from './table.tsx';

/** A page with a list, as data. */
export type List<Item> = {
  readonly title: string;
  /** Between the heading and the list. */
  readonly intro?: ComponentChildren;
  /** The heading over the list, if the page has more than the list. */
  readonly section?: string;
  /** The route of the list, the member of its answer, and how many rows are read at once. */
  readonly from: readonly [route: string, member: string, limit: number];
  /** The command that lists the same. */
  readonly command: string;
  /** The address of the page; its filters are in it. */
  readonly path?: readonly string[];
  readonly filters?: readonly Filter[];
  readonly caption: string;
  readonly keyOf: (item: Item) => string | number;
  readonly columns: readonly Column<Item>[];
  /** What the actions of a row are about, and the actions. */
  readonly nameOf?: (item: Item) => string;
  readonly actions?: (item: Item) => readonly ActionProps[];
  /** A button that reads the list again. */
  readonly canReadAgain?: boolean;
  /** The name of a file with the whole list, and its rows if they are not the items. */
  readonly download?: string;
  readonly downloaded?: (item: Item) => Row;
  /** The action that adds a row. */
  readonly add?: ActionProps | null;
  /** Shown if there is nothing, and if nothing fits the filters. */
  readonly empty: ComponentChildren;
  readonly noMatch?: ComponentChildren;
};

export function ListPage<Item>({
  list,
  query = new URLSearchParams(),
  children,
}: {
  list: List<Item>;
  query?: URLSearchParams;
  /** Below the list. */
  children?: ComponentChildren;
}) {
  const { title, intro, section, path = [], filters = [], canReadAgain = false, add = null } = list;
  const given = filters.flatMap((filter) => {
    const value = query.get(filter.name) ?? '';
    return value === '' ? [] : [{ ...filter, value }];
  });
  const [route, member, limit] = list.from;
  const sent = given.map(({ name, value, sent: send }) => send?.(value) ?? { [name]: value });
  const pages = usePages<Item>(withQuery(route, Object.assign({}, ...sent, { limit: `${limit}` })), member);
  const options = given.map(({ name, value, option }) => option?.(value) ?? `--${name} ${quoted(value)}`);
  const body = (
    <>
      <ListTable
        caption={pages.total === null ? list.caption : `${list.caption}: ${count(pages.total)}`}
        pages={pages}
        columns={list.columns}
        actions={actionsOf(list, pages.reload)}
        keyOf={list.keyOf}
        empty={given.length === 0 ? list.empty : <NoMatch list={list} />}
      />
      <SameCommand line={[list.command, ...options].join(' ')} />
    </>
  );
  return (
    <>
      <Heading title={title}>
        {canReadAgain && (
          <button type="button" onClick={pages.reload}>
            Read again
          </button>
        )}
        {add !== null && <Action isMain onDone={pages.reload} {...add} />}
        {list.download !== undefined && (
          <Download name={list.download} read={() => readRows(list, Object.assign({}, ...sent))} />
        )}
      </Heading>
      {intro}
      <Filters path={path} query={query} filters={filters} />
      {section === undefined ? body : <Section title={section}>{body}</Section>}
      {children}
    </>
  );
}

/** All rows, with the filters of the page. */
async function readRows<Item>(
  { from: [route, member], downloaded }: List<Item>,
  filters: Readonly<Record<string, string | null>>,
): Promise<readonly Row[]> {
  const path = withQuery(route, filters);
  if (downloaded === undefined) return await readAll<Row>(path, member);
  return (await readAll<Item>(path, member)).map(downloaded);
}

function NoMatch({ list: { noMatch, path = [] } }: { list: Pick<List<unknown>, 'noMatch' | 'path'> }) {
  return (
    <>
      {noMatch} <a href={hrefTo(path)}>Show all</a>
    </>
  );
}

function actionsOf<Item>(
  { actions, nameOf }: List<Item>,
  onDone: () => void,
): ((item: Item) => ComponentChildren) | undefined {
  if (actions === undefined) return undefined;
  return (item) => {
    const possible = actions(item);
    return possible.length === 0 ? null : <Actions list={possible} about={nameOf?.(item)} onDone={onDone} />;
  };
}
