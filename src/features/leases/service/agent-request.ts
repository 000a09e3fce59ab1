import {
  mayBeRenewed,
  validWithoutUpstreamUntil,
  verdict,
  localLicense,
  type FreshnessPolicy,
  type LicenseSnapshot,
  addLocalChange,
} from '../../../domain/agent/license-snapshot.ts';
import type { UseTotals } from '../domain/lease.ts';
import { endOf, leaseTermsFor } from '../domain/lease-rules.ts';
import type { LeaseTerms } from '../../../domain/catalogue.ts';
import { licenseKeysIn } from '../../../domain/license.ts';
import { done, failWith, notFound, type Result } from '../../../domain/problem/problem.ts';
import { isOfLostHistory } from '../../../service/lifecycle/run-count.ts';
import type { Context } from '../../../service/ports.ts';
import type { Reader, Transaction } from '../../../service/tables.ts';
import { answerRequest, type AnsweredRequest, type LeaseCommand, type ReportingDevice } from './answer.ts';
import { minuteMs } from '../../../domain/time.ts';
import { recordChange } from '../../../service/history.ts';
import { enqueue, refuseWhenFull } from '../../../service/outbox/queue.ts';
import { isLatchkey } from '../../../service/outbox/upstream/identity.ts';

type AnswerAgentLeaseRequest = LeaseCommand & {
  /** The id of the configured product whose key the request names, and its terms. */
  productId: string;
  terms: LeaseTerms;
  freshness: FreshnessPolicy;
  /** `sync.max_pending`. */
  maxPending: number;
};

type QueueUses = {
  snapshot: LicenseSnapshot;
  growth: UseTotals;
  from: ReportingDevice;
  /** `sync.max_pending`. */
  maxPending: number;
};

/**
 * Records many uses of a license at once, in the order `recorded`, `returned`, and the operations that will deliver them.
 * The history gets one entry for each of the two. A use that a device reports again to a restored store has the same id as
 * before, so a Latchkey counts it once. At a plain upstream it is marked as maybe applied.
 */
function queueUses(
  transaction: Transaction,
  { snapshot, growth, from, maxPending }: QueueUses,
  context: Context,
): Result<LicenseSnapshot> {
  const { recorded, returned } = growth;
  const room = refuseWhenFull(transaction, maxPending, recorded + returned);
  if (!room.ok) return room;
  const { productId } = snapshot;
  const { licenseKey } = snapshot.license;
  let { local } = snapshot;
  const maybeApplied = from.isContinued && !isLatchkey(transaction);
  for (const [kind, count, last] of [
    ['usage', recorded, from.uses.recorded],
    ['decrease', returned, from.uses.returned],
  ] as const) {
    const before = localLicense({ ...snapshot, local });
    for (let number = last + 1; number <= last + count; number += 1) {
      const id = idOfUse(context, `${from.activationId} ${kind} ${number}`);
      if (transaction.operations.get(id) !== null) continue;
      const change = { id, kind, subject: licenseKey, productId, maybeApplied };
      const operation = enqueue(transaction, change, context);
      local = addLocalChange(local, operation);
    }
    if (count > 0) recordChange(transaction.history, { change: kind, before, after: local }, context);
  }
  if (recorded + returned > 0) transaction.snapshots.setLocal(licenseKey, local);
  return done({ ...snapshot, local });
}

/** The id of a use of a device. It has the latest possible time, because the device does not say when the use was. */
function idOfUse({ digest }: Context, name: string): string {
  const hash = digest(name);
  return `ffffffff-ffff-7${hash.slice(0, 3)}-8${hash.slice(3, 6)}-${hash.slice(6, 18)}`;
}

/**
 * A license that was confirmed within this time (ms) is certain enough for a lease that is longer than `freshness.grace`.
 * The upstream dates its confirmation, and its clock may differ by 10 minutes.
 */
const justNowMs = 15 * minuteMs;

/**
 * Answers a request of a device at an agent, from what the upstream last said about the license. No lease is longer than
 * `freshness.grace` allows, unless a person wants it and the license was confirmed just now. Refuses a license that is
 * unknown here as `upstream_unreachable`, and one that was confirmed too long ago as `verdict_expired`: fetch the license
 * first.
 */
export async function answerAgentLeaseRequest(
  transaction: Transaction,
  command: AnswerAgentLeaseRequest,
  context: Context,
): Promise<Result<AnsweredRequest>> {
  const { productId, terms, freshness, maxPending } = command;
  const { request, device } = command.signedRequest;
  const snapshot = snapshotOf(transaction, request.licenseKey);
  if (snapshot === null) return failWith('upstream_unreachable', 'Nothing is known of this license key yet.');
  const judged = verdict(snapshot, freshness, context.now);
  if (snapshot.productId !== productId || judged.verdict === 'gone') return notFound('license');
  if (judged.verdict === 'expired') {
    return failWith('verdict_expired', 'The upstream confirmed this license key too long ago.');
  }
  // It may have been disabled after the backup.
  if (isOfLostHistory(transaction, snapshot)) {
    const detail =
      'This issuer was restored or copied, and the upstream has not confirmed the license since.';
    return failWith('upstream_unreachable', detail);
  }
  const license = localLicense(snapshot);
  const isConfirmedNow = command.until !== null && context.now - snapshot.confirmedAt <= justNowMs;
  const issued = {
    license,
    terms: leaseTermsFor(license, terms),
    stored: transaction.activations.ofDevice(license.licenseKey, device),
    knownUntil: isConfirmedNow ? Infinity : snapshot.confirmedAt + freshness.graceMs,
    endsAt: endAtAgent(snapshot, freshness, context.now),
    countUses: (growth: UseTotals, from: ReportingDevice) => {
      const queued = queueUses(transaction, { snapshot, growth, from, maxPending }, context);
      return queued.ok ? done(localLicense(queued.value)) : queued;
    },
  };
  return await answerRequest(transaction, issued, command, context);
}

/**
 * When the leases of an agent end with their license (epoch ms). While the upstream cannot say whether the license was
 * renewed, devices are let in for as long as the agent lets callers in.
 */
export function endAtAgent(snapshot: LicenseSnapshot, freshness: FreshnessPolicy, now: number): number {
  return mayBeRenewed(snapshot, now)
    ? validWithoutUpstreamUntil(snapshot, freshness)
    : endOf(snapshot.license);
}

/** The snapshot of a license key as typed in: exactly, or without special characters. Aliases find it, too. */
export function snapshotOf(
  { snapshots }: Pick<Reader, 'snapshots'>,
  licenseKey: string,
): LicenseSnapshot | null {
  for (const spelling of licenseKeysIn(licenseKey)) {
    const snapshot = snapshots.get(spelling);
    if (snapshot !== null) return snapshot;
  }
  return null;
}
