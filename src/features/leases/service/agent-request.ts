import {
  verdict,
  localLicense,
  type FreshnessPolicy,
  type LicenseSnapshot,
} from '../../../domain/agent/license-snapshot.ts';
import type { UseTotals } from '../domain/lease.ts';
import type { LeaseTerms } from '../../../domain/catalogue.ts';
import { licenseKeysIn } from '../../../domain/license.ts';
import { done, failWith, notFound, type Result } from '../../../domain/problem/problem.ts';
import { isOfLostHistory } from '../../../service/lifecycle/run-count.ts';
import type { Context } from '../../../service/ports.ts';
import type { Reader, Transaction } from '../../../service/tables.ts';
import { answerRequest, type AnsweredRequest, type LeaseCommand, type ReportingDevice } from './answer.ts';
import { queueUses } from './queued-uses.ts';
import { minuteMs } from '../../../domain/time.ts';

type AnswerAgentLeaseRequest = LeaseCommand & {
  /** The id of the configured product whose key the request names, and its terms. */
  productId: string;
  terms: LeaseTerms;
  freshness: FreshnessPolicy;
  /** `sync.max_pending`. */
  maxPending: number;
};

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
    terms,
    stored: transaction.activations.ofDevice(license.licenseKey, device),
    knownUntil: isConfirmedNow ? Infinity : snapshot.confirmedAt + freshness.graceMs,
    countUses: (growth: UseTotals, from: ReportingDevice) => {
      const queued = queueUses(transaction, { snapshot, growth, from, maxPending }, context);
      return queued.ok ? done(localLicense(queued.value)) : queued;
    },
  };
  return await answerRequest(transaction, issued, command, context);
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
