import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import type { OverviewObject } from '../../wire/console.ts';
import type { ExplainedOperation } from '../../../../wire/operation.ts';
import { count, counted, shownKey } from '../format.ts';
import type { PageProps } from '../page-props.ts';
import { SameCommand } from '../parts/command.tsx';
import { Choice, type Filter } from '../parts/filter.tsx';
import { Notice } from '../parts/notice.tsx';
import { Heading } from '../parts/page.tsx';
import { Search } from '../parts/search.tsx';
import { ListEnd } from '../parts/table.tsx';
import { Time } from '../parts/time.tsx';
import { hrefTo } from '../router.ts';
import { usePages, type Pages } from '../use-data.ts';
import { Change, ChangePage, changeText, stateNames } from './outbox-change.tsx';
import {
  BulkDecisions,
  filterOptions,
  filterPath,
  type Decision,
  type OutboxFilter,
} from './outbox-decisions.tsx';

/** Changes that have not reached the upstream. */
export function Outbox({ route, overview }: PageProps) {
  const [, id] = route.path;
  if (id !== undefined) return <ChangePage id={id} />;
  return <ChangeList query={route.query} outbox={overview.data?.outbox ?? null} />;
}

type OutboxCounts = OverviewObject['outbox'];

const pageSize = 25;

function ChangeList({ query, outbox }: { query: URLSearchParams; outbox: OutboxCounts }) {
  const filter: OutboxFilter = {
    state: query.get('state') ?? '',
    licenseKey: query.get('key') ?? '',
    search: query.get('search') ?? '',
  };
  const pages = usePages<ExplainedOperation>(filterPath(filter, pageSize), 'operations');
  const isOutdated = useOutdated(outbox, pages);
  const [said, setSaid] = useState({ text: '' });
  const onDecided = (operation: ExplainedOperation, decision: Decision): void => {
    setSaid({ text: `${changeText(operation)}: ${results[decision]}.` });
    pages.reload();
  };
  return (
    <>
      <Heading title="Outbox">
        {filter.search === '' && (pages.total ?? 0) > 0 && (
          <BulkDecisions filter={filter} total={pages.total ?? 0} onDone={pages.reload} />
        )}
      </Heading>
      <Summary outbox={outbox} />
      <Choice path={['outbox']} query={query} name="state" label="State" choices={choicesOf(outbox)} />
      {filter.licenseKey === '' ? (
        <Search
          path={['outbox']}
          query={query}
          name="search"
          label="Part of a license key, a coupon code, an order or an e-mail address"
        />
      ) : (
        <p>
          Only changes of <code>{shownKey(filter.licenseKey)}</code>.{' '}
          <a href={hrefTo(['outbox'], { state: filter.state })}>Show all</a>
        </p>
      )}
      <Said said={said} />
      {isOutdated && (
        <Notice tone="quiet">
          The outbox has changed.{' '}
          <button type="button" onClick={pages.reload}>
            Show the changes
          </button>
        </Notice>
      )}
      <Changes pages={pages} filter={filter} onDecided={onDecided} />
      <SameCommand line={`latchkey outbox list${filterOptions(filter)}`} />
    </>
  );
}

/** What was done. It gets the focus: the change may leave the list, and with it the button that had the focus. */
function Said({ said }: { said: { text: string } }) {
  const status = useRef<HTMLParagraphElement>(null);
  useLayoutEffect(() => {
    if (said.text !== '') status.current?.focus();
  }, [said]);
  return (
    <p ref={status} tabIndex={-1} role="status" class="said">
      {said.text}
    </p>
  );
}

const results: Readonly<Record<Decision, string>> = {
  retry: 'it is sent again',
  drop: 'given up',
  confirm: 'it counts as delivered',
};

/** Reads the list again when the counts change. A person who reads further pages, or has a dialog open, is asked. */
function useOutdated(outbox: OutboxCounts, { items, reload }: Pages<ExplainedOperation>): boolean {
  const counts = JSON.stringify(outbox);
  const shown = useRef(counts);
  const [isOutdated, setOutdated] = useState(false);
  useEffect(() => {
    // The list was read: it is as new as the counts.
    shown.current = counts;
    setOutdated(false);
  }, [items]);
  useEffect(() => {
    if (counts === shown.current) return;
    shown.current = counts;
    const isBusy = (items?.length ?? 0) > pageSize || document.querySelector('dialog[open]') !== null;
    if (isBusy) setOutdated(true);
    else reload();
  }, [counts]);
  return isOutdated;
}

function Summary({ outbox }: { outbox: OutboxCounts }) {
  if (outbox === null) return null;
  const waiting = outbox.pending + outbox.in_flight + outbox.uncertain;
  const forPerson = outbox.held + outbox.conflicted + outbox.dead;
  return (
    <p>
      {waiting === 0 ? 'No change waits' : counted(waiting, 'change waits', 'changes wait')} for the upstream
      {outbox.oldest_at !== null && (
        <>
          ; the oldest was recorded <Time at={outbox.oldest_at} />
        </>
      )}
      .{' '}
      {forPerson > 0 && <strong>{counted(forPerson, 'change needs', 'changes need')} your decision.</strong>}
    </p>
  );
}

const countedStates = [
  'pending',
  'in_flight',
  'uncertain',
  'conflicted',
  'dead',
  'inferred',
  'delivered',
] as const;
const otherStates = ['dropped', 'cancelled'] as const;

function choicesOf(outbox: OutboxCounts): NonNullable<Filter['choices']> {
  const texts = countedStates.map((state) => {
    const number = outbox?.[state] ?? 0;
    return [state, number > 0 ? `${stateNames[state]} ${count(number)}` : stateNames[state]] as const;
  });
  return [['', 'unfinished'], ...texts, ...otherStates.map((state) => [state, stateNames[state]] as const)];
}

function Changes({
  pages,
  filter,
  onDecided,
}: {
  pages: Pages<ExplainedOperation>;
  filter: OutboxFilter;
  onDecided: (operation: ExplainedOperation, decision: Decision) => void;
}) {
  const { items, error } = pages;
  if (error !== null && items === null) return <Notice tone="fail">{error.message}</Notice>;
  if (items === null) return <p class="quiet">Reading …</p>;
  if (items.length === 0)
    return (
      <p class="empty">
        {filter.state === '' && filter.licenseKey === '' && filter.search === ''
          ? 'The outbox is empty: all changes have reached the upstream.'
          : 'No change fits this filter.'}
      </p>
    );
  return (
    <>
      <ul class="list">
        {items.map((operation) => (
          <Change key={operation.id} operation={operation} onDecided={onDecided} />
        ))}
      </ul>
      <ListEnd pages={pages} />
    </>
  );
}
