import { freshnessAt } from '../../domain/agent/freshness.ts';
import type { LicenseSnapshot } from '../../domain/agent/license-snapshot.ts';
import { queueOf } from '../../domain/outbox/operation.ts';
import { done, type Problem, type Result } from '../../domain/problem/problem.ts';
import { wasAnswered } from '../access/idempotency.ts';
import { afterCommit } from '../after-commit.ts';
import type { LicenseResponse, LicenseChangeRequest } from '../answers.ts';
import type { QueuedChange } from '../outbox/license-change.ts';
import type { Awaitable } from '../tables.ts';
import { responseOf, candidates, lookUp, reaches, type LicensingParts } from './license-lookup.ts';

/**
 * The part of `upstream.timeout` that an enable waits if the caller is another agent. With the whole timeout, that
 * agent would give up just before the response, and not know that its enable has arrived.
 */
const timeoutPartForAgents = 0.5;

/** Changes a key here at once, and queues the change for the upstream. Asks the upstream first if necessary. */
export async function change(
  parts: LicensingParts,
  request: LicenseChangeRequest,
  signal: AbortSignal,
): Promise<Result<LicenseResponse>> {
  const { tenant, licenseKey, trigger, waitMs, idempotency, requester = null } = request;
  const isReplay = wasAnswered(parts.reader, idempotency);
  let cache: 'hit' | 'miss' = 'hit';
  if (!isReplay && asksFirst(parts, request)) {
    const fetched = await lookUp(parts, { tenant, licenseKey, requester }, signal);
    if (fetched.ok) cache = cacheOf(fetched.value);
  }
  let queued = await queue(parts, request);
  if (!queued.ok && upstreamMayKnow(parts, request, queued.problem)) {
    const fetched = await lookUp(parts, { tenant, licenseKey, requester }, signal);
    if (!fetched.ok) return fetched;
    cache = cacheOf(fetched.value);
    queued = await queue(parts, request);
  }
  if (!queued.ok) return queued;
  const { operationId, snapshot } = queued.value;
  // A repeated request gets its first response, whatever `waitMs` it has.
  if (operationId === null || isReplay) return done(responseOf(parts, snapshot, cache));
  const deliver = (): Awaitable<LicenseSnapshot> => {
    parts.deliveries.wake({ subject: snapshot.license.licenseKey, queue: queueOf[trigger] });
    if (trigger !== 'enable' && waitMs === 0) return snapshot;
    return afterWaiting(parts, request, { snapshot, operationId }, signal);
  };
  // If waiting fails, the caller gets the response of the commit, which is stored under the idempotency key.
  return done(responseOf(parts, await afterCommit(parts.log, deliver, snapshot), cache));
}

function cacheOf({ provenance }: LicenseResponse): 'hit' | 'miss' {
  return provenance.freshness === 'authoritative' ? 'miss' : provenance.cache;
}

/**
 * Whether to ask the upstream before recording the change: an enable of a key that was last seen enabled, but not
 * recently, or at another upstream address. The key may have been disabled since.
 */
function asksFirst(parts: LicensingParts, { tenant, licenseKey, trigger }: LicenseChangeRequest): boolean {
  if (trigger !== 'enable') return false;
  const snapshot = parts.reader.snapshots.get(licenseKey);
  if (snapshot === null || !reaches(parts, tenant, snapshot)) return false;
  const { freshness } = parts.settings();
  const isFresh = freshnessAt(snapshot.confirmedAt, freshness, parts.clock.now()) === 'fresh';
  return snapshot.local.enabled && (!isFresh || parts.isOfFormerAddress(snapshot));
}

/** Whether a read from the upstream could make a refused change possible. A key that is gone may have returned. */
function upstreamMayKnow(
  parts: LicensingParts,
  { tenant, licenseKey }: LicenseChangeRequest,
  { code }: Problem,
): boolean {
  if (code !== 'license_not_found') return code === 'upstream_unreachable' || code === 'verdict_expired';
  const snapshot = parts.reader.snapshots.get(licenseKey);
  return snapshot !== null && snapshot.gone && reaches(parts, tenant, snapshot);
}

async function queue(parts: LicensingParts, request: LicenseChangeRequest): Promise<Result<QueuedChange>> {
  const { freshness, maxPending } = parts.settings();
  const { tenant, licenseKey, trigger, actor, requestId = null, idempotency } = request;
  const productKeys = candidates(parts, tenant);
  return parts.writer.write(
    'queueChange',
    { productKeys, licenseKey, trigger, freshness, maxPending },
    { actor, requestId, idempotency },
  );
}

/** Waits for the upstream as long as the caller wants; returns the latest snapshot. */
async function afterWaiting(
  parts: LicensingParts,
  { licenseKey, trigger, waitMs, isAgent = false, idempotency }: LicenseChangeRequest,
  queued: QueuedChange & { operationId: string },
  signal: AbortSignal,
): Promise<LicenseSnapshot> {
  const wait =
    trigger === 'enable' && waitMs === 0
      ? { waitMs: parts.settings().timeoutMs * (isAgent ? timeoutPartForAgents : 1), untilFailure: true }
      : { waitMs, untilFailure: false };
  await parts.deliveries.waitFor(queued.operationId, wait, signal);
  const snapshot = parts.reader.snapshots.get(licenseKey) ?? queued.snapshot;
  if (idempotency !== null) {
    const value: QueuedChange = { snapshot, operationId: null };
    await parts.writer.write('keepResponse', { idempotency, value });
  }
  return snapshot;
}
