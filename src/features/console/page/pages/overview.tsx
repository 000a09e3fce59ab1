import type { AttentionObject, OverviewObject, SeriesObject } from '../../wire/console.ts';
import type { PageProps } from '../page-props.ts';
import { Command } from '../parts/command.tsx';
import { Choice } from '../parts/filter.tsx';
import { Badge, Notice } from '../parts/notice.tsx';
import { Heading } from '../parts/page.tsx';
import { Sentence } from '../parts/time.tsx';
import { useData } from '../use-data.ts';
import { Daemon, Issuer, Licenses } from './overview-cards.tsx';
import { Sales, Traffic, Upstream, Waiting } from './overview-plots.tsx';

const seriesEveryMs = 30_000;

export function Overview({ route, overview: { data, reload } }: PageProps) {
  const range = route.query.get('range') === '30d' ? '30d' : '24h';
  const step = range === '30d' ? 600 : 60;
  const series = useData<SeriesObject>(`/admin/v1/series?step=${step}`, seriesEveryMs);
  if (data === null) return null;
  return (
    <>
      <Heading title="Overview">
        <Choice path={[]} query={route.query} name="range" label="Time range" choices={ranges} />
      </Heading>
      <Attention attention={data.attention} />
      {data.upstream !== null && <Upstream upstream={data.upstream} series={series.data} onDone={reload} />}
      {series.error !== null && series.data === null && <Notice tone="fail">{series.error.message}</Notice>}
      <div class="cards">
        {data.outbox !== null && <Waiting outbox={data.outbox} series={series.data} />}
        {series.data?.shop && <Sales shop={series.data.shop} series={series.data} />}
        <Traffic title="Verifies" member="verifies" series={series.data} />
        <Traffic title="Uses" member="uses" series={series.data} />
        <Licenses overview={data} />
        {data.issuer !== null && <Issuer issuer={data.issuer} />}
        <Daemon overview={data} />
      </div>
    </>
  );
}

const ranges = [
  ['', '24 hours'],
  ['30d', '30 days'],
] as const;

function Attention({ attention }: { attention: OverviewObject['attention'] }) {
  if (attention.length === 0) return <Notice tone="ok">All is well. Nothing needs you.</Notice>;
  return (
    <section aria-labelledby="attention" class="notice attention" data-tone={attention[0]?.level}>
      <h2 id="attention">
        {attention.length === 1 ? 'One thing needs you' : `${attention.length} things need you`}
      </h2>
      <ul>
        {attention.map((each, index) => (
          <AttentionItem
            key={`${each.code} ${each.text}`}
            attention={each}
            // Things with the same advice follow each other.
            hasAdvice={each.advice !== attention[index - 1]?.advice}
          />
        ))}
      </ul>
    </section>
  );
}

const levels = { fail: 'Failure', warn: 'Warning' } as const;

function AttentionItem({
  attention: { level, text, advice, command, page },
  hasAdvice,
}: {
  attention: AttentionObject;
  hasAdvice: boolean;
}) {
  return (
    <li>
      <p class="attention-text">
        <Badge tone={level}>{levels[level]}</Badge>{' '}
        <strong>
          <Sentence text={text} />
        </strong>{' '}
        {hasAdvice && <span class="quiet">{advice}</span>}
      </p>
      <div class="attention-ways">
        {page !== null && (
          <a class="button" href={`#/${page}`}>
            Look at it
          </a>
        )}
        {command !== null && <Command line={command} />}
      </div>
    </li>
  );
}
