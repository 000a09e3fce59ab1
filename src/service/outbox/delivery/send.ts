import type { Operation } from '../../../domain/outbox/operation.ts';
import { advance } from '../../../domain/outbox/operation-transitions.ts';
import { traced } from '../../../domain/outbox/operation-trace.ts';
import type { Transaction } from '../../tables.ts';
import { boundUpstream } from '../control/upstream-binding.ts';

/** Marks an operation as in flight, to the upstream that is bound now: its request may leave once this is committed. */
export function send(
  transaction: Transaction,
  operation: Operation,
  { baseUses, at }: { baseUses: number | null; at: number },
): Operation {
  const advanced = advance(operation, { type: 'send', baseUses, at });
  const sent = { ...advanced, upstream: boundUpstream(transaction), nextAt: null };
  transaction.operations.put(sent);
  transaction.trace.add(traced('sent', sent));
  return sent;
}
