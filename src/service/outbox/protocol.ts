import { eventOfLoss, isHeld, mayHaveBeenApplied, queueOf } from '../../domain/outbox/operation.ts';
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

/** Whether a person has chosen the plain protocol. */
export function isPlainChosen({ settings }: Pick<Reader, 'settings'>): boolean {
  return settings.get(protocolSetting) === chosenPlain;
}

/** Whether `/sync/v1` may be chosen: the upstream has named itself as Latchkey, and no person has decided otherwise. */
export function mayDiscover({ settings }: Pick<Reader, 'settings'>): boolean {
  return (settings.get(boundInstance) ?? '') !== '' && !isPlainChosen({ settings });
}

/**
 * From now on changes are pushed to `/sync/v1`. Does nothing while a change is in flight, or a change of a license is
 * uncertain: what the plain protocol began, it ends. An uncertain coupon is sent again: with the same terms it is the same.
 */
export function startPushing(
  transaction: Transaction,
  _command: Record<string, never>,
): Result<{ protocol: Protocol }> {
  const { operations, settings } = transaction;
  const isInDoubt = operations.inDoubt() > 0;
  // A person may have decided while the upstream was asked.
  if (!isInDoubt && settings.get(protocolSetting) !== chosenPlain) settings.set(protocolSetting, 'latchkey');
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
    endOrders(transaction, context);
    settings.set(protocolSetting, chosenPlain);
  } else if (isPlainChosen(transaction)) {
    settings.set(protocolSetting, 'plain');
  }
  return done(null);
}

/** Ends pushing, and a person's choice. The operations of pushes that are not answered may have been applied. */
export function stopPushing(
  transaction: Transaction,
  { reconcileAfterMs }: { reconcileAfterMs: number },
  { monotonic }: Context,
): void {
  const { operations, settings } = transaction;
  const wasPlain = protocolOf(transaction) === 'plain';
  settings.set(protocolSetting, 'plain');
  if (wasPlain) return;
  for (const operation of operations.withState('in_flight')) {
    const lastError = 'its push was not answered when the plain protocol was chosen';
    const reconcileAt = monotonic + reconcileAfterMs;
    move(transaction, { ...operation, lastError, reconcileAt }, eventOfLoss(operation));
    scheduleHead(transaction, operation.subject, queueOfOperation(operation), { at: monotonic });
  }
  forgetIdentity(transaction);
}

const staysHere = 'a person chose the plain protocol: it stays here';

/** The plain protocol tells the upstream of no redemption: what waits ends here. */
function endOrders(transaction: Transaction, { now }: Pick<Context, 'now'>): void {
  const { operations } = transaction;
  for (const state of ['pending', 'uncertain'] as const) {
    for (const operation of operations.withState(state)) {
      if (queueOf[operation.kind] !== 'order' || isHeld(operation)) continue;
      const ended = { ...operation, lastError: staysHere };
      const type = mayHaveBeenApplied(operation) ? 'needless' : 'cancel';
      move(transaction, ended, { type: state === 'uncertain' ? 'superseded' : type, at: now });
    }
  }
}
