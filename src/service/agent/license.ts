import type { Tenant } from '../../domain/access/principal.ts';
import { done, type Result } from '../../domain/problem/problem.ts';
import { licenseNotFound } from '../access/license-access.ts';
import type { HistoryPage } from '../access/tables.ts';
import type { CacheableResponse, LicenseHistory, Licensing, LicenseResponse } from '../answers.ts';
import { findPlainKeys } from '../license-spelling.ts';
import { isOfFormerAddress, upstreamAddressSince, type AddressSince } from '../outbox/upstream-state.ts';
import { change } from './license-change.ts';
import {
  reaches,
  type AgentLicensingParts,
  type LicensingParts,
  responseOf,
  lookUp,
  type Question,
} from './license-lookup.ts';
import { freshnessEndsAt } from '../../domain/agent/freshness.ts';
import type { LicenseSnapshot } from '../../domain/agent/license-snapshot.ts';
import { verdict } from '../../domain/agent/verdict.ts';
import type { LicenseFetch } from '../ports.ts';

/** An agent answers from its snapshots, and applies changes here at once and at the upstream later. */
export function agentLicensing(given: AgentLicensingParts): Licensing {
  // Read once, at the first request: the address changes only at a start.
  let since: AddressSince | null | undefined;
  const parts: LicensingParts = {
    ...given,
    isOfFormerAddress(snapshot) {
      if (since === undefined) since = upstreamAddressSince(given.reader);
      return isOfFormerAddress(since, snapshot);
    },
  };
  return findPlainKeys({
    verify: (tenant, licenseKey, signal, requester = null) =>
      verify(parts, { tenant, licenseKey, requester }, signal),
    verifyNow: (tenant, licenseKey) => verifyNow(parts, tenant, licenseKey),
    change: (request, signal) => change(parts, request, signal),
    history: async (tenant, licenseKey, page) => historyOf(parts, { tenant, licenseKey }, page),
  });
}

/** History is stored under the upstream's spelling of a key; callers may use another spelling. */
function historyOf(
  parts: AgentLicensingParts,
  { tenant, licenseKey }: { tenant: Tenant | null; licenseKey: string },
  page: HistoryPage,
): Result<LicenseHistory> {
  const { snapshots, history } = parts.reader;
  const snapshot = snapshots.get(licenseKey);
  if (tenant !== null && (snapshot === null || !reaches(parts, tenant, snapshot))) return licenseNotFound();
  const own = snapshot?.license.licenseKey ?? licenseKey;
  const total = history.count(own, page.since);
  if (snapshot === null && total === 0) return licenseNotFound();
  return done({ changes: history.list(own, page), total });
}

/** Answers from the stored license, or asks the upstream. */
async function verify(
  parts: LicensingParts,
  question: Question,
  signal: AbortSignal,
): Promise<Result<LicenseResponse>> {
  const { tenant, licenseKey } = question;
  const snapshot = parts.reader.snapshots.get(licenseKey);
  if (snapshot !== null && !reaches(parts, tenant, snapshot)) return licenseNotFound();
  const answered = snapshot === null ? null : answerFrom(parts, snapshot);
  if (snapshot === null || answered === null) return lookUp(parts, question, signal);
  if (isToBeTouched(parts, snapshot)) postTouch(parts, snapshot.license.licenseKey);
  // The stored license came from the upstream's former address: ask the present one first.
  if (parts.isOfFormerAddress(snapshot)) return lookUp(parts, question, signal);
  answered.cacheable.onServed();
  return done(answered);
}

/** Answers from the stored license if nothing has to be written or asked for; otherwise returns null. */
function verifyNow(parts: LicensingParts, tenant: Tenant, licenseKey: string): CacheableResponse | null {
  const snapshot = parts.reader.snapshots.get(licenseKey);
  if (snapshot === null || !reaches(parts, tenant, snapshot)) return null;
  if (isToBeTouched(parts, snapshot) || parts.isOfFormerAddress(snapshot)) return null;
  return answerFrom(parts, snapshot);
}

/** The answer from the stored license; null if the license is too old to rely on. */
function answerFrom(parts: LicensingParts, snapshot: LicenseSnapshot): CacheableResponse | null {
  const { freshness, refreshMs } = parts.settings();
  const now = parts.clock.now();
  const judged = verdict(snapshot, freshness, now);
  if (judged.verdict !== 'answer') return null;
  const { productKey, askedAt, confirmedAt, license } = snapshot;
  const until = Math.min(askedAt + refreshMs, freshnessEndsAt(judged.freshness, confirmedAt, freshness));
  const onServed =
    judged.freshness === 'fresh' ? nothing : refreshing(parts.fetcher, productKey, license.licenseKey);
  return { ...responseOf(parts, snapshot, 'hit'), cacheable: { since: now, until, onServed } };
}

const nothing = (): void => undefined;

/** Captures only what it needs, because it is cached with the answer. */
function refreshing(fetcher: LicenseFetch, productKey: string, licenseKey: string): () => void {
  return () => fetcher.refresh(productKey, licenseKey);
}

function isToBeTouched({ clock, settings }: LicensingParts, { askedAt }: LicenseSnapshot): boolean {
  // The date may be in the future, if the clock jumped forwards and was set back.
  return Math.abs(clock.now() - askedAt) > settings().refreshMs;
}

/** Not awaited, and errors are ignored: a verify must succeed on a full disk, too. */
function postTouch({ writer }: LicensingParts, licenseKey: string): void {
  writer.write('touchSnapshot', { licenseKey }).catch(() => undefined);
}
