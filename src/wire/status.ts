import { z } from 'zod';
import { formatDatetime } from '../domain/datetime.ts';
import type { OutboxStatus, Status, UpstreamStatus } from '../service/status.ts';
import { oneOf } from './types.ts';
import { parameters, type ParameterSet } from './parameters.ts';

const instant = z.iso.datetime({ offset: true });
const count = z.int().min(0);

const upstreamObject = z
  .object({
    state: z.enum(['up', 'down', 'paused', 'unknown']),
    since: instant,
    protocol: z.enum(['plain', 'latchkey']),
    breaker: z.enum(['closed', 'open', 'half_open']),
    last_success_at: instant.nullable(),
    last_error: z.string().nullable(),
    last_error_at: instant.nullable(),
    // Since when nothing of the last error is left; null: it is not over.
    recovered_at: instant.nullable(),
    // Until when the upstream asked to be left alone (Retry-After); null: it did not, or that is over.
    retry_after: instant.nullable(),
    // When the upstream, which is away, is asked again; null: it is not away, or it is being asked.
    next_attempt_at: instant.nullable(),
    // The proxy to the upstream, without user and password; null: none is used.
    proxy: z.string().nullable(),
    // Products whose secret the upstream refuses, and whether it refuses the API key: their operations wait.
    paused_products: z.array(z.string()),
    coupons_paused: z.boolean(),
  })
  .meta({ id: 'UpstreamStatus' });

const outboxObject = z
  .object({
    pending: count,
    in_flight: count,
    uncertain: count,
    // Of the uncertain: those that a person must decide.
    held: count,
    inferred: count,
    conflicted: count,
    dead: count,
    // Applied at the upstream within the last seven days, inferred ones left out.
    delivered: count,
    oldest_age_s: count.nullable(),
  })
  .meta({ id: 'OutboxStatus' });

/** The answer of `/admin/v1/sync/…`: two parts of `/statusz`. */
export const syncObject: z.ZodType = z
  .object({ upstream: upstreamObject, outbox: outboxObject })
  .meta({ id: 'Sync' });

/** The schema of `/statusz`, which has no `data` around it. */
export const statusObject: z.ZodType = z
  .object({
    role: z.enum(['authority', 'agent']),
    version: z.string(),
    instance: z.string(),
    uptime_s: count,
    listeners: z
      .object({
        tcp: z.string().nullable(),
        socket: z.string().nullable(),
        // Those of `listen.sockets`.
        sockets: z.array(z.string()),
        // Those of the sockets whose files were removed: nobody can connect there.
        lost: z.array(z.string()),
        // When the certificate ends that `tcp` shows; null: it speaks plain HTTP.
        tls: z.object({ not_after: instant }).meta({ id: 'Certificate' }).nullable(),
      })
      .meta({ id: 'Listeners' }),
    upstream: upstreamObject.nullable(),
    outbox: outboxObject.nullable(),
    // License keys that an operator wants fetched: those that the upstream does not know have failed.
    preload: z.object({ done: count, failed: count, left: count }).meta({ id: 'PreloadProgress' }).nullable(),
    // full, read_only: changes are refused, and reading goes on. damaged: nothing is changed or sent any more.
    // unavailable, slow, refused: a database cannot be used, or not by this process.
    storage: z.enum(['ok', 'full', 'damaged', 'unavailable', 'slow', 'read_only', 'refused']),
    // Null: the database has not told since the start.
    records: z
      .object({ fresh: count, stale: count, grace: count, expired: count, disabled: count })
      .meta({ id: 'Records' })
      .nullable(),
    clock: z.object({ now: instant, suspect: z.boolean(), high_water: instant }).meta({ id: 'Clock' }),
    // Since the start.
    totals: z.object({ verifies: count, uses: count }).meta({ id: 'Totals' }),
  })
  .meta({ id: 'Status' });

/** The body of `/statusz`. */
export function serializeStatus(status: Status): Record<string, unknown> {
  return {
    role: status.role,
    version: status.version,
    instance: status.instance,
    uptime_s: seconds(status.uptimeMs),
    listeners: serializeListeners(status.listeners),
    ...serializeSync(status),
    preload: status.preload,
    storage: status.storage,
    records: status.records,
    clock: {
      now: formatDatetime(status.clock.now),
      suspect: status.clock.suspect,
      high_water: formatDatetime(status.clock.highWater),
    },
    totals: status.totals,
  };
}

function serializeListeners({ tls, ...addresses }: Status['listeners']): Record<string, unknown> {
  return { ...addresses, tls: tls && { not_after: formatDatetime(tls.notAfter) } };
}

/** The two parts about the upstream; both are null on an authority. */
export function serializeSync({ upstream, outbox }: Pick<Status, 'upstream' | 'outbox'>): object {
  return {
    upstream: upstream === null ? null : serializeUpstream(upstream),
    outbox: outbox === null ? null : serializeOutbox(outbox),
  };
}

function serializeUpstream(upstream: UpstreamStatus): Record<string, unknown> {
  return {
    state: upstream.state,
    since: formatDatetime(upstream.since),
    protocol: upstream.protocol,
    breaker: upstream.breaker,
    last_success_at: upstream.lastSuccessAt === null ? null : formatDatetime(upstream.lastSuccessAt),
    last_error: upstream.lastError,
    last_error_at: upstream.lastErrorAt === null ? null : formatDatetime(upstream.lastErrorAt),
    recovered_at: upstream.recoveredAt === null ? null : formatDatetime(upstream.recoveredAt),
    retry_after: upstream.retryAfterUntil === null ? null : formatDatetime(upstream.retryAfterUntil),
    next_attempt_at: upstream.nextAttemptAt === null ? null : formatDatetime(upstream.nextAttemptAt),
    proxy: upstream.proxy,
    paused_products: upstream.pausedProducts,
    coupons_paused: upstream.couponsPaused,
  };
}

function serializeOutbox({ depth, held, oldestAgeMs }: OutboxStatus): Record<string, unknown> {
  return {
    pending: depth.pending,
    in_flight: depth.in_flight,
    uncertain: depth.uncertain,
    held,
    inferred: depth.inferred,
    conflicted: depth.conflicted,
    dead: depth.dead,
    delivered: depth.delivered,
    oldest_age_s: oldestAgeMs === null ? null : seconds(oldestAgeMs),
  };
}

function seconds(ms: number): number {
  return Math.floor(ms / 1000);
}

/** The body of `/livez` and `/readyz`. */
export type HealthObject = { status: 'ok' | 'unavailable'; reasons: readonly string[] };

export const healthObject: z.ZodType<HealthObject> = z
  .object({
    status: z.enum(['ok', 'unavailable']),
    reasons: z.array(z.string()),
  })
  .meta({ id: 'Health' });

/** `GET /readyz`; `fresh` also asks for an upstream that answers. */
export const readinessQuery: ParameterSet<{ require?: 'fresh' | undefined }> = parameters({
  require: oneOf(['fresh']).optional(),
});
