import { z } from 'zod';
import type { AnswerView } from '../../client/ask.ts';
import { brief, type Cell, formatAge, formatFields, instant, type Tone, toned } from '../../format.ts';
import type { Hint } from '../../hint.ts';

interface UpstreamStatus {
  readonly state: string;
  readonly since: string;
  readonly protocol: string;
  readonly breaker: string;
  readonly last_success_at: string | null;
  readonly last_error: string | null;
  readonly last_error_at: string | null;
  readonly recovered_at: string | null;
  readonly retry_after: string | null;
  readonly next_attempt_at: string | null;
  readonly proxy: string | null;
  readonly paused_products: readonly string[];
  readonly coupons_paused: boolean;
}

/** How the way to the upstream is. */
export const upstreamStatus: z.ZodType<UpstreamStatus> = z.object({
  state: z.string(),
  since: z.string(),
  protocol: z.string(),
  breaker: z.string(),
  last_success_at: z.string().nullable(),
  last_error: z.string().nullable(),
  last_error_at: z.string().nullable(),
  recovered_at: z.string().nullable(),
  retry_after: z.string().nullable(),
  // A daemon of an earlier version does not tell them.
  next_attempt_at: z.string().nullable().default(null),
  proxy: z.string().nullable().default(null),
  paused_products: z.array(z.string()),
  coupons_paused: z.boolean(),
});

interface OutboxStatus {
  readonly pending: number;
  readonly in_flight: number;
  readonly uncertain: number;
  readonly held: number;
  readonly inferred: number;
  readonly conflicted: number;
  readonly dead: number;
  readonly delivered: number;
  readonly oldest_age_s: number | null;
}

/** How many changes wait, by their state. */
export const outboxStatus: z.ZodType<OutboxStatus> = z.object({
  pending: z.int(),
  in_flight: z.int(),
  uncertain: z.int(),
  held: z.int(),
  inferred: z.int(),
  conflicted: z.int(),
  dead: z.int(),
  delivered: z.int(),
  oldest_age_s: z.number().nullable(),
});

export interface Status {
  readonly role: string;
  readonly version: string;
  readonly uptime_s: number;
  readonly listeners: {
    readonly tcp: string | null;
    readonly socket: string | null;
    readonly sockets: readonly string[];
    readonly lost: readonly string[];
    readonly tls: { readonly not_after: string } | null;
  };
  readonly upstream: UpstreamStatus | null;
  readonly outbox: OutboxStatus | null;
  readonly preload: Readonly<Record<'done' | 'failed' | 'left', number>> | null;
  readonly storage: string;
  readonly records: Readonly<Record<string, number>> | null;
  readonly clock: { readonly now: string; readonly suspect: boolean };
  readonly totals: { readonly verifies: number; readonly uses: number };
}

/** `/statusz`, as far as it is shown in words. */
export const status: z.ZodType<Status> = z.object({
  role: z.string(),
  version: z.string(),
  uptime_s: z.number(),
  listeners: z.object({
    tcp: z.string().nullable(),
    socket: z.string().nullable(),
    // A daemon of an earlier version does not tell them.
    sockets: z.array(z.string()).default([]),
    lost: z.array(z.string()).default([]),
    tls: z.object({ not_after: z.string() }).nullable(),
  }),
  upstream: upstreamStatus.nullable(),
  outbox: outboxStatus.nullable(),
  preload: z.object({ done: z.int(), failed: z.int(), left: z.int() }).nullable(),
  storage: z.string(),
  records: z.record(z.string(), z.int()).nullable(),
  clock: z.object({ now: z.string(), suspect: z.boolean() }),
  totals: z.object({ verifies: z.int(), uses: z.int() }),
});

/** Shows how the daemon is. */
export const statusView: AnswerView<Status> = {
  schema: status,
  show: (shown, _answer, hint) => formatFields(statusFields(shown, hint)),
  now: ({ clock }) => Date.parse(clock.now),
};

/** `/readyz`. */
export const readiness: z.ZodType<{ readonly status: string; readonly reasons: readonly string[] }> =
  z.object({ status: z.string(), reasons: z.array(z.string()) });

/** The parts of the status by their names. */
export function statusFields(shown: Status, hint: Hint): Readonly<Record<string, Cell>> {
  const { role, version, uptime_s, listeners, upstream, outbox, preload, storage, records, clock } = shown;
  return {
    latchkey: `${version}, ${role}, up ${formatAge(uptime_s)}`,
    listening: [listeners.tcp, listeners.socket, ...listeners.sockets]
      .filter((address) => address !== null)
      .join(', '),
    removed:
      listeners.lost.length === 0
        ? null
        : toned(`${listeners.lost.join(', ')}: connections to it fail; see the log`, 'bad'),
    certificate: listeners.tls === null ? null : formatCertificate(listeners.tls.not_after, clock.now),
    storage: formatStorage(storage, hint),
    upstream: upstream === null ? null : formatUpstream(upstream),
    ...(upstream === null ? {} : formatError(upstream)),
    'next attempt': upstream === null ? null : formatNextAttempt(upstream),
    proxy: upstream?.proxy ?? null,
    'left alone': upstream === null ? null : formatRetryAfter(upstream),
    refused: upstream === null ? null : formatRefused(upstream, hint),
    paused:
      upstream?.state === 'paused' ? `nothing is sent to the store until: ${hint('sync resume')}` : null,
    outbox: outbox === null ? null : formatOutbox(outbox),
    attention: outbox === null ? null : formatAttention(outbox, hint),
    inferred: outbox === null || outbox.inferred === 0 ? null : formatInferred(outbox, hint),
    preload: preload === null ? null : formatPreload(preload),
    records: records === null ? null : formatCounts(records),
    clock: clock.suspect
      ? toned('SUSPECT: it may be wrong by more than 10 minutes; let NTP set it', 'bad')
      : null,
  };
}

function formatCertificate(end: string, now: string): Cell {
  const hasEnded = Date.parse(end) <= Date.parse(now);
  return hasEnded
    ? [toned('EXPIRED', 'bad'), ' on ', instant(end), ': callers refuse it until it is renewed']
    : ['until ', instant(end)];
}

function formatStorage(storage: string, hint: Hint): Cell {
  switch (storage) {
    case 'full':
      return [toned('FULL', 'bad'), ': changes are refused until there is room on the disk; verify goes on'];
    case 'damaged':
      return [
        toned('DAMAGED', 'bad'),
        `: nothing is changed or sent; stop it, and put a backup back: ${hint('restore FILE')}`,
      ];
    case 'read_only':
      return [
        toned('READ-ONLY', 'bad'),
        ': the database refuses changes until it takes them again; verify goes on',
      ];
    case 'unavailable':
    case 'slow':
      return [
        toned(storage.toUpperCase(), 'bad'),
        `: the database ${away[storage]}; it comes back by itself`,
      ];
    case 'refused':
      return [toned('REFUSED', 'bad'), `: the database is of no use for this copy: ${hint('doctor')}`];
    default:
      return null;
  }
}

const away = { unavailable: 'cannot be reached', slow: 'does not answer in time' } as const;

export function formatUpstream({ state, since, protocol, breaker, last_success_at }: UpstreamStatus): Cell {
  const breakerNote = breaker === 'closed' ? '' : `, breaker ${breaker}`;
  return [
    toned(state, tones[state] ?? 'warning'),
    ' since ',
    instant(since),
    `, ${protocol} protocol${breakerNote}, last success `,
    last_success_at === null ? 'never' : brief(last_success_at),
  ];
}

const tones: Readonly<Record<string, Tone>> = { up: 'good', down: 'bad' };

/** What is wrong, or what was: an error that is over is told as such. */
function formatError(upstream: UpstreamStatus): Readonly<Record<string, Cell>> {
  const { last_error: error, last_error_at: at, recovered_at: recovered } = upstream;
  if (error === null || at === null) return {};
  if (recovered === null) return { 'wrong now': [toned(error, 'bad'), ', ', brief(at)] };
  return { 'last error': [`${error}, `, brief(at), '; ', toned('recovered', 'good'), ' ', brief(recovered)] };
}

/** When an upstream that is away is asked again. */
function formatNextAttempt({ next_attempt_at }: UpstreamStatus): Cell {
  return next_attempt_at === null ? null : instant(next_attempt_at);
}

/** Nothing is wrong then, and still nothing goes up. */
function formatRetryAfter({ retry_after }: UpstreamStatus): Cell {
  if (retry_after === null) return null;
  return [toned('until ', 'warning'), instant(retry_after), ', as the store asked: nothing is sent before'];
}

export function formatOutbox({ pending, in_flight, uncertain, oldest_age_s }: OutboxStatus): string {
  const oldest = oldest_age_s === null ? '' : `, oldest ${formatAge(oldest_age_s)}`;
  return `${formatCounts({ pending, in_flight, uncertain }) ?? 'empty'}${oldest}`;
}

/** Names the configured credentials that the upstream refuses, and what to do. */
function formatRefused({ paused_products, coupons_paused }: UpstreamStatus, hint: Hint): Cell {
  const secrets = paused_products.map((key) => `the secret of ${key}`);
  const refused = coupons_paused ? [...secrets, 'the API key'] : secrets;
  if (refused.length === 0) return null;
  return [
    toned(refused.join(', '), 'bad'),
    `: put the right one into the configuration and reload, or: ${hint('sync resume')}`,
  ];
}

/** Counts the changes that wait for a person's decision. */
function formatAttention({ held, conflicted, dead }: OutboxStatus, hint: Hint): Cell {
  const counts = formatCounts({ held, conflicted, dead });
  if (counts === null) return null;
  return [toned(counts, 'bad'), `: see ${hint('outbox list')}, then outbox show, retry, drop or confirm`];
}

/** Counts the changes taken as applied: another writer may have changed the count instead. */
function formatInferred({ inferred }: OutboxStatus, hint: Hint): string {
  return `${inferred} taken as applied, without proof: see ${hint('outbox list --state inferred')}`;
}

/** Counts the license keys that were to be fetched; those that the upstream does not know have failed. */
function formatPreload({ done, failed, left }: NonNullable<Status['preload']>): string | null {
  return formatCounts({ fetched: done, unknown: failed, left });
}

function formatCounts(counts: Readonly<Record<string, number>>): string | null {
  const some = Object.entries(counts).filter(([, count]) => count > 0);
  if (some.length === 0) return null;
  return some.map(([name, count]) => `${count} ${name.replaceAll('_', ' ')}`).join(', ');
}
