import { freshnessAt } from '../../domain/agent/freshness.ts';
import type { Observation } from '../../domain/agent/observation.ts';
import { queueOf } from '../../domain/outbox/operation.ts';
import { done, type Problem, type Result } from '../../domain/problem/problem.ts';
import { wasAnswered } from '../access/idempotency.ts';
import { afterCommit } from '../after-commit.ts';
import type { LicenseAnswer, LicenseChangeRequest } from '../answers.ts';
import type { QueuedChange } from '../outbox/license-change.ts';
import type { Awaitable } from '../tables.ts';
import { answerOf, candidates, lookUp, reaches, type LicensingParts } from './license-lookup.ts';

/**
 * How much of `upstream.timeout` an enable waits for the upstream where an agent asks: with a timeout of the same length
 * it would give up just before it is answered, and never know that its enable has arrived.
 */
const partForAgents = 0.5;

/** Changes a key here at once and queues the change for the upstream, which is asked first where that is needed. */
export async function change(
  parts: LicensingParts,
  request: LicenseChangeRequest,
  signal: AbortSignal,
): Promise<Result<LicenseAnswer>> {
  const { reach, licenseKey, trigger, waitMs, idempotency, asker = null } = request;
  const isReplay = wasAnswered(parts.reader, idempotency);
  let cache: 'hit' | 'miss' = 'hit';
  if (!isReplay && asksFirst(parts, request)) {
    const fetched = await lookUp(parts, { reach, licenseKey, asker }, signal);
    if (fetched.ok) cache = cacheOf(fetched.value);
  }
  let queued = await queue(parts, request);
  if (!queued.ok && upstreamMayKnow(parts, request, queued.problem)) {
    const fetched = await lookUp(parts, { reach, licenseKey, asker }, signal);
    if (!fetched.ok) return fetched;
    cache = cacheOf(fetched.value);
    queued = await queue(parts, request);
  }
  if (!queued.ok) return queued;
  const { operationId, observation } = queued.value;
  // A repeated request is answered as it was before, however long it would wait this time.
  if (operationId === null || isReplay) return done(answerOf(parts, observation, cache));
  const deliver = (): Awaitable<Observation> => {
    parts.deliveries.wake({ subject: observation.license.licenseKey, queue: queueOf[trigger] });
    if (trigger !== 'enable' && waitMs === 0) return observation;
    return afterWaiting(parts, request, { observation, operationId }, signal);
  };
  // After a failure the caller gets the answer of the commit, which is stored under the idempotency key.
  return done(answerOf(parts, await afterCommit(parts.log, deliver, observation), cache));
}

/** Whether the upstream was asked for an answer. */
function cacheOf({ provenance }: LicenseAnswer): 'hit' | 'miss' {
  return provenance.freshness === 'authoritative' ? 'miss' : provenance.cache;
}

/**
 * Whether the upstream is to be asked before the change is recorded: when a key is to be enabled that was seen
 * enabled too long ago to be relied upon, or by an upstream at another address.
 */
function asksFirst(parts: LicensingParts, { reach, licenseKey, trigger }: LicenseChangeRequest): boolean {
  if (trigger !== 'enable') return false;
  const observation = parts.reader.observations.get(licenseKey);
  if (observation === null || !reaches(parts, reach, observation)) return false;
  const { freshness } = parts.settings();
  const isFresh = freshnessAt(observation.confirmedAt, freshness, parts.clock.now()) === 'fresh';
  return observation.local.enabled && (!isFresh || parts.isOfFormerAddress(observation));
}

/** Whether the upstream can make up for what a change was refused for; a key that is gone may have come back. */
function upstreamMayKnow(
  parts: LicensingParts,
  { reach, licenseKey }: LicenseChangeRequest,
  { code }: Problem,
): boolean {
  if (code !== 'license_not_found') return code === 'upstream_unreachable' || code === 'verdict_expired';
  const observation = parts.reader.observations.get(licenseKey);
  return observation !== null && observation.gone && reaches(parts, reach, observation);
}

async function queue(parts: LicensingParts, request: LicenseChangeRequest): Promise<Result<QueuedChange>> {
  const { freshness, maxPending } = parts.settings();
  const { reach, licenseKey, trigger, actor, requestId = null, idempotency } = request;
  const productKeys = candidates(parts, reach);
  return parts.writer.write(
    'queueChange',
    { productKeys, licenseKey, trigger, freshness, maxPending },
    { actor, requestId, idempotency },
  );
}

/** Waits for the upstream as far as the caller wants it; gives what is known then. */
async function afterWaiting(
  parts: LicensingParts,
  { licenseKey, trigger, waitMs, isAgent = false, idempotency }: LicenseChangeRequest,
  queued: QueuedChange & { operationId: string },
  signal: AbortSignal,
): Promise<Observation> {
  const wait =
    trigger === 'enable' && waitMs === 0
      ? { waitMs: parts.settings().timeoutMs * (isAgent ? partForAgents : 1), untilFailure: true }
      : { waitMs, untilFailure: false };
  await parts.deliveries.waitFor(queued.operationId, wait, signal);
  const observation = parts.reader.observations.get(licenseKey) ?? queued.observation;
  if (idempotency !== null) {
    const value: QueuedChange = { observation, operationId: null };
    await parts.writer.write('keepAnswer', { idempotency, value });
  }
  return observation;
}
