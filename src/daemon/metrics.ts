import { monitorEventLoopDelay } from 'node:perf_hooks';
import { Counter, Gauge, Histogram, Registry } from 'prom-client';
import type { FastifyInstance, FastifyReply } from 'fastify';
import type { Configuration } from '../config/configuration.ts';
import { unanswered } from '../http/response.ts';
import type { LicenseResponse } from '../service/services.ts';
import { type Status, type Totals, type UpstreamMeter } from '../service/status.ts';
import {
  agentGauges,
  certificateGauges,
  processGauges,
  upstreamGauges,
  type GaugeDescription,
  type ProcessSnapshot,
} from './gauges.ts';

const freshnesses = ['authoritative', 'fresh', 'stale', 'grace', 'expired'] as const;
const outcomes = ['applied', 'not_applied', 'ambiguous'] as const;

/** In seconds: a verify takes less than a millisecond, and a caller may wait 30 seconds for the upstream. */
const requestBuckets = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];
export const commitBuckets = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5];
const batchBuckets = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512];

/** How often the delay of the event loop is measured, in ms. The measured delay includes this interval. */
const resolutionMs = 20;

/** Creates the metrics that fit a configuration. */
export function metricsOf({ role, listen }: Configuration): Metrics {
  return new Metrics({
    role,
    isSecure: listen.tls !== null,
  });
}

type MetricsOptions = {
  role: Status['role'];
  isSecure: boolean;
};

/** The metrics of this process, in their own registry (src/http/README.md, Health and status). */
export class Metrics implements UpstreamMeter, Disposable {
  readonly #registry = new Registry();
  readonly #descriptions: GaugeDescription[];
  /** Null: nothing was scraped yet. Most processes have no Prometheus, and it takes 4 ms to make the gauges. */
  #gauges: readonly { gauge: Gauge; read: GaugeDescription['read'] }[] | null = null;
  readonly #eventLoop: ReturnType<typeof monitorEventLoopDelay> = monitorEventLoopDelay({
    resolution: resolutionMs,
  });
  readonly #requests = this.counter('requests_total', 'Requests answered.', ['route', 'status']);
  readonly #requestDuration = this.histogram(
    'request_duration_seconds',
    'To the end of the response.',
    requestBuckets,
  );
  readonly #verdicts = this.counter('verdicts_total', 'Verifies answered.', ['freshness', 'enabled']);
  readonly #upstreamRequests = this.counter('upstream_requests_total', 'Requests sent to the upstream.', [
    'outcome',
  ]);
  readonly #totals = { verifies: 0, uses: 0 };
  readonly #unexpected = this.counter('unexpected_delta_total', 'Counts that another writer changed.', []);
  readonly #commitDuration = this.histogram(
    'commit_duration_seconds',
    'To the end of the commit.',
    commitBuckets,
  );
  readonly #commitSize = this.histogram('commit_batch_size', 'Writes in one commit.', batchBuckets);

  constructor({ role, isSecure }: MetricsOptions) {
    const lag = {
      name: 'event_loop_lag_seconds',
      help: 'The longest delay of the event loop since the last scrape.',
      read: () => [{ value: this.#lag() }],
    };
    this.#descriptions = [
      ...processGauges,
      ...(role === 'holder' ? [] : agentGauges),
      lag,
      ...(isSecure ? certificateGauges : []),
      ...(role === 'agent' ? upstreamGauges : []),
    ];
    this.#startAtZero();
    this.#eventLoop.enable();
  }

  /** Counts the requests of a server by the patterns of its routes: a path may hold a license key. */
  watch(server: FastifyInstance): void {
    server.addHook('onRequest', (_, reply, next) => {
      // Fastify runs no other hook for an aborted response.
      reply.raw.once('close', () => {
        if (!reply.raw.writableFinished) this.#count(reply, unanswered);
      });
      next();
    });
    server.addHook('onResponse', (_, reply, next) => {
      if (reply.raw.writableFinished) this.#count(reply, reply.statusCode);
      next();
    });
  }

  #count({ request, elapsedTime }: FastifyReply, status: number): void {
    const route = request.is404 ? 'none' : (request.routeOptions.url ?? 'none');
    this.#requests.inc({ route, status });
    this.#requestDuration.observe(elapsedTime / 1000);
  }

  /** The start of the time measurement of a response. */
  begin(): number {
    return performance.now();
  }

  /** Counts a response that no hook of the server has seen. */
  countResponse(route: string, status: number, begunAt: number): void {
    this.#requests.inc({ route, status });
    this.#requestDuration.observe((performance.now() - begunAt) / 1000);
  }

  /** Counts a response without a route: to bytes that are not a request, or to a malformed path. */
  countUnrouted(status: number): void {
    this.#requests.inc({ route: 'none', status });
  }

  /** Counts an answered verify. */
  countVerify({ provenance, license }: LicenseResponse): void {
    this.#totals.verifies += 1;
    this.#verdicts.inc({ freshness: provenance.freshness, enabled: String(license.enabled) });
  }

  /** Counts an answered use. A repetition under the same idempotency key counts too. */
  countUse(): void {
    this.#totals.uses += 1;
  }

  /** The numbers of answered verifies and uses since the start. */
  totals(): Totals {
    return { ...this.#totals };
  }

  answered(outcome: (typeof outcomes)[number]): void {
    this.#upstreamRequests.inc({ outcome });
  }

  unexpected(): void {
    this.#unexpected.inc();
  }

  /** `size`: how many writes were committed together, if there are such batches. */
  committed({ durationMs, size }: { durationMs: number; size?: number }): void {
    this.#commitDuration.observe(durationMs / 1000);
    if (size !== undefined) this.#commitSize.observe(size);
  }

  /** Adds gauges, before the first scrape. */
  addGauges(gauges: readonly GaugeDescription[]): void {
    this.#descriptions.push(...gauges);
  }

  /** In Prometheus' text format. */
  async expose(snapshot: ProcessSnapshot): Promise<string> {
    this.#gauges ??= this.#descriptions.map((description) => this.#gauge(description));
    for (const { gauge, read } of this.#gauges) {
      // Something that is gone, such as a product that is no longer configured, has no series.
      gauge.reset();
      // `reset` sets a gauge without labels to 0.
      gauge.remove({});
      for (const { labels = {}, value } of read(snapshot)) gauge.set(labels, value);
    }
    this.#eventLoop.reset();
    return await this.#registry.metrics();
  }

  [Symbol.dispose](): void {
    this.#eventLoop.disable();
  }

  /** The longest delay of the event loop, in seconds. */
  #lag(): number {
    return Math.max(0, this.#eventLoop.max / 1e9 - resolutionMs / 1000);
  }

  /** Prometheus computes a rate only for a series that existed before the first count. */
  #startAtZero(): void {
    for (const outcome of outcomes) this.#upstreamRequests.inc({ outcome }, 0);
    for (const freshness of freshnesses) {
      for (const enabled of ['true', 'false']) this.#verdicts.inc({ freshness, enabled }, 0);
    }
  }

  /** Makes the counter `latchkey_NAME`. */
  counter<Label extends string>(name: string, help: string, labelNames: Label[]): Counter<Label> {
    return new Counter({ name: `latchkey_${name}`, help, labelNames, registers: [this.#registry] });
  }

  histogram(name: string, help: string, buckets: number[]): Histogram {
    return new Histogram({ name: `latchkey_${name}`, help, buckets, registers: [this.#registry] });
  }

  #gauge({ name, help, labels = [], read }: GaugeDescription): {
    gauge: Gauge;
    read: GaugeDescription['read'];
  } {
    const gauge = new Gauge({
      name: `latchkey_${name}`,
      help,
      labelNames: [...labels],
      registers: [this.#registry],
    });
    return { gauge, read };
  }
}
