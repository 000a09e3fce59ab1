import { monitorEventLoopDelay } from 'node:perf_hooks';
import { Counter, Gauge, Histogram, Registry } from 'prom-client';
import type { FastifyInstance } from 'fastify';
import type { Licensing } from '../service/answers.ts';
import type { OutboxStatus, Status, Totals, UpstreamMeter, UpstreamStatus } from '../service/status.ts';
import type { CommitMeasure } from './threads/writer-message.ts';

const freshnesses = ['authoritative', 'fresh', 'stale', 'grace', 'expired'] as const;
const outcomes = ['applied', 'not_applied', 'ambiguous'] as const;
/** What waits or needs a look; what is finished is no depth. */
const outboxStates = ['pending', 'in_flight', 'uncertain', 'inferred', 'conflicted', 'dead'] as const;
const breakerStates = { closed: 0, half_open: 1, open: 2 } as const;

/** In seconds: a verify takes less than a millisecond, and a caller may wait 30 seconds for the upstream. */
const requestBuckets = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];
const commitBuckets = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5];
const batchBuckets = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512];

/** How often the delay of the event loop is measured, in ms; it is itself a part of what is measured. */
const resolutionMs = 20;

/** What a request counts as whose caller left before the answer; the status that nginx logs then. */
const callerLeft = 499;

type Sample = { labels?: Record<string, string>; value: number };
type ReadSamples = (status: Status, isStorageFull: boolean) => readonly Sample[];

/** Everything that this process measures, in a registry of its own (src/http/README.md, Health and status). */
export class Metrics implements UpstreamMeter, Disposable {
  readonly #registry = new Registry();
  readonly #gauges: { gauge: Gauge; read: ReadSamples }[] = [];
  readonly #eventLoop: ReturnType<typeof monitorEventLoopDelay> = monitorEventLoopDelay({
    resolution: resolutionMs,
  });
  readonly #requests: Counter<'route' | 'status'>;
  readonly #requestDuration: Histogram;
  readonly #verdicts: Counter<'freshness' | 'enabled'>;
  readonly #upstreamRequests: Counter<'outcome'>;
  readonly #totals = { verifies: 0, uses: 0 };
  readonly #unexpected: Counter;
  readonly #commitDuration: Histogram;
  readonly #commitSize: Histogram;

  constructor({ role, isSecure }: { role: Status['role']; isSecure: boolean }) {
    this.#requests = this.#counter('requests_total', 'Requests answered.', ['route', 'status']);
    this.#requestDuration = this.#histogram(
      'request_duration_seconds',
      'To the end of the answer.',
      requestBuckets,
    );
    this.#verdicts = this.#counter('verdicts_total', 'Verifies answered.', ['freshness', 'enabled']);
    this.#upstreamRequests = this.#counter('upstream_requests_total', 'Requests sent upward.', ['outcome']);
    this.#unexpected = this.#counter('unexpected_delta_total', 'Counts that another writer changed.', []);
    this.#commitDuration = this.#histogram(
      'commit_duration_seconds',
      'To the end of the commit.',
      commitBuckets,
    );
    this.#commitSize = this.#histogram('commit_batch_size', 'Writes in one commit.', batchBuckets);
    this.#registerGauges();
    if (isSecure) this.#registerCertificate();
    if (role === 'agent') this.#registerUpstream();
    this.#startAtZero();
    this.#eventLoop.enable();
  }

  /** Counts the requests of a server by the patterns of its routes: a path may hold a license key. */
  watch(server: FastifyInstance): void {
    server.addHook('onResponse', (request, reply, done) => {
      const route = request.is404 ? 'none' : (request.routeOptions.url ?? 'none');
      const status = reply.raw.writableFinished ? reply.statusCode : callerLeft;
      this.#requests.inc({ route, status });
      this.#requestDuration.observe(reply.elapsedTime / 1000);
      done();
    });
  }

  /** Counts an answer to bytes that could not be parsed as a request. */
  countUnrouted(status: number): void {
    this.#requests.inc({ route: 'none', status });
  }

  /** The same licensing, with every verify and every use that it answers counted. */
  countVerdicts(licensing: Licensing): Licensing {
    return {
      change: async (request, signal) => {
        const result = await licensing.change(request, signal);
        if (result.ok && request.trigger === 'usage') this.#totals.uses += 1;
        return result;
      },
      history: (...asked) => licensing.history(...asked),
      verify: async (...asked) => {
        const result = await licensing.verify(...asked);
        if (result.ok) {
          this.#totals.verifies += 1;
          const { provenance, license } = result.value;
          this.#verdicts.inc({ freshness: provenance.freshness, enabled: String(license.enabled) });
        }
        return result;
      },
    };
  }

  /** What was answered since the start. */
  totals(): Totals {
    return { ...this.#totals };
  }

  answered(outcome: (typeof outcomes)[number]): void {
    this.#upstreamRequests.inc({ outcome });
  }

  unexpected(): void {
    this.#unexpected.inc();
  }

  committed({ durationMs, size }: CommitMeasure): void {
    this.#commitDuration.observe(durationMs / 1000);
    this.#commitSize.observe(size);
  }

  /** In Prometheus' text format. */
  async expose(status: Status, isStorageFull: boolean): Promise<string> {
    for (const { gauge, read } of this.#gauges) {
      for (const { labels = {}, value } of read(status, isStorageFull)) gauge.set(labels, value);
    }
    this.#eventLoop.reset();
    return await this.#registry.metrics();
  }

  [Symbol.dispose](): void {
    this.#eventLoop.disable();
  }

  #registerGauges(): void {
    this.#gauge('info', 'Always 1.', ['version', 'role'], ({ version, role }) => [
      { labels: { version, role }, value: 1 },
    ]);
    this.#gauge('records', 'License keys known here.', ['freshness'], ({ records }) =>
      Object.entries(records).map(([freshness, value]) => ({ labels: { freshness }, value })),
    );
    this.#gauge('clock_suspect', '1: the clock of this machine is not to be trusted.', [], ({ clock }) => [
      { value: Number(clock.suspect) },
    ]);
    this.#gauge('storage_full', '1: the disk is full, and changes are refused.', [], (_, isFull) => [
      { value: Number(isFull) },
    ]);
    const lag = 'The longest that the event loop was held up since the last scrape.';
    this.#gauge('event_loop_lag_seconds', lag, [], () => [
      { value: Math.max(0, this.#eventLoop.max / 1e9 - resolutionMs / 1000) },
    ]);
  }

  #registerCertificate(): void {
    const help = 'When the certificate of the TCP listener ends.';
    this.#gauge('tls_certificate_expiry_timestamp_seconds', help, [], ({ listeners: { tls } }) =>
      tls === null ? [] : [{ value: tls.notAfter / 1000 }],
    );
  }

  #registerUpstream(): void {
    const ofUpstream = (name: string, help: string, value: (upstream: UpstreamStatus) => number): void => {
      this.#gauge(`upstream_${name}`, help, [], ({ upstream }) =>
        upstream === null ? [] : [{ value: value(upstream) }],
      );
    };
    ofUpstream('up', '1: the upstream answered the last request.', ({ state }) => Number(state === 'up'));
    ofUpstream('breaker_state', '0: closed, 1: half open, 2: open.', ({ breaker }) => breakerStates[breaker]);
    const lastSuccess = 'When the upstream last answered; 0: not since the start.';
    ofUpstream(
      'last_success_timestamp_seconds',
      lastSuccess,
      ({ lastSuccessAt }) => (lastSuccessAt ?? 0) / 1000,
    );
    this.#gauge('outbox_operations', 'Changes on their way, or to be looked at.', ['state'], ({ outbox }) =>
      outbox === null ? [] : outboxSamples(outbox),
    );
    const held = 'Changes whose fate only a person can decide; they count as uncertain, too.';
    this.#gauge('outbox_held', held, [], ({ outbox }) => [{ value: outbox?.held ?? 0 }]);
    const oldest = 'Age of the oldest change on its way; 0: there is none.';
    this.#gauge('outbox_oldest_age_seconds', oldest, [], ({ outbox }) => [
      { value: (outbox?.oldestAgeMs ?? 0) / 1000 },
    ]);
  }

  /** A rate can only be told of a series that was there before. */
  #startAtZero(): void {
    for (const outcome of outcomes) this.#upstreamRequests.inc({ outcome }, 0);
    for (const freshness of freshnesses) {
      for (const enabled of ['true', 'false']) this.#verdicts.inc({ freshness, enabled }, 0);
    }
  }

  #counter<Label extends string>(name: string, help: string, labelNames: Label[]): Counter<Label> {
    return new Counter({ name: `latchkey_${name}`, help, labelNames, registers: [this.#registry] });
  }

  #histogram(name: string, help: string, buckets: number[]): Histogram {
    return new Histogram({ name: `latchkey_${name}`, help, buckets, registers: [this.#registry] });
  }

  #gauge(name: string, help: string, labelNames: string[], read: ReadSamples): void {
    const gauge = new Gauge({ name: `latchkey_${name}`, help, labelNames, registers: [this.#registry] });
    this.#gauges.push({ gauge, read });
  }
}

function outboxSamples({ depth }: OutboxStatus): readonly Sample[] {
  return outboxStates.map((state) => ({ labels: { state }, value: depth[state] }));
}
