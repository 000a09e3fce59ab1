import type { Reach } from '../../domain/access/principal.ts';
import { done, type Result } from '../../domain/problem/problem.ts';
import { licenseNotFound } from '../access/license-access.ts';
import type { HistoryPage } from '../access/tables.ts';
import type { LicenseHistory, Licensing } from '../answers.ts';
import { findPlainKeys } from '../license-spelling.ts';
import { isOfFormerAddress, upstreamAddressSince, type AddressSince } from '../outbox/upstream-state.ts';
import { change } from './license-change.ts';
import { reaches, type AgentLicensingParts, type LicensingParts } from './license-lookup.ts';
import { verify, verifyNow } from './license-verify.ts';

/** Licenses on an agent: answered from what the upstream last said, changed here at once and upward later. */
export function agentLicensing(given: AgentLicensingParts): Licensing {
  // Read once, at the first answer: by then the address is bound, and it changes at a start only.
  let since: AddressSince | null | undefined;
  const parts: LicensingParts = {
    ...given,
    isOfFormerAddress(snapshot) {
      if (since === undefined) since = upstreamAddressSince(given.reader);
      return isOfFormerAddress(since, snapshot);
    },
  };
  return findPlainKeys({
    verify: (reach, licenseKey, signal, asker = null) => verify(parts, { reach, licenseKey, asker }, signal),
    verifyNow: (reach, licenseKey) => verifyNow(parts, reach, licenseKey),
    change: (request, signal) => change(parts, request, signal),
    history: async (reach, licenseKey, page) => historyOf(parts, { reach, licenseKey }, page),
  });
}

/** Kept under the upstream's own spelling of the key, also when it was asked for in another. */
function historyOf(
  parts: AgentLicensingParts,
  { reach, licenseKey }: { reach: Reach | null; licenseKey: string },
  page: HistoryPage,
): Result<LicenseHistory> {
  const { snapshots, history } = parts.reader;
  const snapshot = snapshots.get(licenseKey);
  if (reach !== null && (snapshot === null || !reaches(parts, reach, snapshot))) return licenseNotFound();
  const own = snapshot?.license.licenseKey ?? licenseKey;
  const total = history.count(own, page.since);
  if (snapshot === null && total === 0) return licenseNotFound();
  return done({ changes: history.list(own, page), total });
}
