import { clockAdvice, counted, describeClock } from '../../../domain/text.ts';
import { dayMs } from '../../../domain/time.ts';
import type { View } from '../../client/request.ts';
import { brief, type Cell, formatAge, formatFields, instant, type Tone, toned } from '../../format.ts';
import type { Hint } from '../../hint.ts';
import {
  type LeasesObject,
  type OutboxObject,
  type StatusObject,
  type StoreEventsObject,
  statusObject,
} from '../../../wire/status.ts';
import type { UpstreamObject } from '../../../wire/server/upstream.ts';

export const statusView: View<StatusObject> = {
  schema: statusObject,
  show: (status, _answer, hint) => formatFields(statusFields(status, hint)),
  now: ({ clock }) => Date.parse(clock.now),
};

export function statusFields(status: StatusObject, hint: Hint): Readonly<Record<string, Cell>> {
  const { role, version, uptime_s, listeners, upstream, outbox, preload, leases, storage, records, clock } =
    status;
  return {
    latchkey: `${version}, ${role}, up ${formatAge(uptime_s)}`,
    listening: [
      listeners.tcp,
      ...listeners.other_tcp,
      listeners.socket,
      ...listeners.sockets,
      listeners.public ?? null,
    ]
      .filter((address) => address !== null)
      .join(', '),
    removed:
      listeners.lost.length === 0
        ? null
        : toned(`${listeners.lost.join(', ')}: connections to it fail; see the log`, 'bad'),
    certificate: listeners.tls === null ? null : formatCertificate(listeners.tls.not_after, clock.now),
    storage: formatStorage(storage, hint),
    ...(upstream && upstreamFields(upstream, hint)),
    ...(outbox && outboxFields(outbox, upstream, hint)),
    ...(leases && leaseFields(leases, clock.now, hint)),
    ...(status.store_events && storeEventFields(status.store_events)),
    preload: preload && formatCounts({ fetched: preload.done, unknown: preload.failed, left: preload.left }),
    records: records && formatCounts(records),
    missing: status.missing_keys && formatMissing(status.missing_keys),
    ...(status.issuer && issuerFields(status.issuer)),
    webhooks: status.webhooks && formatWebhooks(status.webhooks, hint),
    agents: status.agents && formatAgents(status.agents, hint),
    clock: formatClock(clock),
  };
}

function formatClock({ suspect, store_ahead_s: aheadS }: StatusObject['clock']): Cell {
  if (!suspect) return null;
  const aheadMs = aheadS === null ? null : aheadS * 1000;
  return toned(`SUSPECT: ${describeClock(aheadMs)}; ${clockAdvice(aheadMs)}`, 'bad');
}

function formatMissing({ count, since }: NonNullable<StatusObject['missing_keys']>): Cell {
  const keys = counted(count, 'license key');
  return [toned(`the store answers 404 for ${keys}`, 'warning'), ', since ', brief(since)];
}

function formatAgents({ known, waiting }: NonNullable<StatusObject['agents']>, hint: Hint): Cell {
  if (known === 0) return null;
  return `${known} known, ${waiting} connected: see ${hint('agent list')}`;
}

function storeEventFields({ senders }: StoreEventsObject): Readonly<Record<string, Cell>> {
  return Object.fromEntries(
    senders.map(({ name, last_event_at: at, last_refused_at: refusedAt, last_refusal: refusal }) => [
      `events of ${name}`,
      [
        ...(at === null ? ['none since the start'] : ['last ', brief(at)]),
        ...(refusedAt === null
          ? []
          : [
              ', ',
              toned(refusal === 'wrong_signature' ? 'wrong signature ' : 'unreadable ', 'warning'),
              brief(refusedAt),
            ]),
      ],
    ]),
  );
}

function formatWebhooks(
  { endpoints, failing, paused, oldest_at: oldest }: NonNullable<StatusObject['webhooks']>,
  hint: Hint,
): Cell {
  const wrong = formatCounts({ failing, paused });
  return [
    counted(endpoints, 'endpoint'),
    ...(oldest === null ? [] : [', an event waits since ', instant(oldest)]),
    ...(wrong === null
      ? []
      : [': ', toned(wrong, paused > 0 ? 'bad' : 'warning'), `, see ${hint('webhook list')}`]),
  ];
}

function issuerFields(issuer: NonNullable<StatusObject['issuer']>): Readonly<Record<string, Cell>> {
  const { activations, seats_taken: seats, waiting } = issuer;
  return {
    leases: `signed as ${issuer.issuer}, key statement ${issuer.version}`,
    'signing key': ['ends ', instant(issuer.not_after)],
    devices: formatCounts({
      activations: activations ?? 0,
      'with a seat': seats ?? 0,
      waiting,
    }),
  };
}

function upstreamFields(upstream: UpstreamObject, hint: Hint): Readonly<Record<string, Cell>> {
  const { state, next_attempt_at, proxy, retry_after } = upstream;
  return {
    upstream: formatUpstream(upstream),
    ...followFields(upstream),
    ...formatError(upstream),
    'next attempt': instant(next_attempt_at),
    proxy,
    // The store asked for a pause (Retry-After). This is not an error.
    'slowed down':
      retry_after === null
        ? null
        : [toned('ends ', 'warning'), instant(retry_after), ', as the store asked; nothing is sent before'],
    refused: formatRefused(upstream, hint),
    paused: state === 'paused' ? `nothing is sent to the store until: ${hint('sync resume')}` : null,
  };
}

/** Which license keys are followed at a Latchkey. */
function followFields({ follows }: UpstreamObject): Readonly<Record<string, Cell>> {
  const entries = follows.map(({ product_key: product, followed, confirmed_at: at }): [string, Cell] => [
    `follows of ${product}`,
    [counted(followed, 'key'), ...(at === null ? [', not confirmed yet'] : [', confirmed ', brief(at)])],
  ]);
  return Object.fromEntries(entries);
}

function outboxFields(
  outbox: OutboxObject,
  upstream: UpstreamObject | null,
  hint: Hint,
): Readonly<Record<string, Cell>> {
  const { held, conflicted, dead, inferred } = outbox;
  const undecided = formatCounts({ held, conflicted, dead });
  return {
    outbox: `${formatOutbox(outbox)}${formatDuration(outbox, upstream)}`,
    attention: undecided && [
      toned(undecided, 'bad'),
      `: see ${hint('outbox list')}, then outbox show, retry, drop or confirm`,
    ],
    // Another program may have changed the count instead.
    inferred:
      inferred === 0
        ? null
        : `${inferred} probably applied, without proof: see ${hint('outbox list --state inferred')}`,
  };
}

function leaseFields(leases: LeasesObject, now: string, hint: Hint): Readonly<Record<string, Cell>> {
  const { issuer, last_success_at: success, last_error: error, last_error_at: at, next_end: end } = leases;
  const isSoon = end !== null && Date.parse(end) - Date.parse(now) <= 14 * dayMs;
  const isAway = error !== null && at !== null && (success === null || Date.parse(at) > Date.parse(success));
  return {
    issuer: [issuer, ...(success === null ? [', not reached yet'] : [', last success ', brief(success)])],
    problem: isAway ? [toned(error, 'bad'), ', ', brief(at), `: see ${hint('doctor')}`] : null,
    'first lease ends':
      end === null ? null : isSoon && isAway ? [toned('soon: ', 'bad'), instant(end)] : instant(end),
    'uses to report': leases.pending_uses === 0 ? null : leases.pending_uses,
  };
}

function formatCertificate(end: string, now: string): Cell {
  const hasEnded = Date.parse(end) <= Date.parse(now);
  return hasEnded
    ? [toned('EXPIRED', 'bad'), ' on ', instant(end), ': clients reject it until it is renewed']
    : ['ends ', instant(end)];
}

function formatStorage(storage: string, hint: Hint): Cell {
  switch (storage) {
    case 'full':
      return [
        toned('FULL', 'bad'),
        ': changes are refused until there is space on the disk; verify keeps working',
      ];
    case 'damaged':
      return [
        toned('DAMAGED', 'bad'),
        `: nothing is changed or sent; stop the daemon, and restore a backup: ${hint('restore FILE')}`,
      ];
    case 'read_only':
      return [
        toned('READ-ONLY', 'bad'),
        ': the database accepts no changes at the moment; verify keeps working',
      ];
    case 'unavailable':
    case 'slow':
      return [
        toned(storage.toUpperCase(), 'bad'),
        `: the database ${unavailable[storage]}; the daemon reconnects by itself`,
      ];
    case 'refused':
      return [toned('REFUSED', 'bad'), `: this node cannot use the database: ${hint('doctor')}`];
    default:
      return null;
  }
}

const unavailable = { unavailable: 'cannot be reached', slow: 'does not answer in time' } as const;

export function formatUpstream(upstream: UpstreamObject): Cell {
  const { state, since, protocol, breaker } = upstream;
  const { last_success_at: success, last_error_at: failedAt } = upstream;
  const breakerNote = breaker === 'closed' ? '' : `, breaker ${breaker}`;
  return [
    ...(isFailing(upstream)
      ? [toned('failing', 'warning')]
      : [toned(state, tones[state] ?? 'warning'), ' since ', instant(since)]),
    `, ${protocolTexts[protocol]}${breakerNote}, `,
    ...(success === null
      ? [failedAt === null ? 'not contacted yet' : 'no success yet']
      : ['last success ', brief(success)]),
  ];
}

/** Whether requests fail, and too few of them for the state `down`. A refused credential is no failure of the upstream. */
function isFailing(upstream: UpstreamObject): boolean {
  const { state, last_error_at: at, last_success_at: success } = upstream;
  const isRefusing = upstream.paused_products.length > 0 || upstream.coupons_paused;
  const isUp = state === 'up' || state === 'unknown';
  return isUp && !isRefusing && at !== null && (success === null || Date.parse(at) > Date.parse(success));
}

const protocolTexts = {
  unknown: 'not known yet whether it is a Latchkey',
  plain: 'no Latchkey',
  latchkey: 'a Latchkey',
} as const;

const tones: Readonly<Record<string, Tone>> = { up: 'good', down: 'bad' };

/** The current error, or the last one and when it ended. */
function formatError(upstream: UpstreamObject): Readonly<Record<string, Cell>> {
  const { last_error: error, last_error_at: at, recovered_at: recovered } = upstream;
  if (error === null || at === null) return {};
  if (recovered === null) return { problem: [toned(error, 'bad'), ', ', brief(at)] };
  return { 'last error': [`${error}, `, brief(at), '; ', toned('recovered', 'good'), ' ', brief(recovered)] };
}

export function formatOutbox({ pending, in_flight, uncertain, oldest_age_s }: OutboxObject): string {
  const oldest = oldest_age_s === null ? '' : `, oldest ${formatAge(oldest_age_s)}`;
  return `${formatCounts({ pending, in_flight, uncertain }) ?? 'empty'}${oldest}`;
}

/** How long the changes that wait take at least, at an upstream that gets each of them by a request of its own. */
function formatDuration({ pending, in_flight }: OutboxObject, upstream: UpstreamObject | null): string {
  const { rate = 0, protocol } = upstream ?? {};
  const waiting = pending + in_flight;
  if (rate === 0 || protocol !== 'plain' || waiting === 0) return '';
  return `, at least ${formatSpan(waiting / rate)} at ${rate} requests a second (sync.rate)`;
}

function formatSpan(seconds: number): string {
  if (seconds < 90) return `${Math.max(1, Math.round(seconds))} s`;
  return seconds < 90 * 60 ? `${Math.round(seconds / 60)} min` : `${Math.round(seconds / 3600)} h`;
}

/** The configured credentials that the upstream refuses. */
function formatRefused({ paused_products, coupons_paused }: UpstreamObject, hint: Hint): Cell {
  const secrets = paused_products.map((key) => `the secret of ${key}`);
  const refused = coupons_paused ? [...secrets, 'the API key'] : secrets;
  if (refused.length === 0) return null;
  return [
    toned(refused.join(', '), 'bad'),
    `: put the right one into the configuration and reload, or: ${hint('sync resume')}`,
  ];
}

function formatCounts(counts: Readonly<Record<string, number>>): string | null {
  const some = Object.entries(counts).filter(([, count]) => count > 0);
  if (some.length === 0) return null;
  return some.map(([name, count]) => `${count} ${name.replaceAll('_', ' ')}`).join(', ');
}
