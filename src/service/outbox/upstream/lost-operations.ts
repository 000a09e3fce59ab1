import { defaultAccountId } from '../../../domain/access/principal.ts';
import { redeemPayload, endAwait } from '../../../domain/outbox/coupon-payload.ts';
import { isLicenseKind, type Operation } from '../../../domain/outbox/operation.ts';
import { effectOnUses } from '../../../domain/outbox/uses.ts';
import { done, type Result } from '../../../domain/problem/problem.ts';
import { agentRetentionMs } from '../../../domain/latchkey.ts';
import { dayMs } from '../../../domain/time.ts';
import type { Context } from '../../ports.ts';
import type { Reader, Transaction } from '../../tables.ts';
import { endWait, move, putSnapshot, queueOfOperation, scheduleHead } from '../queue.ts';
import { boundUpstream } from './identity.ts';

/*
 * A Latchkey that was restored may have lost what it has answered. The operations that were delivered to it return to the
 * outbox, in their order and in batches, so that callers do not wait. Nothing is sent meanwhile: a change must not overtake
 * an earlier one. The upstream still has the answers to most of them. (src/sync/BETWEEN-LATCHKEYS.md, Restored stores)
 */

const setting = 'resume';

/** `after`: the number of the last operation that was looked at; `last`: of the last one to look at. */
type Resume = { after: number; last: number };

/** The upstream knows the ids of the operations that it has for 30 days. A day less, because clocks may differ. */
const resendableMs = agentRetentionMs - dayMs;

function resumeOf({ settings }: Pick<Reader, 'settings'>): Resume | null {
  return JSON.parse(settings.get(setting) || 'null') as Resume | null;
}

/** Whether what was delivered to a restored upstream still returns to the outbox: nothing is sent meanwhile. */
export function isResuming(reader: Pick<Reader, 'settings'>): boolean {
  return resumeOf(reader) !== null;
}

/**
 * The id of the last use that the upstream has carried out under its id. An upstream that does not know the id any more was put
 * back to an earlier state by hand, so that its epoch is the same.
 * `since` (epoch ms): the upstream finds the id with the present credential only.
 */
export function lastCarriedOut(
  reader: Reader,
  productId: string,
  { now, since }: { now: number; since: number },
): string | null {
  const upstream = boundUpstream(reader);
  return reader.operations.lastCarriedOut(productId, upstream, Math.max(since, now - resendableMs));
}

export function beginResume({ settings, operations }: Transaction): void {
  settings.set(setting, JSON.stringify({ after: 0, last: operations.lastSeq() } satisfies Resume));
}

export function endResume({ settings }: Transaction): void {
  settings.set(setting, '');
}

/** `tooOld`: operations that the upstream may have lost, but that are too old to be sent again. */
export type Resumed = { resumed: number; tooOld: number; isOver: boolean };

/** Returns up to `limit` delivered operations to the outbox. */
export function resumeDelivered(
  transaction: Transaction,
  { limit }: { limit: number },
  context: Context,
): Result<Resumed> {
  const { operations, settings, snapshots } = transaction;
  const resume = resumeOf(transaction);
  if (resume === null) return done({ resumed: 0, tooOld: 0, isOver: true });
  const found = operations.deliveredAfter(resume.after, resume.last, boundUpstream(transaction), limit);
  const known = found.filter((operation) => finishedAt(operation) >= context.now - resendableMs);
  const resumed = known.filter((operation) => !wasVoided(transaction, operation));
  const queues = new Map(resumed.map((each) => [`${queueOfOperation(each)} ${each.subject}`, each]));
  for (const each of queues.values()) endWait(transaction, each.subject, queueOfOperation(each));
  for (const operation of resumed) {
    // Its caller was answered.
    move(transaction, operation.payload === null ? operation : endAwait(operation), { type: 'resume' });
  }
  for (const each of queues.values())
    scheduleHead(transaction, each.subject, queueOfOperation(each), { at: context.monotonic });
  const ofKeys = resumed.filter(({ kind }) => isLicenseKind(kind));
  for (const [licenseKey, again] of Map.groupBy(ofKeys, ({ subject }) => subject)) {
    // The upstream may have lost them, so what it has said about the key counts without them. Callers see the same count.
    const uses = again.reduce((sum, each) => sum + effectOnUses(each), 0);
    snapshots.undoDelivery(licenseKey, { uses, operations: again.length });
    const snapshot = again.some(({ kind }) => kind === 'disable') ? snapshots.get(licenseKey) : null;
    if (snapshot !== null) putSnapshot(transaction, snapshot);
  }
  const isOver = found.length < limit;
  const after = found.at(-1)?.seq ?? resume.after;
  settings.set(setting, isOver ? '' : JSON.stringify({ ...resume, after } satisfies Resume));
  return done({ resumed: resumed.length, tooOld: found.length - known.length, isOver });
}

/** The void is sent again. The redemption is not, because the upstream may still have its answer to the void alone. */
function wasVoided({ redemptions }: Transaction, operation: Operation): boolean {
  if (operation.kind !== 'redeem' || redeemPayload(operation).isAnsweredBelow === true) return false;
  return redemptions.get(defaultAccountId, operation.subject) === null;
}

function finishedAt({ progress }: Operation): number {
  return 'finishedAt' in progress ? progress.finishedAt : Infinity;
}
