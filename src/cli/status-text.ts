import { formatAge, formatFields } from './layout.ts';
import type { OutboxStatus, Status, UpstreamStatus } from './wire.ts';

/** Writes how the daemon is, a line for each part of it. */
export function formatStatus(status: Status): string {
  const { role, version, uptime_s, listeners, upstream, outbox, records, clock } = status;
  return formatFields({
    latchkey: `${version}, ${role}, up ${formatAge(uptime_s)}`,
    listening: [listeners.tcp, listeners.socket].filter((address) => address !== null).join(', '),
    upstream: upstream === null ? null : formatUpstream(upstream),
    'last error': upstream?.last_error,
    outbox: outbox === null ? null : formatOutbox(outbox),
    attention: outbox === null ? null : formatAttention(outbox),
    records: formatCounts(records),
    clock: clock.suspect ? 'SUSPECT: it went back' : null,
  });
}

function formatUpstream({ state, since, protocol, breaker, last_success_at }: UpstreamStatus): string {
  const breakerNote = breaker === 'closed' ? '' : `, breaker ${breaker}`;
  const success = last_success_at === null ? 'never' : last_success_at;
  return `${state} since ${since}, ${protocol} protocol${breakerNote}, last success ${success}`;
}

function formatOutbox({ pending, in_flight, uncertain, oldest_age_s }: OutboxStatus): string {
  const oldest = oldest_age_s === null ? '' : `, oldest ${formatAge(oldest_age_s)}`;
  return `${formatCounts({ pending, in_flight, uncertain }) ?? 'empty'}${oldest}`;
}

/** Names what a person should look at. */
function formatAttention({ conflicted, dead, inferred }: OutboxStatus): string | null {
  const counts = formatCounts({ conflicted, dead, inferred });
  return counts === null ? null : `${counts}: see latchkey outbox list --state …`;
}

function formatCounts(counts: Readonly<Record<string, number>>): string | null {
  const some = Object.entries(counts).filter(([, count]) => count > 0);
  if (some.length === 0) return null;
  return some.map(([name, count]) => `${count} ${name.replaceAll('_', ' ')}`).join(', ');
}
