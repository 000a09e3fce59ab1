import type { Reach } from '../../domain/access/principal.ts';
import { localLicense, type Observation } from '../../domain/agent/observation.ts';
import { laneOf } from '../../domain/outbox/operation.ts';
import { done, refuse, type Problem, type Result } from '../../domain/problem/problem.ts';
import { freshnessAt, lastInstantOf, type FreshnessPolicy } from '../../domain/agent/freshness.ts';
import { verdict } from '../../domain/agent/verdict.ts';
import type {
  LicenseAnswer,
  LicenseChangeRequest,
  LicenseHistory,
  Licensing,
  RepeatableAnswer,
} from '../answers.ts';
import type { Clock, Deliveries, Lookups, Pull } from '../ports.ts';
import type { Writer } from '../writer.ts';
import { provenanceOf } from './provenance.ts';
import type { QueuedChange } from '../outbox/queue/license-change.ts';
import { wasAnswered } from '../access/idempotency.ts';
import { licenseNotFound } from '../access/license-access.ts';
import type { HistoryPage } from '../access/tables.ts';
import type { Reader } from '../tables.ts';

/** What the agent's license answers depend on; the functions return the configuration in force. */
export type AgentLicensingParts = {
  reader: Reader;
  writer: Writer;
  clock: Clock;
  pull: Pull;
  deliveries: Deliveries;
  /** The keys of the configured products. */
  productKeys: () => readonly string[];
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

/** Licenses on an agent: answered from what the upstream last said, changed here at once and upward later. */
export function agentLicensing(parts: AgentLicensingParts): Licensing {
  return {
    verify: (reach, licenseKey, signal, lookups = null) =>
      verify(parts, { reach, licenseKey, lookups }, signal),
    verifyNow: (reach, licenseKey) => verifyNow(parts, reach, licenseKey),
    change: (request, signal) => change(parts, request, signal),
    history: async (reach, licenseKey, page) => historyOf(parts, { reach, licenseKey }, page),
  };
}

/** Kept under the upstream's own spelling of the key, also when it was asked for in another. */
function historyOf(
  parts: AgentLicensingParts,
  { reach, licenseKey }: { reach: Reach | null; licenseKey: string },
  page: HistoryPage,
): Result<LicenseHistory> {
  const { observations, history } = parts.reader;
  const observation = observations.get(licenseKey);
  if (reach !== null && (observation === null || !reaches(parts, reach, observation)))
    return licenseNotFound();
  const own = observation?.license.licenseKey ?? licenseKey;
  const total = history.count(own, page.since);
  if (observation === null && total === 0) return licenseNotFound();
  return done({ changes: history.list(own, page), total });
}

/** Which key is asked for, and by whom. */
type Question = { reach: Reach; licenseKey: string; lookups: Lookups | null };

async function verify(
  parts: AgentLicensingParts,
  question: Question,
  signal: AbortSignal,
): Promise<Result<LicenseAnswer>> {
  const { reach, licenseKey } = question;
  const observation = parts.reader.observations.get(licenseKey);
  if (observation !== null && !reaches(parts, reach, observation)) return licenseNotFound();
  const answered = observation === null ? null : answerFrom(parts, observation);
  if (observation === null || answered === null) return fetch(parts, question, signal);
  answered.repeat.repeated();
  if (isToBeTouched(parts, observation)) touchObservation(parts, observation.license.licenseKey);
  return done(answered);
}

/** The answer from what is known here; null where that is not to be relied upon any more. */
function answerFrom(parts: AgentLicensingParts, observation: Observation): RepeatableAnswer | null {
  const { freshness, refreshMs } = parts.settings();
  const now = parts.clock.now();
  const judged = verdict(observation, freshness, now);
  if (judged.verdict !== 'answer') return null;
  const { productKey, askedAt, confirmedAt, license } = observation;
  const until = Math.min(askedAt + refreshMs, lastInstantOf(judged.freshness, confirmedAt, freshness));
  const repeated =
    judged.freshness === 'fresh' ? nothing : refreshing(parts.pull, productKey, license.licenseKey);
  return { ...answer(parts, observation, 'hit'), repeat: { since: now, until, repeated } };
}

const nothing = (): void => undefined;

/** Holds no more than it needs: it is remembered with the answer. */
function refreshing(pull: Pull, productKey: string, licenseKey: string): () => void {
  return () => pull.refresh(productKey, licenseKey);
}

function verifyNow(parts: AgentLicensingParts, reach: Reach, licenseKey: string): RepeatableAnswer | null {
  const observation = parts.reader.observations.get(licenseKey);
  if (observation === null || !reaches(parts, reach, observation)) return null;
  if (isToBeTouched(parts, observation)) return null;
  return answerFrom(parts, observation);
}

function isToBeTouched({ clock, settings }: AgentLicensingParts, { askedAt }: Observation): boolean {
  return clock.now() - askedAt > settings().refreshMs;
}

/** Not awaited, and failures are ignored: a full disk must not keep a key from being verified. */
function touchObservation({ writer }: AgentLicensingParts, licenseKey: string): void {
  writer.write('touchObservation', { licenseKey }).catch(() => undefined);
}

/** Asks the upstream for a key that cannot be answered from here. */
async function fetch(
  parts: AgentLicensingParts,
  { reach, licenseKey, lookups }: Question,
  signal: AbortSignal,
): Promise<Result<LicenseAnswer>> {
  const known = parts.reader.observations.get(licenseKey);
  const productKeys = known !== null ? [known.productKey] : candidates(parts, reach);
  const found = await parts.pull.find(
    productKeys,
    known?.license.licenseKey ?? licenseKey,
    signal,
    known === null ? lookups : uncounted(lookups),
  );
  const observation = parts.reader.observations.get(licenseKey);
  const judged = verdict(observation, parts.settings().freshness, parts.clock.now());
  if (observation !== null && reaches(parts, reach, observation) && judged.verdict === 'answer') {
    return done(answer(parts, observation, found.found === 'known' ? 'miss' : 'hit'));
  }
  if (judged.verdict === 'expired') {
    return refuse('verdict_expired', 'The upstream last confirmed this key too long ago, and is away.');
  }
  if (found.found === 'limited') return tooManyLookups(found.waitMs);
  if (judged.verdict === 'gone' || found.found === 'missing') return licenseNotFound();
  const detail = found.found === 'unreachable' ? found.detail : 'The upstream did not say what the key is.';
  return refuse('upstream_unreachable', `Nothing is known of this key here: ${detail}`);
}

/** A look-up of a known key is no guess, and is not charged. */
function uncounted(lookups: Lookups | null): Lookups | null {
  return lookups && { ...lookups, waitMs: () => 0, charge: () => undefined, giveBack: () => undefined };
}

function tooManyLookups(waitMs: number): Result<never> {
  return refuse('rate_limited', 'This credential asks for too many unknown keys.', {
    retryAfterS: Math.ceil(waitMs / 1000),
  });
}

/** The configured products that a credential reaches. */
function candidates({ productKeys }: AgentLicensingParts, reach: Reach): readonly string[] {
  return productKeys().filter((key) => reach.productKey === null || key === reach.productKey);
}

/** A product that was taken out of the configuration is not answered for, whatever is known of its keys. */
function reaches(parts: AgentLicensingParts, reach: Reach, { productKey }: Observation): boolean {
  return candidates(parts, reach).includes(productKey);
}

async function change(
  parts: AgentLicensingParts,
  request: LicenseChangeRequest,
  signal: AbortSignal,
): Promise<Result<LicenseAnswer>> {
  const { reach, licenseKey, trigger, waitMs, idempotency, lookups = null } = request;
  const isReplay = wasAnswered(parts.reader, idempotency);
  let cache: 'hit' | 'miss' = 'hit';
  if (!isReplay && asksFirst(parts, request)) {
    const fetched = await fetch(parts, { reach, licenseKey, lookups }, signal);
    if (fetched.ok) cache = cacheOf(fetched.value);
  }
  let queued = await queue(parts, request);
  if (!queued.ok && upstreamMayKnow(parts, request, queued.problem)) {
    const fetched = await fetch(parts, { reach, licenseKey, lookups }, signal);
    if (!fetched.ok) return fetched;
    cache = cacheOf(fetched.value);
    queued = await queue(parts, request);
  }
  if (!queued.ok) return queued;
  const { operationId, observation } = queued.value;
  // A repeated request is answered as it was before, however long it would wait this time.
  if (operationId === null || isReplay) return done(answer(parts, observation, cache));
  parts.deliveries.wake({ subject: observation.license.licenseKey, lane: laneOf[trigger] });
  if (trigger !== 'enable' && waitMs === 0) return done(answer(parts, observation, cache));
  const settled = await afterWaiting(parts, request, { observation, operationId }, signal);
  return done(answer(parts, settled, cache));
}

/** Whether the upstream was asked for an answer. */
function cacheOf({ provenance }: LicenseAnswer): 'hit' | 'miss' {
  return provenance.freshness === 'authoritative' ? 'miss' : provenance.cache;
}

/**
 * Whether the upstream is to be asked before the change is recorded: when a key is to be enabled that was seen
 * enabled too long ago to be relied upon.
 */
function asksFirst(
  parts: AgentLicensingParts,
  { reach, licenseKey, trigger }: LicenseChangeRequest,
): boolean {
  if (trigger !== 'enable') return false;
  const observation = parts.reader.observations.get(licenseKey);
  if (observation === null || !reaches(parts, reach, observation)) return false;
  const { freshness } = parts.settings();
  const isFresh = freshnessAt(observation.confirmedAt, freshness, parts.clock.now()) === 'fresh';
  return observation.local.enabled && !isFresh;
}

/** Whether the upstream can make up for what a change was refused for; a key that is gone may have come back. */
function upstreamMayKnow(
  parts: AgentLicensingParts,
  { reach, licenseKey }: LicenseChangeRequest,
  { code }: Problem,
): boolean {
  if (code !== 'license_not_found') return code === 'upstream_unreachable' || code === 'verdict_expired';
  const observation = parts.reader.observations.get(licenseKey);
  return observation !== null && observation.gone && reaches(parts, reach, observation);
}

async function queue(
  parts: AgentLicensingParts,
  request: LicenseChangeRequest,
): Promise<Result<QueuedChange>> {
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
  parts: AgentLicensingParts,
  { licenseKey, trigger, waitMs, idempotency }: LicenseChangeRequest,
  queued: QueuedChange & { operationId: string },
  signal: AbortSignal,
): Promise<Observation> {
  const wait =
    trigger === 'enable' && waitMs === 0
      ? { waitMs: parts.settings().timeoutMs, untilFailure: true }
      : { waitMs, untilFailure: false };
  await parts.deliveries.settled(queued.operationId, wait, signal);
  const observation = parts.reader.observations.get(licenseKey) ?? queued.observation;
  if (idempotency !== null) {
    const value: QueuedChange = { observation, operationId: null };
    await parts.writer.write('keepAnswer', { idempotency, value });
  }
  return observation;
}

function answer(
  { clock, settings }: AgentLicensingParts,
  observation: Observation,
  cache: 'hit' | 'miss',
): LicenseAnswer {
  const { confirmedAt, local } = observation;
  const source = { confirmedAt, pending: local.pending, cache };
  return {
    license: localLicense(observation),
    productKey: observation.productKey,
    provenance: provenanceOf(source, settings().freshness, clock.now()),
  };
}
