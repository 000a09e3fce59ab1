import type { Tenant } from '../../domain/access/principal.ts';
import { notFound, done, type Result, failWith, type Problem } from '../../domain/problem/problem.ts';
import type { HistoryPage, Reader, Awaitable } from '../tables.ts';
import {
  type AgentSettings,
  type CacheableResponse,
  type LicenseHistory,
  type LicenseService,
  type LicenseResponse,
  provenanceNow,
  type LicenseChangeRequest,
} from '../services.ts';
import { acceptPastedKeys } from '../pasted-keys.ts';
import { isOfFormerAddress, upstreamAddressSince, type AddressSince } from '../outbox/upstream/former.ts';
import {
  answeredLicense,
  answerEndsAt,
  type LicenseSnapshot,
  validWithoutUpstreamUntil,
  verdict,
  freshnessAt,
} from '../../domain/agent/license-snapshot.ts';
import type { Caller, LicenseFetch, Clock, Deliveries, Log, LookupResult } from '../ports.ts';
import { type Writer, afterCommit } from '../writer.ts';
import { queueOf } from '../../domain/outbox/operation.ts';
import { asAnswered } from '../../domain/terms.ts';
import { hasStoredResponse } from '../idempotency.ts';
import type { QueuedChange } from '../outbox/license-change.ts';

/** An agent answers from its snapshots, and applies changes here at once and at the upstream later. */
export function agentLicenseService(services: AgentLicenseParts): LicenseService {
  // Read once, at the first request: the address changes only at a start.
  let since: AddressSince | null | undefined;
  const parts: LicenseParts = {
    ...services,
    isOfFormerAddress(snapshot) {
      if (since === undefined) since = upstreamAddressSince(services.reader);
      return isOfFormerAddress(since, snapshot);
    },
  };
  return acceptPastedKeys({
    verify: (tenant, licenseKey, signal, requester = null) =>
      verify(parts, { tenant, licenseKey, requester }, signal),
    verifyNow: (tenant, licenseKey) => verifyNow(parts, tenant, licenseKey),
    askAgain: (licenseKey) => void parts.fetcher.forgetMissing(parts.productIds(), licenseKey),
    change: (request, signal) => change(parts, request, signal),
    history: async (tenant, licenseKey, page) => historyOf(parts, { tenant, licenseKey }, page),
  });
}

/** History is stored under the upstream's spelling of a key; callers may use another spelling. */
function historyOf(
  parts: AgentLicenseParts,
  { tenant, licenseKey }: { tenant: Tenant | null; licenseKey: string },
  page: HistoryPage,
): Result<LicenseHistory> {
  const { snapshots, history } = parts.reader;
  const snapshot = snapshots.get(licenseKey);
  if (tenant !== null && (snapshot === null || !reaches(parts, tenant, snapshot))) return notFound('license');
  const storedKey = snapshot?.license.licenseKey ?? licenseKey;
  const total = history.count(storedKey, page.since);
  if (snapshot === null && total === 0) return notFound('license');
  return done({ changes: history.list(storedKey, page), total });
}

/** Answers from the stored license, or asks the upstream. */
async function verify(
  parts: LicenseParts,
  query: Lookup,
  signal: AbortSignal,
): Promise<Result<LicenseResponse>> {
  const { tenant, licenseKey } = query;
  const snapshot = parts.reader.snapshots.get(licenseKey);
  if (snapshot !== null && !reaches(parts, tenant, snapshot)) return notFound('license');
  const response = snapshot === null ? null : cacheableResponse(parts, snapshot);
  if (snapshot === null || response === null) return lookUp(parts, query, signal);
  if (isToBeTouched(parts, snapshot)) {
    // Not awaited, and errors are ignored: a verify must succeed on a full disk, too.
    const { licenseKey: storedKey } = snapshot.license;
    parts.writer.write('touchSnapshot', { licenseKey: storedKey }).catch(() => undefined);
  }
  if (parts.isOfFormerAddress(snapshot)) return lookUp(parts, query, signal);
  response.cacheable.onServed();
  return done(response);
}

/** Answers from the stored license if nothing has to be written or asked for; otherwise returns null. */
function verifyNow(parts: LicenseParts, tenant: Tenant, licenseKey: string): CacheableResponse | null {
  const snapshot = parts.reader.snapshots.get(licenseKey);
  if (snapshot === null || !reaches(parts, tenant, snapshot)) return null;
  if (isToBeTouched(parts, snapshot) || parts.isOfFormerAddress(snapshot)) return null;
  return cacheableResponse(parts, snapshot);
}

/** The response from the stored license; null if the license is too old to rely on, or may have been renewed. */
function cacheableResponse(parts: LicenseParts, snapshot: LicenseSnapshot): CacheableResponse | null {
  const { freshness, refreshMs } = parts.settings();
  const now = parts.clock.now();
  const decision = verdict(snapshot, freshness, now);
  if (decision.verdict !== 'answer' || decision.asksFirst) return null;
  const { productId, askedAt, license } = snapshot;
  const answer = responseOf(parts, snapshot, 'hit', now);
  const endsAt = answerEndsAt(snapshot, answer.license, decision.freshness, freshness);
  const until = Math.min(askedAt + refreshMs, endsAt);
  const onServed =
    decision.freshness === 'fresh' ? nothing : refreshLater(parts.fetcher, productId, license.licenseKey);
  return { ...answer, cacheable: { since: now, until, onServed } };
}

const nothing = (): void => undefined;

/** Captures only what it needs, because it is cached with the answer. */
function refreshLater(fetcher: LicenseFetch, productId: string, licenseKey: string): () => void {
  return () => fetcher.refresh(productId, licenseKey);
}

function isToBeTouched({ clock, settings }: LicenseParts, { askedAt }: LicenseSnapshot): boolean {
  // The date may be in the future, if the clock jumped forwards and was set back.
  return Math.abs(clock.now() - askedAt) > settings().refreshMs;
}

/** `productIds` and `settings` return the current configuration. */
export type AgentLicenseParts = {
  reader: Reader;
  writer: Writer;
  clock: Clock;
  log: Pick<Log, 'error'>;
  fetcher: LicenseFetch;
  deliveries: Deliveries;
  /** The ids of the configured products. */
  productIds: () => readonly string[];
  settings: () => AgentSettings;
};

/** `isOfFormerAddress`: the snapshot comes from an upstream at another address. */
type LicenseParts = AgentLicenseParts & {
  isOfFormerAddress: (snapshot: LicenseSnapshot) => boolean;
};

type Lookup = { tenant: Tenant; licenseKey: string; requester: Caller | null };

/** Asks the upstream for a key that the store cannot answer. */
async function lookUp(
  parts: AgentLicenseParts,
  { tenant, licenseKey, requester }: Lookup,
  signal: AbortSignal,
): Promise<Result<LicenseResponse>> {
  const before = parts.reader.snapshots.get(licenseKey);
  const lookup = await parts.fetcher.fetchForCaller(
    before === null ? visibleProducts(parts, tenant) : [before.productId],
    before?.license.licenseKey ?? licenseKey,
    signal,
    // Only look-ups of unknown keys count, because only they can be guesses.
    requester === null ? null : { ...requester, isCounted: before === null },
  );
  const snapshot = parts.reader.snapshots.get(licenseKey);
  const decision = verdict(snapshot, parts.settings().freshness, parts.clock.now());
  if (snapshot !== null && reaches(parts, tenant, snapshot) && decision.verdict === 'answer') {
    return done(responseOf(parts, snapshot, lookup.found === 'known' ? 'miss' : 'hit'));
  }
  // The license that the upstream just sent, if the disk is too full to store it.
  const unstored = lookup.found === 'known' ? (lookup.unstored ?? null) : null;
  if (unstored !== null && (snapshot?.local.pending ?? 0) === 0) {
    const { license, productId, confirmedAt } = unstored;
    const provenance = provenanceNow(parts, { confirmedAt, pending: 0, cache: 'miss' });
    if (provenance.freshness !== 'expired') {
      const shown = asAnswered(license, parts.clock.now());
      return done({ license: shown, productKey: productId, provenance });
    }
  }
  if (decision.verdict === 'expired') return expired(lookup);
  if (lookup.found === 'limited') {
    return failWith('rate_limited', 'This credential asks for too many unknown keys.', {
      retryAfterS: Math.max(1, Math.ceil(lookup.waitMs / 1000)),
    });
  }
  if (decision.verdict === 'gone' || lookup.found === 'missing') return notFound('license');
  const detail = lookup.found === 'unreachable' ? lookup.detail : 'The upstream did not answer for this key.';
  return failWith(
    'upstream_unreachable',
    `This key was never seen here, and the upstream is unreachable: ${detail}`,
  );
}

function expired(lookup: LookupResult): Result<never> {
  let why = 'does not know it now';
  if (lookup.found === 'unreachable') why = `cannot be reached now: ${lookup.detail}`;
  if (lookup.found === 'known') why = 'a cache or an agent answers for it with data that is as old';
  // The upstream's own detail may end with a full stop.
  const detail = `The upstream last confirmed this key too long ago, and ${why.replace(/\.$/, '')}.`;
  return failWith('verdict_expired', detail);
}

/** The configured products that a credential can see. */
function visibleProducts({ productIds }: AgentLicenseParts, tenant: Tenant): readonly string[] {
  return productIds().filter((id) => tenant.productKey === null || id === tenant.productKey);
}

/** Keys of a product that was removed from the configuration are not answered. */
function reaches(parts: AgentLicenseParts, tenant: Tenant, { productId }: LicenseSnapshot): boolean {
  return visibleProducts(parts, tenant).includes(productId);
}

/** `cache`: `miss` if the upstream was asked for this response. */
function responseOf(
  parts: AgentLicenseParts,
  snapshot: LicenseSnapshot,
  cache: 'hit' | 'miss',
  now: number = parts.clock.now(),
): LicenseResponse {
  const { productId, confirmedAt, local } = snapshot;
  const { freshness } = parts.settings();
  const license = answeredLicense(snapshot, freshness, now);
  const graceUntil = validWithoutUpstreamUntil(snapshot, freshness);
  const provenance = provenanceNow(parts, { confirmedAt, pending: local.pending, cache });
  return { license, productKey: productId, provenance: { ...provenance, graceUntil } };
}

/**
 * The part of `upstream.timeout` that an enable waits if the caller is another agent. With the whole timeout, that
 * agent would give up just before the response, and not know that its enable has arrived.
 */
const timeoutPartForAgents = 0.5;

/** Changes a key here at once, and queues the change for the upstream. Asks the upstream first if necessary. */
async function change(
  parts: LicenseParts,
  request: LicenseChangeRequest,
  signal: AbortSignal,
): Promise<Result<LicenseResponse>> {
  const { tenant, licenseKey, trigger, waitMs, idempotency, requester = null } = request;
  const isReplay = hasStoredResponse(parts.reader, idempotency);
  let cache: 'hit' | 'miss' = 'hit';
  if (!isReplay && mustAskFirst(parts, request)) {
    const fetched = await lookUp(parts, { tenant, licenseKey, requester }, signal);
    if (fetched.ok) cache = cacheOf(fetched.value);
  }
  let queued = await queue(parts, request);
  if (!queued.ok && upstreamMayKnow(parts, request, queued.problem)) {
    const fetched = await lookUp(parts, { tenant, licenseKey, requester }, signal);
    if (!fetched.ok) return queued.problem.code === 'uses_limit_reached' ? queued : fetched;
    cache = cacheOf(fetched.value);
    queued = await queue(parts, request);
  }
  if (!queued.ok) return queued;
  const { operationId, snapshot, appliedRevision } = queued.value;
  // A repeated request gets its first response, whatever `waitMs` it has.
  if (operationId === null || isReplay) {
    const applied = appliedRevision === undefined ? {} : { appliedRevision };
    return done({ ...responseOf(parts, snapshot, cache, queued.value.at), ...applied });
  }
  const deliver = (): Awaitable<LicenseSnapshot> => {
    parts.deliveries.wake({ subject: snapshot.license.licenseKey, queue: queueOf[trigger] });
    if (trigger !== 'enable' && waitMs === 0) return snapshot;
    return waitForUpstream(parts, request, { ...queued.value, operationId }, signal);
  };
  // If waiting fails, the caller gets the response of the commit, which is stored under the idempotency key.
  const latest = await afterCommit(parts.log, deliver, snapshot);
  const applied = appliedRevision === undefined ? {} : { appliedRevision };
  return done({ ...responseOf(parts, latest, cache), ...applied });
}

function cacheOf({ provenance }: LicenseResponse): 'hit' | 'miss' {
  return provenance.freshness === 'authoritative' ? 'miss' : provenance.cache;
}

/**
 * Whether to ask the upstream before recording the change: an enable of a key that was last seen enabled, but not
 * recently, or at another upstream address. The key may have been disabled since.
 */
function mustAskFirst(parts: LicenseParts, { tenant, licenseKey, trigger }: LicenseChangeRequest): boolean {
  if (trigger !== 'enable') return false;
  const snapshot = parts.reader.snapshots.get(licenseKey);
  if (snapshot === null || !reaches(parts, tenant, snapshot)) return false;
  return snapshot.local.enabled && (!isFresh(parts, snapshot) || parts.isOfFormerAddress(snapshot));
}

function isFresh({ settings, clock }: LicenseParts, { confirmedAt }: LicenseSnapshot): boolean {
  return freshnessAt(confirmedAt, settings().freshness, clock.now()) === 'fresh';
}

/**
 * Whether a read from the upstream could make a failed change possible. A key that is gone may have returned; a limit that
 * was not confirmed recently may have been raised.
 */
function upstreamMayKnow(
  parts: LicenseParts,
  { tenant, licenseKey }: LicenseChangeRequest,
  { code }: Problem,
): boolean {
  const snapshot = parts.reader.snapshots.get(licenseKey);
  if (code === 'uses_limit_reached') return snapshot !== null && !isFresh(parts, snapshot);
  if (code !== 'license_not_found') return code === 'upstream_unreachable' || code === 'verdict_expired';
  return snapshot !== null && snapshot.gone && reaches(parts, tenant, snapshot);
}

async function queue(parts: LicenseParts, request: LicenseChangeRequest): Promise<Result<QueuedChange>> {
  const { freshness, maxPending } = parts.settings();
  const { tenant, licenseKey, trigger, actor, requestId = null, idempotency, keyed = null } = request;
  const productIds = visibleProducts(parts, tenant);
  return parts.writer.write(
    'queueChange',
    { productIds, licenseKey, trigger, freshness, maxPending, below: keyed },
    { actor, requestId, idempotency },
  );
}

/** Waits for the upstream as long as the caller wants; returns the latest snapshot. */
async function waitForUpstream(
  parts: LicenseParts,
  { licenseKey, trigger, waitMs, untilFailure = false, isAgent = false, idempotency }: LicenseChangeRequest,
  queued: QueuedChange & { operationId: string },
  signal: AbortSignal,
): Promise<LicenseSnapshot> {
  const wait =
    trigger === 'enable' && waitMs === 0
      ? { waitMs: parts.settings().timeoutMs * (isAgent ? timeoutPartForAgents : 1), untilFailure: true }
      : { waitMs, untilFailure };
  await parts.deliveries.waitFor(queued.operationId, wait, signal);
  const snapshot = parts.reader.snapshots.get(licenseKey) ?? queued.snapshot;
  // An agent below gets the license as it is when it asks.
  if (idempotency !== null && idempotency.keyed === undefined) {
    const value: QueuedChange = { ...queued, snapshot, operationId: null };
    await parts.writer.write('storeFinalResponse', { idempotency, value });
  }
  return snapshot;
}
