import type { Tenant } from '../../domain/access/principal.ts';
import type { FreshnessPolicy } from '../../domain/agent/freshness.ts';
import { localLicense, type LicenseSnapshot } from '../../domain/agent/license-snapshot.ts';
import { verdict } from '../../domain/agent/verdict.ts';
import { done, refuse, type Result } from '../../domain/problem/problem.ts';
import { licenseNotFound } from '../access/license-access.ts';
import type { LicenseResponse } from '../answers.ts';
import type { Clock, Deliveries, Log, LookupResult, LicenseFetch, UnstoredLicense } from '../ports.ts';
import type { Reader } from '../tables.ts';
import type { Writer } from '../writer.ts';
import { provenanceOf } from './provenance.ts';

/** `productIds` and `settings` return the current configuration. */
export type AgentLicensingParts = {
  reader: Reader;
  writer: Writer;
  clock: Clock;
  log: Pick<Log, 'error'>;
  fetcher: LicenseFetch;
  deliveries: Deliveries;
  /** The ids of the configured products. */
  productIds: () => readonly string[];
  settings: () => {
    freshness: FreshnessPolicy;
    /** `freshness.refresh`. */
    refreshMs: number;
    /** `sync.max_pending`. */
    maxPending: number;
    /** `upstream.timeout`: how long an enable waits for the upstream. */
    timeoutMs: number;
  };
};

/** `isOfFormerAddress`: the snapshot comes from an upstream at another address. */
export type LicensingParts = AgentLicensingParts & {
  isOfFormerAddress: (snapshot: LicenseSnapshot) => boolean;
};

export type Question = { tenant: Tenant; licenseKey: string; requester: string | null };

/** Asks the upstream for a key that the store cannot answer. */
export async function lookUp(
  parts: AgentLicensingParts,
  { tenant, licenseKey, requester }: Question,
  signal: AbortSignal,
): Promise<Result<LicenseResponse>> {
  const known = parts.reader.snapshots.get(licenseKey);
  const productKeys = known !== null ? [known.productKey] : candidates(parts, tenant);
  const found = await parts.fetcher.fetchForCaller(
    productKeys,
    known?.license.licenseKey ?? licenseKey,
    signal,
    // Only look-ups of unknown keys count, because only they can be guesses.
    requester === null ? null : { credential: requester, isCounted: known === null },
  );
  const snapshot = parts.reader.snapshots.get(licenseKey);
  const judged = verdict(snapshot, parts.settings().freshness, parts.clock.now());
  if (snapshot !== null && reaches(parts, tenant, snapshot) && judged.verdict === 'answer') {
    return done(responseOf(parts, snapshot, found.found === 'known' ? 'miss' : 'hit'));
  }
  const unstored = found.found === 'known' ? (found.unstored ?? null) : null;
  if (unstored !== null && (snapshot?.local.pending ?? 0) === 0) {
    const answer = unstoredResponse(parts, unstored);
    if (answer.provenance.freshness !== 'expired') return done(answer);
  }
  if (judged.verdict === 'expired') return expired(found);
  if (found.found === 'limited') return tooManyLookups(found.waitMs);
  if (judged.verdict === 'gone' || found.found === 'missing') return licenseNotFound();
  const detail = found.found === 'unreachable' ? found.detail : 'The upstream did not answer for this key.';
  return refuse(
    'upstream_unreachable',
    `This key was never seen here, and the upstream is unreachable: ${detail}`,
  );
}

/** The response from a license that the upstream just sent, if the disk is too full to store it. */
function unstoredResponse(
  { clock, settings }: AgentLicensingParts,
  { license, productKey, confirmedAt }: UnstoredLicense,
): LicenseResponse {
  const source = { confirmedAt, pending: 0, cache: 'miss' } as const;
  return { license, productKey, provenance: provenanceOf(source, settings().freshness, clock.now()) };
}

/** `found`: the result of asking the upstream again. */
function expired(found: LookupResult): Result<never> {
  let why = 'does not know it now';
  if (found.found === 'unreachable') why = `cannot be reached now: ${found.detail}`;
  if (found.found === 'known') why = 'a cache or an agent answers for it with data that is as old';
  // The upstream's own detail may end with a full stop.
  const detail = `The upstream last confirmed this key too long ago, and ${why.replace(/\.$/, '')}.`;
  return refuse('verdict_expired', detail);
}

function tooManyLookups(waitMs: number): Result<never> {
  return refuse('rate_limited', 'This credential asks for too many unknown keys.', {
    retryAfterS: Math.max(1, Math.ceil(waitMs / 1000)),
  });
}

/** The configured products that a credential can see. */
export function candidates({ productIds }: AgentLicensingParts, tenant: Tenant): readonly string[] {
  return productIds().filter((id) => tenant.productKey === null || id === tenant.productKey);
}

/** Keys of a product that was removed from the configuration are not answered. */
export function reaches(
  parts: AgentLicensingParts,
  tenant: Tenant,
  { productKey }: LicenseSnapshot,
): boolean {
  return candidates(parts, tenant).includes(productKey);
}

/** `cache`: `miss` if the upstream was asked for this response. */
export function responseOf(
  { clock, settings }: AgentLicensingParts,
  snapshot: LicenseSnapshot,
  cache: 'hit' | 'miss',
): LicenseResponse {
  const { confirmedAt, local } = snapshot;
  const source = { confirmedAt, pending: local.pending, cache };
  return {
    license: localLicense(snapshot),
    productKey: snapshot.productKey,
    provenance: provenanceOf(source, settings().freshness, clock.now()),
  };
}
