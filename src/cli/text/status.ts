import { formatAge, formatFields } from './layout.ts';
import type { OutboxStatus, Status, UpstreamStatus } from '../client/wire.ts';

/** Writes how the daemon is, a line for each part of it. */
export function formatStatus(status: Status): string {
  const { role, version, uptime_s, listeners, upstream, outbox, records, clock } = status;
  return formatFields({
    latchkey: `${version}, ${role}, up ${formatAge(uptime_s)}`,
    listening: [listeners.tcp, listeners.socket].filter((address) => address !== null).join(', '),
    upstream: upstream === null ? null : formatUpstream(upstream),
    'last error': upstream?.last_error,
    refused: upstream === null ? null : formatRefused(upstream),
    paused: upstream?.state === 'paused' ? 'nothing goes up until: latchkey sync resume' : null,
    outbox: outbox === null ? null : formatOutbox(outbox),
    attention: outbox === null ? null : formatAttention(outbox),
    inferred: outbox === null || outbox.inferred === 0 ? null : formatInferred(outbox),
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

/** Names the credentials of ours that the upstream does not accept, and what to do. */
function formatRefused({ paused_products, coupons_paused }: UpstreamStatus): string | null {
  const secrets = paused_products.map((key) => `the secret of ${key}`);
  const refused = coupons_paused ? [...secrets, 'the API key'] : secrets;
  if (refused.length === 0) return null;
  return `${refused.join(', ')}: put the right one into the configuration and reload, or: latchkey sync resume`;
}

/** Names what waits for a person to decide. */
function formatAttention({ held, conflicted, dead }: OutboxStatus): string | null {
  const counts = formatCounts({ held, conflicted, dead });
  return counts === null ? null : `${counts}: see latchkey outbox list, then outbox retry, drop or confirm`;
}

/** Another writer could have made these look applied. */
function formatInferred({ inferred }: OutboxStatus): string {
  return `${inferred} taken as applied, without proof: see latchkey outbox list --state inferred`;
}

function formatCounts(counts: Readonly<Record<string, number>>): string | null {
  const some = Object.entries(counts).filter(([, count]) => count > 0);
  if (some.length === 0) return null;
  return some.map(([name, count]) => `${count} ${name.replaceAll('_', ' ')}`).join(', ');
}
