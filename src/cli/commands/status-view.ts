import { z } from 'zod';
import type { AnswerView } from '../client/ask.ts';
import type { Answer } from '../client/call.ts';
import { type Block, formatAge, formatFields } from '../format.ts';
import type { Hint } from '../hint.ts';

interface UpstreamStatus {
  readonly state: string;
  readonly since: string;
  readonly protocol: string;
  readonly breaker: string;
  readonly last_success_at: string | null;
  readonly last_error: string | null;
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
  oldest_age_s: z.number().nullable(),
});

interface Status {
  readonly role: string;
  readonly version: string;
  readonly uptime_s: number;
  readonly listeners: {
    readonly tcp: string | null;
    readonly socket: string | null;
    readonly tls: { readonly not_after: string } | null;
  };
  readonly upstream: UpstreamStatus | null;
  readonly outbox: OutboxStatus | null;
  readonly preload: Readonly<Record<'done' | 'failed' | 'left', number>> | null;
  readonly records: Readonly<Record<string, number>>;
  readonly clock: { readonly suspect: boolean };
}

/** `/statusz`, as far as it is shown in words. */
export const status: z.ZodType<Status> = z.object({
  role: z.string(),
  version: z.string(),
  uptime_s: z.number(),
  listeners: z.object({
    tcp: z.string().nullable(),
    socket: z.string().nullable(),
    tls: z.object({ not_after: z.string() }).nullable(),
  }),
  upstream: upstreamStatus.nullable(),
  outbox: outboxStatus.nullable(),
  preload: z.object({ done: z.int(), failed: z.int(), left: z.int() }).nullable(),
  records: z.record(z.string(), z.int()),
  clock: z.object({ suspect: z.boolean() }),
});

/** Shows how the daemon is. */
export const statusView: AnswerView<Status> = { schema: status, show: formatStatus };

/** `/readyz`. */
export const readiness: z.ZodType<{ readonly status: string; readonly reasons: readonly string[] }> =
  z.object({ status: z.string(), reasons: z.array(z.string()) });

/** Writes the status, one line for each part. */
function formatStatus(shown: Status, _answer: Answer, hint: Hint): Block {
  const { role, version, uptime_s, listeners, upstream, outbox, preload, records, clock } = shown;
  return formatFields({
    latchkey: `${version}, ${role}, up ${formatAge(uptime_s)}`,
    listening: [listeners.tcp, listeners.socket].filter((address) => address !== null).join(', '),
    certificate: listeners.tls === null ? null : `until ${listeners.tls.not_after}`,
    upstream: upstream === null ? null : formatUpstream(upstream),
    'last error': upstream?.last_error,
    refused: upstream === null ? null : formatRefused(upstream, hint),
    paused: upstream?.state === 'paused' ? `nothing goes up until: ${hint('sync resume')}` : null,
    outbox: outbox === null ? null : formatOutbox(outbox),
    attention: outbox === null ? null : formatAttention(outbox, hint),
    inferred: outbox === null || outbox.inferred === 0 ? null : formatInferred(outbox, hint),
    preload: preload === null ? null : formatPreload(preload),
    records: formatCounts(records),
    clock: clock.suspect ? 'SUSPECT: it went back' : null,
  });
}

export function formatUpstream({ state, since, protocol, breaker, last_success_at }: UpstreamStatus): string {
  const breakerNote = breaker === 'closed' ? '' : `, breaker ${breaker}`;
  const success = last_success_at === null ? 'never' : last_success_at;
  return `${state} since ${since}, ${protocol} protocol${breakerNote}, last success ${success}`;
}

export function formatOutbox({ pending, in_flight, uncertain, oldest_age_s }: OutboxStatus): string {
  const oldest = oldest_age_s === null ? '' : `, oldest ${formatAge(oldest_age_s)}`;
  return `${formatCounts({ pending, in_flight, uncertain }) ?? 'empty'}${oldest}`;
}

/** Names the configured credentials that the upstream refuses, and what to do. */
function formatRefused({ paused_products, coupons_paused }: UpstreamStatus, hint: Hint): string | null {
  const secrets = paused_products.map((key) => `the secret of ${key}`);
  const refused = coupons_paused ? [...secrets, 'the API key'] : secrets;
  if (refused.length === 0) return null;
  return `${refused.join(', ')}: put the right one into the configuration and reload, or: ${hint('sync resume')}`;
}

/** Counts the changes that wait for a person's decision. */
function formatAttention({ held, conflicted, dead }: OutboxStatus, hint: Hint): string | null {
  const counts = formatCounts({ held, conflicted, dead });
  return counts === null ? null : `${counts}: see ${hint('outbox list')}, then outbox retry, drop or confirm`;
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
