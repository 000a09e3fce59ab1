import type { OverviewObject, SeriesObject } from '../../wire/console.ts';
import type { UpstreamObject } from '../../../../wire/status.ts';
import { send } from '../api.ts';
import { ProductName } from '../daemon.tsx';
import { count, counted, duration, timeRange } from '../format.ts';
import { Action } from '../parts/action.tsx';
import { Band, meanOf, merged, mostOf, Plot, runsOf, sumOf, TimeAxis, type Span } from '../parts/chart.tsx';
import { Badge, type Tone } from '../parts/notice.tsx';
import { Card, Fields } from '../parts/page.tsx';
import { Time, TimeSince } from '../parts/time.tsx';
import { hrefTo } from '../router.ts';

function spanOf({ start, step_s: step, verifies }: SeriesObject): Span {
  return { startMs: Date.parse(start), stepMs: step * 1000, steps: verifies.length };
}

type UpstreamState = UpstreamObject['state'];

const upstreamTones: Readonly<Record<UpstreamState, Tone>> = {
  up: 'ok',
  down: 'fail',
  paused: 'warn',
  unknown: 'quiet',
};

export function Upstream({
  upstream,
  series,
  onDone,
}: {
  upstream: UpstreamObject;
  series: SeriesObject | null;
  onDone: () => void;
}) {
  const { state, since } = upstream;
  const side = (
    <p>
      <Badge tone={upstreamTones[state]}>{state}</Badge>{' '}
      <span class="quiet">
        for <TimeSince at={since} />
      </span>
    </p>
  );
  return (
    <Card title="Upstream" side={side}>
      {series !== null && <UpstreamBand series={withNow(series, state)} />}
      <div class="upstream">
        <UpstreamFields upstream={upstream} />
        <div class="actions">
          <SyncActions state={state} onDone={onDone} />
        </div>
      </div>
    </Card>
  );
}

/** The last step is not recorded yet: a bad state of this moment is shown at once. */
function withNow(series: SeriesObject, state: UpstreamState): SeriesObject {
  if (state === 'up' || series.upstream.length === 0) return series;
  return { ...series, upstream: [...series.upstream.slice(0, -1), state] };
}

/** The states in the order of the legend. */
const bandStates: readonly UpstreamState[] = ['up', 'paused', 'down', 'unknown'];

function UpstreamBand({ series }: { series: SeriesObject }) {
  const span = spanOf(series);
  const seconds = (of: UpstreamState): number =>
    series.upstream.filter((state) => state === of).length * series.step_s;
  const parts = bandStates.filter((state) => seconds(state) > 0);
  const words = parts.map((state) => `${state} ${duration(seconds(state))}`);
  return (
    <div class="plot">
      <Band
        tones={series.upstream.map((state) => (state === null ? null : upstreamTones[state]))}
        text={words.length === 0 ? 'Nothing was recorded yet.' : words.join(', ')}
      />
      <TimeAxis span={span} />
      <ul class="legend">
        {parts.map((state) => (
          <li key={state} data-tone={upstreamTones[state]}>
            {state} <strong>{duration(seconds(state))}</strong>
          </li>
        ))}
      </ul>
      <Outages series={series} />
    </div>
  );
}

const shownOutages = 3;

/** When the upstream was down, the latest first. */
function Outages({ series: { start, step_s: step, upstream } }: { series: SeriesObject }) {
  const outages = runsOf(upstream).filter(({ state }) => state === 'down');
  if (outages.length === 0) return null;
  const at = (index: number): number => Date.parse(start) + index * step * 1000;
  const latest = outages.slice(-shownOutages).toReversed();
  return (
    <p class="quiet">
      {counted(outages.length, 'outage')}
      {outages.length > shownOutages ? `, the last ${shownOutages}: ` : ': '}
      {latest
        .map(({ from, to }) => `${duration((to - from) * step)}, ${timeRange(at(from), at(to))}`)
        .join('; ')}
      .
    </p>
  );
}

function UpstreamFields({ upstream }: { upstream: UpstreamObject }) {
  const { last_error: error, last_error_at: errorAt, recovered_at: recoveredAt } = upstream;
  return (
    <Fields
      entries={{
        'Last success':
          upstream.last_success_at === null ? 'none yet' : <Time at={upstream.last_success_at} />,
        [recoveredAt === null ? 'Error' : 'Last error']: error !== null && errorAt !== null && (
          <>
            {error}, <Time at={errorAt} />
            {recoveredAt !== null && (
              <>
                ; recovered <Time at={recoveredAt} />
              </>
            )}
          </>
        ),
        'Next attempt': upstream.next_attempt_at !== null && <Time at={upstream.next_attempt_at} />,
        'The store asked to wait': upstream.retry_after !== null && <Time at={upstream.retry_after} />,
        'Refused secrets': upstream.paused_products.length > 0 && (
          <ul class="tags">
            {upstream.paused_products.map((key) => (
              <li key={key}>
                <ProductName of={key} />
              </li>
            ))}
          </ul>
        ),
        'API key': upstream.coupons_paused && 'refused: changes of coupons wait',
        Proxy: upstream.proxy,
        Store: protocolTexts[upstream.protocol],
      }}
    />
  );
}

const protocolTexts: Readonly<Record<UpstreamObject['protocol'], string>> = {
  unknown: 'not known yet whether it is a Latchkey',
  plain: 'no Latchkey',
  latchkey: 'a Latchkey',
};

function SyncActions({ state, onDone }: { state: UpstreamState; onDone: () => void }) {
  if (state === 'paused')
    return (
      <Action
        label="Resume"
        title="Resume sending to the upstream?"
        consequence="The changes that wait are sent, at most as fast as sync.rate allows."
        command="latchkey sync resume"
        run={() => send<void>('POST', '/admin/v1/sync/resume', {})}
        onDone={onDone}
      />
    );
  return (
    <>
      <Action
        label="Send now"
        title="Send all changes that wait now?"
        consequence="Changes that wait after a failed attempt are tried at once. Credentials that the upstream refused are tested again."
        command="latchkey sync now"
        run={() => send<void>('POST', '/admin/v1/sync/now', {})}
        onDone={onDone}
      />
      <Action
        label="Pause"
        title="Pause sending to the upstream?"
        consequence="Nothing is sent to the upstream until somebody resumes. Your software gets answers as during an outage, and no change is lost."
        command="latchkey sync pause"
        run={() => send<void>('POST', '/admin/v1/sync/pause', {})}
        onDone={onDone}
      />
    </>
  );
}

type Outbox = NonNullable<OverviewObject['outbox']>;

/** What waits for the upstream. What needs a decision stands above, with all that needs a person. */
export function Waiting({ outbox, series }: { outbox: Outbox; series: SeriesObject | null }) {
  const waiting = outbox.pending + outbox.in_flight + outbox.uncertain - outbox.held;
  return (
    <Card title="Outbox" side={<a href={hrefTo(['outbox'])}>All changes</a>}>
      <p>
        <span class="figure">{count(waiting)}</span>{' '}
        <span class="quiet">
          {waiting === 1 ? 'change waits' : 'changes wait'} for the upstream
          {waiting > 0 && outbox.oldest_at !== null && (
            <>
              , the oldest for <TimeSince at={outbox.oldest_at} />
            </>
          )}
        </span>
      </p>
      {series !== null && (
        <SeriesPlot series={series} values={series.pending} unit="changes waiting" merge={mostOf} />
      )}
    </Card>
  );
}

/** The sales of the range as bars: of an hour each in a day, and of a day each in a month. */
export function Sales({ shop, series }: { shop: Shop; series: SeriesObject }) {
  const size = series.step_s === 60 ? 60 : 144;
  return (
    <Card title={`Sales in ${rangeOf(series)}`} side={<a href={hrefTo(['purchases'])}>Purchases</a>}>
      <p class="figures">
        <Figure value={sumOf(shop.sales)} one="sale" />
        <Figure value={sumOf(shop.refunds)} one="refund" />
        <Figure value={sumOf(shop.activations)} one="activation" />
      </p>
      <Plot
        span={{
          startMs: Date.parse(shop.start),
          stepMs: series.step_s * 1000 * size,
          steps: shop.sales.length / size,
        }}
        values={merged(shop.sales, size, sumOf)}
        unit="sales"
        isCount
      />
    </Card>
  );
}

type Shop = NonNullable<SeriesObject['shop']>;

function Figure({ value, one }: { value: number; one: string }) {
  return (
    <span>
      <span class="figure">{count(value)}</span> <span class="quiet">{value === 1 ? one : `${one}s`}</span>
    </span>
  );
}

function rangeOf(series: SeriesObject | null): string {
  return series?.step_s === 600 ? '30 days' : '24 hours';
}

export function Traffic({
  title,
  member,
  series,
}: {
  title: string;
  member: 'verifies' | 'uses';
  series: SeriesObject | null;
}) {
  const minutes = (series?.step_s ?? 60) / 60;
  const rates = (series?.[member] ?? []).map((value) => (value === null ? null : value / minutes));
  const sum = (series?.[member] ?? []).reduce<number>((all, value) => all + (value ?? 0), 0);
  return (
    <Card title={`${title} a minute`}>
      <p>
        <span class="figure">{count(rates.findLast((rate) => rate !== null) ?? 0)}</span>{' '}
        <span class="quiet">
          now; {count(sum)} in {rangeOf(series)}
        </span>
      </p>
      {series !== null && <SeriesPlot series={series} values={rates} unit={`${member} a minute`} />}
    </Card>
  );
}

/** A plot has about this many points: more look like noise. */
const points = 288;

function SeriesPlot({
  series,
  values,
  unit,
  merge = meanOf,
}: {
  series: SeriesObject;
  values: readonly (number | null)[];
  unit: string;
  merge?: (values: readonly number[]) => number;
}) {
  const span = spanOf(series);
  const size = Math.max(1, Math.round(values.length / points));
  const steps = Math.ceil(values.length / size);
  return (
    <Plot
      span={{ ...span, stepMs: span.stepMs * size, steps }}
      values={merged(values, size, merge)}
      unit={unit}
    />
  );
}
