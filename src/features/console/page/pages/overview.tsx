import type { AttentionObject, OverviewObject, SeriesObject } from '../../wire/console.ts';
import type { PageProps } from '../page-props.ts';
import { Command } from '../parts/command.tsx';
import { Badge, Notice } from '../parts/notice.tsx';
import { Heading } from '../parts/page.tsx';
import { Sentence } from '../parts/time.tsx';
import { hrefTo } from '../router.ts';
import { useData } from '../use-data.ts';
import { Daemon, Issuer, Licenses } from './overview-cards.tsx';
import { Changes, Traffic, Upstream } from './overview-plots.tsx';

const seriesEveryMs = 30_000;

export function Overview({ route, overview: { data, reload } }: PageProps) {
  const range = route.query.get('range') === '30d' ? '30d' : '24h';
  const step = range === '30d' ? 600 : 60;
  const series = useData<SeriesObject>(`/admin/v1/series?step=${step}`, seriesEveryMs);
  if (data === null) return null;
  return (
    <>
      <Heading title="Overview">
        <nav class="choice" aria-label="Time range">
          <Range range="24h" text="24 hours" current={range} />
          <Range range="30d" text="30 days" current={range} />
        </nav>
      </Heading>
      <Attention attention={data.attention} />
      {data.upstream !== null && <Upstream upstream={data.upstream} series={series.data} onDone={reload} />}
      {series.error !== null && series.data === null && <Notice tone="fail">{series.error.message}</Notice>}
      <div class="grid">
        {data.outbox !== null && <Changes outbox={data.outbox} series={series.data} />}
        <Traffic title="Verifies" member="verifies" series={series.data} />
        <Traffic title="Uses" member="uses" series={series.data} />
        <Licenses overview={data} />
        {data.issuer !== null && <Issuer issuer={data.issuer} />}
      </div>
      <Daemon overview={data} />
    </>
  );
}

function Range({ range, text, current }: { range: string; text: string; current: string }) {
  return (
    <a
      href={hrefTo([], { range: range === '24h' ? null : range })}
      aria-current={range === current ? 'true' : undefined}
    >
      {text}
    </a>
  );
}

function Attention({ attention }: { attention: OverviewObject['attention'] }) {
  if (attention.length === 0) return <Notice tone="ok">All is well. Nothing needs you.</Notice>;
  return (
    <section aria-labelledby="attention" class="attention">
      <h2 id="attention">
        {attention.length === 1 ? 'One thing needs you' : `${attention.length} things need you`}
      </h2>
      <ul class="list">
        {attention.map((each) => (
          <AttentionItem key={`${each.code} ${each.text}`} attention={each} />
        ))}
      </ul>
    </section>
  );
}

const levels = { fail: 'Failure', warn: 'Warning' } as const;

function AttentionItem({
  attention: { level, text, advice, command, page },
}: {
  attention: AttentionObject;
}) {
  return (
    <li class="notice" data-tone={level}>
      <div class="attention-text">
        <p>
          <Badge tone={level}>{levels[level]}</Badge>{' '}
          <strong>
            <Sentence text={text} />
          </strong>
        </p>
        <p class="quiet">{advice}</p>
      </div>
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
