import type { Reach } from '../../domain/access/principal.ts';
import { lastInstantOf } from '../../domain/agent/freshness.ts';
import type { LicenseSnapshot } from '../../domain/agent/license-snapshot.ts';
import { verdict } from '../../domain/agent/verdict.ts';
import { done, type Result } from '../../domain/problem/problem.ts';
import { licenseNotFound } from '../access/license-access.ts';
import type { LicenseAnswer, RepeatableAnswer } from '../answers.ts';
import type { LicenseFetch } from '../ports.ts';
import { answerOf, lookUp, reaches, type LicensingParts, type Question } from './license-lookup.ts';

/** Answers from what is known here, or by asking the upstream. */
export async function verify(
  parts: LicensingParts,
  question: Question,
  signal: AbortSignal,
): Promise<Result<LicenseAnswer>> {
  const { reach, licenseKey } = question;
  const snapshot = parts.reader.snapshots.get(licenseKey);
  if (snapshot !== null && !reaches(parts, reach, snapshot)) return licenseNotFound();
  const answered = snapshot === null ? null : answerFrom(parts, snapshot);
  if (snapshot === null || answered === null) return lookUp(parts, question, signal);
  if (isToBeTouched(parts, snapshot)) touchSnapshot(parts, snapshot.license.licenseKey);
  // The upstream has another address now: it is asked first, and answers in place of the former one.
  if (parts.isOfFormerAddress(snapshot)) return lookUp(parts, question, signal);
  answered.repeat.repeated();
  return done(answered);
}

/** Answers from what is known here, where that is the whole of a verify; null: it is not. */
export function verifyNow(parts: LicensingParts, reach: Reach, licenseKey: string): RepeatableAnswer | null {
  const snapshot = parts.reader.snapshots.get(licenseKey);
  if (snapshot === null || !reaches(parts, reach, snapshot)) return null;
  if (isToBeTouched(parts, snapshot) || parts.isOfFormerAddress(snapshot)) return null;
  return answerFrom(parts, snapshot);
}

/** The answer from what is known here; null where that is not to be relied upon any more. */
function answerFrom(parts: LicensingParts, snapshot: LicenseSnapshot): RepeatableAnswer | null {
  const { freshness, refreshMs } = parts.settings();
  const now = parts.clock.now();
  const judged = verdict(snapshot, freshness, now);
  if (judged.verdict !== 'answer') return null;
  const { productKey, askedAt, confirmedAt, license } = snapshot;
  const until = Math.min(askedAt + refreshMs, lastInstantOf(judged.freshness, confirmedAt, freshness));
  const repeated =
    judged.freshness === 'fresh' ? nothing : refreshing(parts.fetcher, productKey, license.licenseKey);
  return { ...answerOf(parts, snapshot, 'hit'), repeat: { since: now, until, repeated } };
}

const nothing = (): void => undefined;

/** Holds no more than it needs: it is remembered with the answer. */
function refreshing(fetcher: LicenseFetch, productKey: string, licenseKey: string): () => void {
  return () => fetcher.refresh(productKey, licenseKey);
}

function isToBeTouched({ clock, settings }: LicensingParts, { askedAt }: LicenseSnapshot): boolean {
  // A jump of the clock that was taken back leaves dates in the future.
  return Math.abs(clock.now() - askedAt) > settings().refreshMs;
}

/** Not awaited, and failures are ignored: a full disk must not keep a key from being verified. */
function touchSnapshot({ writer }: LicensingParts, licenseKey: string): void {
  writer.write('touchSnapshot', { licenseKey }).catch(() => undefined);
}
