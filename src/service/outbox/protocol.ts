import { eventOfLoss } from '../../domain/outbox/operation.ts';
import { done, type Result } from '../../domain/problem/problem.ts';
import type { Protocol } from '../../domain/outbox/protocol.ts';
import type { Context } from '../ports.ts';
import type { Reader, Transaction } from '../tables.ts';
import { forgetIdentity } from './agent-id.ts';
import { boundInstance, move, scheduleHead, queueOfOperation } from './queue.ts';

/*
 * How changes reach the upstream: by the plain API, where a lost answer leaves doubt, or by `/sync/v1`. The store keeps
 * the choice. A gateway that hides `/sync/v1` for an hour must not bring doubt back, so only a person ends it.
 * (src/sync/README.md, Which protocol)
 */

const protocolSetting = 'upstream_protocol';
/** A person has chosen the plain protocol. */
const chosenPlain = 'chosen_plain';

export function protocolOf({ settings }: Pick<Reader, 'settings'>): Protocol {
  return settings.get(protocolSetting) === 'latchkey' ? 'latchkey' : 'plain';
}

/** Whether `/sync/v1` may be chosen: the upstream has named itself as Latchkey, and no person has decided otherwise. */
export function mayDiscover({ settings }: Pick<Reader, 'settings'>): boolean {
  return (settings.get(boundInstance) ?? '') !== '' && settings.get(protocolSetting) !== chosenPlain;
}

/**
 * From now on changes are pushed to `/sync/v1`. Does nothing while a change of a license is in flight or uncertain: what the
 * plain protocol began, it ends.
 */
export function startPushing(
  transaction: Transaction,
  _command: Record<string, never>,
): Result<{ protocol: Protocol }> {
  const { operations, settings } = transaction;
  const isInDoubt = operations.inDoubt() > 0;
  if (!isInDoubt) settings.set(protocolSetting, 'latchkey');
  return done({ protocol: protocolOf(transaction) });
}

/** A person chooses the plain protocol, or lets the agent choose. */
export function chooseProtocol(
  transaction: Transaction,
  { protocol, reconcileAfterMs }: { protocol: 'plain' | 'automatic'; reconcileAfterMs: number },
  context: Context,
): Result<null> {
  const { settings } = transaction;
  if (protocol === 'plain') {
    stopPushing(transaction, { reconcileAfterMs }, context);
    settings.set(protocolSetting, chosenPlain);
  } else if (settings.get(protocolSetting) === chosenPlain) {
    settings.set(protocolSetting, 'plain');
  }
  return done(null);
}

/** Ends pushing. The operations of pushes that are not answered may have been applied. */
export function stopPushing(
  transaction: Transaction,
  { reconcileAfterMs }: { reconcileAfterMs: number },
  { monotonic }: Context,
): void {
  if (protocolOf(transaction) === 'plain') return;
  const { operations, settings } = transaction;
  settings.set(protocolSetting, 'plain');
  for (const operation of operations.withState('in_flight')) {
    if (operation.productId === null) continue;
    const lastError = 'its push was not answered when the plain protocol was chosen';
    const reconcileAt = monotonic + reconcileAfterMs;
    move(transaction, { ...operation, lastError, reconcileAt }, eventOfLoss(operation));
    scheduleHead(transaction, operation.subject, queueOfOperation(operation), { at: monotonic });
  }
  forgetIdentity(transaction);
}
