import { z } from 'zod';
import { maxCountedMissing, type OutboxStatus, type Status, type UpstreamStatus } from '../service/status.ts';
import { oneOf, instant, parameters } from './parameters.ts';
import { proofObject } from './proof.ts';
import { serializerOf, type ProgramValue } from './shape.ts';

const count = z.int().min(0);

/** The upstream of an agent, a part of `/statusz`. */
export const upstreamObject = z
  .object({
    state: z.enum(['up', 'down', 'paused', 'unknown']),
    since: instant,
    protocol: z
      .enum(['unknown', 'plain', 'latchkey'])
      .describe(
        '`latchkey`: changes are sent under the ids of their operations, and nothing has to be guessed. `unknown`: the upstream has not answered yet.',
      ),
    follows: z
      .array(
        z
          .object({
            product_key: z.string(),
            followed: count.describe('License keys whose changes the upstream sends.'),
            confirmed_at: instant
              .nullable()
              .describe('When the upstream last confirmed all of them; null: it has not answered yet.'),
          })
          .meta({ id: 'FollowedProduct' }),
      )
      .readonly()
      .describe('Empty unless the upstream is a Latchkey.'),
    breaker: z.enum(['closed', 'open', 'half_open']),
    last_success_at: instant.nullable(),
    last_error: z.string().nullable(),
    last_error_at: instant.nullable(),
    recovered_at: instant.nullable().describe('When the last error ended; null while it lasts.'),
    retry_after: instant
      .nullable()
      .describe(
        'Until when the upstream asked for no requests (Retry-After); null if it did not, or no longer.',
      ),
    next_attempt_at: instant
      .nullable()
      .describe(
        'When an unavailable upstream is tried again; null if it is available, or is being tried now.',
      ),
    rate: z.number().optional().describe('The most requests a second (`sync.rate`).'),
    proxy: z
      .string()
      .nullable()
      .describe('The proxy to the upstream, without user and password; null if none is used.'),
    paused_products: z
      .array(z.string())
      .readonly()
      .describe('Products whose secret the upstream refuses: their operations wait.'),
    coupons_paused: z
      .boolean()
      .describe('Whether the upstream refuses the API key: operations on coupons wait.'),
  })
  .meta({ id: 'UpstreamStatus' });

export type UpstreamObject = z.infer<typeof upstreamObject>;

const writeUpstream = serializerOf(upstreamObject);

export function serializeUpstream(upstream: UpstreamStatus): UpstreamObject {
  return writeUpstream(insideUpstream(upstream));
}

export function insideUpstream({
  retryAfterUntil: retryAfter,
  ...same
}: UpstreamStatus): ProgramValue<typeof upstreamObject> {
  return { ...same, retryAfter };
}

export const outboxObject = z
  .object({
    pending: count,
    in_flight: count,
    uncertain: count,
    held: count.describe('The uncertain operations that wait for the decision of a person.'),
    inferred: count,
    conflicted: count,
    dead: count,
    delivered: count.describe(
      'Applied at the upstream, and still stored: for seven days, or for `sync.keep` if the upstream is a Latchkey. Without the inferred ones.',
    ),
    oldest_age_s: count.nullable(),
  })
  .meta({ id: 'OutboxStatus' });

export type OutboxObject = z.infer<typeof outboxObject>;

/** The response of `/admin/v1/sync/…`: two parts of `/statusz`. */
export const syncObject = z.object({ upstream: upstreamObject, outbox: outboxObject }).meta({ id: 'Sync' });

export const leasesObject = z
  .object({
    issuer: z.string(),
    device: z.string().describe('The thumbprint of the key of this device.'),
    last_success_at: instant.nullable(),
    last_error: z.string().nullable(),
    last_error_at: instant.nullable(),
    next_end: instant.nullable().describe('When the first lease ends; null: there is no valid lease.'),
    pending_uses: count.describe('Uses that the issuer has not confirmed.'),
  })
  .meta({ id: 'HeldLeases' });

export type LeasesObject = z.infer<typeof leasesObject>;

export const issuerObject = z
  .object({
    issuer: z.string(),
    version: z.int().describe('The version of the key statement.'),
    kid: z.string().describe('The thumbprint of the key that signs.'),
    waiting: count.describe('Requests that wait for a change of their license.'),
    activations: count
      .nullable()
      .describe('Devices that have asked for seats; null: not read from the database.'),
    not_after: instant.describe('When that key ends.'),
    seats_taken: count.nullable(),
  })
  .meta({ id: 'LeaseIssuer' });

export const storeEventsObject = z
  .object({
    senders: z
      .array(
        z
          .object({
            name: z.string(),
            from: z.string(),
            last_event_at: instant.nullable().describe('When an event with a right signature came.'),
            last_refused_at: instant.nullable(),
            last_refusal: z.enum(['wrong_signature', 'not_understood']).nullable(),
          })
          .meta({ id: 'EventSender' }),
      )
      .readonly(),
    waiting_reads: count.describe('License keys that wait to be read because of an event.'),
  })
  .meta({ id: 'StoreEvents' });

export type StoreEventsObject = z.infer<typeof storeEventsObject>;

const webhooksObject = z
  .object({
    endpoints: count,
    failing: count.describe('Endpoints whose last attempt failed.'),
    paused: count.describe('Endpoints that get nothing until they are resumed.'),
    oldest_at: instant.nullable().describe('When the oldest event that waits happened; null: none waits.'),
  })
  .meta({ id: 'WebhookStatus' });

export const preloadObject = z
  .object({ done: count, failed: count, left: count })
  .meta({ id: 'PreloadProgress' });

export const storageState = z
  .enum(['ok', 'full', 'damaged', 'unavailable', 'slow', 'read_only', 'refused'])
  .describe(
    '`full` and `read_only`: changes are refused, reads still work. `damaged`: nothing is changed or sent. `unavailable`, `slow` and `refused`: the database cannot be used by this process.',
  );

export const recordsObject = z
  .object({ fresh: count, stale: count, grace: count, expired: count, disabled: count })
  .meta({ id: 'Records' });

export const missingObject = z
  .object({
    count: count.describe(`At most ${maxCountedMissing}. Keys that are refused do not count.`),
    since: instant.describe('The first 404 of the upstream.'),
  })
  .meta({ id: 'MissingKeys' });

export const totalsObject = z
  .object({ verifies: count, uses: count })
  .meta({ id: 'Totals' })
  .describe('Since the start of the process.');

/** The schema of `/statusz`, which has no `data` around it. */
export const statusObject = z
  .object({
    role: z.enum(['authority', 'agent', 'holder']),
    version: z.string(),
    instance: z.string(),
    uptime_s: count,
    listeners: z
      .object({
        tcp: z.string().nullable(),
        socket: z.string().nullable(),
        sockets: z.array(z.string()).readonly().describe('The sockets of `listen.sockets`.'),
        public: z.string().nullable().describe('The listener for the devices of customers.'),
        lost: z
          .array(z.string())
          .readonly()
          .describe('The sockets whose files were removed, so that connections to them fail.'),
        other_tcp: z.array(z.string()).readonly().describe('The further addresses of `listen.tcp`.'),
        tls: z
          .object({ not_after: instant })
          .meta({ id: 'Certificate' })
          .nullable()
          .describe('When the certificate of `listen.tcp` expires; null for plain HTTP.'),
      })
      .meta({ id: 'Listeners' }),
    upstream: upstreamObject.nullable(),
    outbox: outboxObject.nullable(),
    preload: preloadObject
      .nullable()
      .describe('License keys to fetch in advance; `failed` are those that the upstream does not know.'),
    missing_keys: missingObject
      .nullable()
      .optional()
      .describe('License keys that the upstream does not know any more; null: there are none.'),
    leases: leasesObject.nullable().describe('Null unless this is a holder.'),
    issuer: issuerObject.nullable().describe('Null on a holder, and until leases are set up.'),
    store_events: storeEventsObject
      .nullable()
      .describe('Events of stores since the start; null if `webhooks.in` is empty.'),
    storage: storageState,
    records: recordsObject.nullable().describe('Null until the database has answered for the first time.'),
    clock: z
      .object({
        now: instant,
        suspect: z.boolean().describe('Whether the clock of this machine may be wrong by over 10 minutes.'),
        store_ahead_s: z
          .int()
          .nullable()
          .describe(
            'How far the clock of the upstream is ahead, negative if it is behind; null unless several responses differ from the clock of this machine.',
          ),
        high_water: instant,
      })
      .meta({ id: 'Clock' }),
    webhooks: webhooksObject.nullable().describe('Null if no endpoint gets events.'),
    agents: z
      .object({ known: count, waiting: count.describe('Requests that wait for a change at this process.') })
      .meta({ id: 'AgentsStatus' })
      .nullable()
      .describe('Null if this process answers no agents.'),
    totals: totalsObject,
  })
  .meta({ id: 'Status' });

export type StatusObject = z.infer<typeof statusObject>;

const writeStatus = serializerOf(statusObject);

/** The body of `/statusz`. */
export function serializeStatus(status: Status): StatusObject {
  const { clock, missing: missingKeys, uptimeMs, upstream, outbox } = status;
  return writeStatus({
    ...status,
    uptimeS: seconds(uptimeMs),
    upstream: upstream && insideUpstream(upstream),
    outbox: outbox && insideOutbox(outbox),
    missingKeys,
    clock: {
      ...clock,
      storeAheadS: clock.storeAheadMs === null ? null : Math.round(clock.storeAheadMs / 1000),
    },
  });
}

/** The two parts about the upstream; both are null on an authority. */
export function serializeSync({
  upstream,
  outbox,
}: Pick<Status, 'upstream' | 'outbox'>): Pick<StatusObject, 'upstream' | 'outbox'> {
  return {
    upstream: upstream && serializeUpstream(upstream),
    outbox: outbox && writeOutbox(insideOutbox(outbox)),
  };
}

const writeOutbox = serializerOf(outboxObject);

export function insideOutbox({ depth, held, oldestAgeMs }: OutboxStatus): ProgramValue<typeof outboxObject> {
  const oldestAgeS = oldestAgeMs === null ? null : seconds(oldestAgeMs);
  return { ...depth, inFlight: depth.in_flight, held, oldestAgeS };
}

function seconds(ms: number): number {
  return Math.floor(ms / 1000);
}

/** The response to a stop. */
export const stopObject = z
  .object({ ends_within_s: count.describe('The process ends within so many seconds.') })
  .meta({ id: 'Stop' });

export type StopObject = z.infer<typeof stopObject>;

export function serializeStop(limitMs: number): StopObject {
  return { ends_within_s: Math.ceil(limitMs / 1_000) };
}

/** The response to a reload. */
export const reloadObject = z
  .object({
    changed: z.array(z.string()).readonly().describe('The settings that have a new value.'),
    restart: z.array(z.string()).readonly().describe('The settings whose new value needs a restart.'),
  })
  .meta({ id: 'Reload' });

export type ReloadObject = z.infer<typeof reloadObject>;

/** The body of `/readyz`. */
export const healthObject = z
  .object({
    status: z.enum(['ok', 'unavailable']),
    reasons: z.array(z.string()).readonly(),
  })
  .meta({ id: 'Health' });

export type HealthObject = z.infer<typeof healthObject>;

/** The body of `/livez`. */
export const livenessObject = healthObject
  .extend({ proof: proofObject.optional().describe('Only with a nonce.') })
  .meta({ id: 'Liveness' });

/** `GET /readyz`; `fresh` also asks for an upstream that answers. */
export const readinessQuery = parameters({
  require: oneOf(['fresh']).optional(),
});
