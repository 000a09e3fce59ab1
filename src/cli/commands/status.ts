import type { Hint } from '../../domain/finding.ts';
import { counted } from '../../domain/text.ts';
import { findingsOf, fullAdvice, type StatusFinding } from '../../wire/findings.ts';
import { callDaemon } from '../client/daemon.ts';
import { requestAndShow, showResponse, type View } from '../client/request.ts';
import { CommandError, defineCommand, type GlobalOptions } from '../command.ts';
import { exitCode } from '../exit-code.ts';
import {
  type Block,
  brief,
  type Cell,
  formatAge,
  formatEntries,
  formatFields,
  instant,
  type Tone,
  toned,
} from '../format.ts';
import type { Output } from '../output.ts';
import {
  healthObject,
  type LeasesObject,
  type OutboxObject,
  type StatusObject,
  type StoreEventsObject,
  statusObject,
  type UpstreamObject,
} from '../../wire/status.ts';

export const command = defineCommand({
  command: 'status',
  describe: 'Show the state of the daemon',
  builder: {
    check: { type: 'boolean', default: false, describe: 'Only check: exit 0 when it is ready' },
  },
  examples: [['latchkey status --check', 'for probes; needs no token']],
  handler: async (args, output) => {
    if (args.check) return await check(args, output);
    return await requestAndShow(args, output, { path: '/statusz' }, statusView);
  },
});

/** Needs no token. */
async function check(options: GlobalOptions, output: Output): Promise<number> {
  const called = await callDaemon(options, { path: '/readyz' }, false);
  if (!called.ok) throw new CommandError(called.lines, called.code);
  const { answer } = called;
  const code = await showResponse(options, output, answer, {
    schema: healthObject,
    show: ({ status, reasons }) => [status, ...reasons].join('\n'),
  });
  return answer.status === 200 ? code : exitCode.failed;
}

export const statusView: View<StatusObject> = {
  schema: statusObject,
  show: (status, _answer, hint) => [
    formatFields(statusFields(status, hint)),
    ...problemsOf(findingsOf(status), hint),
  ],
  now: ({ clock }) => Date.parse(clock.now),
};

/** What is wrong, and what to do about it; no block if all is well. */
function problemsOf(findings: readonly StatusFinding[], hint: Hint): Block[] {
  const problems = findings.filter(({ level }) => level !== 'ok');
  const entries = problems.map((finding) => {
    const { level, what } = finding;
    const tone = level === 'fail' ? 'bad' : 'warning';
    return [level, [toned(what, tone), `  →  ${fullAdvice(finding, hint)}`]] as const;
  });
  return entries.length === 0 ? [] : [formatEntries(entries)];
}

/** The state of the daemon, without what is wrong. */
export function statusFields(status: StatusObject, hint: Hint): Readonly<Record<string, Cell>> {
  const { role, version, uptime_s, listeners, upstream, outbox, preload, leases, records } = status;
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
    certificate: listeners.tls && ['valid until ', instant(listeners.tls.not_after)],
    ...(upstream && upstreamFields(upstream)),
    ...(outbox && outboxFields(outbox, upstream, hint)),
    ...(leases && leaseFields(leases)),
    ...(status.store_events && storeEventFields(status.store_events)),
    preload: preload && formatCounts({ fetched: preload.done, unknown: preload.failed, left: preload.left }),
    records: records && formatCounts(records),
    ...(status.issuer && issuerFields(status.issuer)),
    webhooks: status.webhooks && formatWebhooks(status.webhooks),
    agents: status.agents && formatAgents(status.agents, hint),
  };
}

function formatAgents({ known, waiting }: NonNullable<StatusObject['agents']>, hint: Hint): Cell {
  if (known === 0) return null;
  return `${known} known, ${waiting} connected: see ${hint('agent list')}`;
}

function storeEventFields({ senders }: StoreEventsObject): Readonly<Record<string, Cell>> {
  const entries = senders.map(({ name, last_event_at: at }): [string, Cell] => [
    `events of ${name}`,
    at === null ? 'none since the start' : ['last ', brief(at)],
  ]);
  return Object.fromEntries(entries);
}

function formatWebhooks({ endpoints, oldest_at: oldest }: NonNullable<StatusObject['webhooks']>): Cell {
  const waiting = oldest === null ? [] : [', an event waits since ', instant(oldest)];
  return [counted(endpoints, 'endpoint'), ...waiting];
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

function upstreamFields(upstream: UpstreamObject): Readonly<Record<string, Cell>> {
  const { next_attempt_at, proxy, retry_after } = upstream;
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
  const { inferred } = outbox;
  return {
    outbox: `${formatOutbox(outbox)}${formatDuration(outbox, upstream)}`,
    // Another program may have changed the count instead.
    inferred:
      inferred === 0
        ? null
        : `${inferred} probably applied, without proof: see ${hint('outbox list --state inferred')}`,
  };
}

function leaseFields(leases: LeasesObject): Readonly<Record<string, Cell>> {
  const { issuer, last_success_at: success, next_end: end, pending_uses: pending } = leases;
  return {
    issuer: [issuer, ...(success === null ? [', not reached yet'] : [', last success ', brief(success)])],
    'first lease ends': instant(end),
    'uses to report': pending === 0 ? null : pending,
  };
}

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

function formatCounts(counts: Readonly<Record<string, number>>): string | null {
  const some = Object.entries(counts).filter(([, count]) => count > 0);
  if (some.length === 0) return null;
  return some.map(([name, count]) => `${count} ${name.replaceAll('_', ' ')}`).join(', ');
}
