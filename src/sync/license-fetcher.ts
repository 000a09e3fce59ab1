import { licenseKeysIn, maxAliases, type License } from '../domain/license.ts';
import {
  isMissing,
  notApplied,
  type Applied,
  type NotApplied,
  type Outcome,
} from '../domain/outbox/outcome.ts';
import type {
  Caller,
  Requester,
  Clock,
  Log,
  LookupResult,
  LicenseFetch,
  Upstream,
} from '../service/ports.ts';
import type { Writer } from '../service/writer.ts';
import type { SyncPolicy } from '../service/outbox/queue.ts';
import type { UpstreamMeter } from '../service/status.ts';
import type { Reader } from '../service/tables.ts';
import { type KeyedMutex, isDiskFull, persist, raceWithAbort } from './waiting.ts';
import { LookupQueue, type LookupLimits } from './lookup-queue.ts';
import { MissingKeys, nameOf } from './missing-keys.ts';
import type { Priority } from './rate-limiter.ts';
import type { UpstreamLimiter } from './upstream-limiter.ts';
import { partsOfKey } from '../domain/agent/activated-key.ts';
import { minuteMs } from '../domain/time.ts';

/** How long no 404 about a known key counts after another known key got a 404 as well, in ms. */
const disbeliefMs = minuteMs;
/** How many of the last confirmed keys may serve as controls. */
const controlKeys = 10;
/**
 * How many reads may wait before a verify starts no more in the background. After a long outage every verify would
 * start one, far faster than `sync.rate` ends them. The refresh loop reads the other keys in turn.
 */
const enoughUnderWay = 1_000;

type LicenseFetcherParts = {
  reader: Reader;
  writer: Writer;
  upstream: Upstream;
  clock: Clock;
  log: Log;
  meter: UpstreamMeter;
  mutex: KeyedMutex;
  limiter: UpstreamLimiter;
  policy: () => SyncPolicy;
  /** How long a 404 is kept at most (`freshness.unknown`), in ms. */
  unknownMs: () => number;
  lookups: () => LookupLimits;
  /** Called when a response was stored. */
  onRead: () => void;
  /** Ends requests under way. */
  lifetime: AbortSignal;
};

/** The result of a read. `unstored`: the response, if the full disk had no room for it. */
type ReadOutcome = Outcome<License> | (NotApplied & { unstored: Applied<License> });

type Read = {
  productId: string;
  licenseKey: string;
  outcome: Outcome<License>;
  sentAt: number;
  isMissingConfirmed: boolean;
};

/** Reads license keys from the upstream into the store: one request for all callers that ask for the same key. */
export class LicenseFetcher implements LicenseFetch {
  readonly #parts: LicenseFetcherParts;
  readonly #lookupQueue: LookupQueue;
  /** Lookups of unknown keys under way, by credential and key. */
  readonly #lookups = new Map<string, Promise<LookupResult>>();
  readonly #underWay = new Map<string, Promise<ReadOutcome>>();
  #disbelievedUntil = 0;
  readonly #missing: MissingKeys;

  constructor(parts: LicenseFetcherParts) {
    this.#parts = parts;
    this.#lookupQueue = new LookupQueue(parts.clock, parts.lookups, parts.lifetime);
    this.#missing = new MissingKeys(parts.clock, parts.unknownMs);
  }

  async fetchForCaller(
    productIds: readonly string[],
    licenseKey: string,
    signal: AbortSignal,
    requester: Requester | null,
  ): Promise<LookupResult> {
    const { credential, connection } = requester ?? { credential: '', connection: '' };
    const caller = { credential, connection };
    const products = this.#withoutMissing(productIds, licenseKey);
    if (products.length === 0) return { found: 'missing' };
    // If the upstream cannot be reached, or is already being asked for this key, this caller causes no request.
    const isFree =
      !this.#parts.limiter.admission().admitted ||
      products.every((productId) => this.#underWay.has(nameOf(productId, licenseKey)));
    if (requester?.isCounted !== true || isFree) {
      return await raceWithAbort(this.#search(products, licenseKey, credential, null), signal);
    }
    const name = nameOf(credential, licenseKey);
    if (!this.#lookups.has(name)) {
      const lookup = { ...caller, licenseKey, requests: products.length };
      const admission = await this.#lookupQueue.enter(lookup, signal);
      if (!admission.admitted) return { found: 'limited', waitMs: admission.retryAfterMs };
    }
    const lookup = this.#lookups.get(name) ?? this.#lookUp(products, licenseKey, caller);
    this.#lookups.set(name, lookup);
    return await raceWithAbort(lookup, signal);
  }

  /** Searches for an unknown key, and gives back what was charged for too much. */
  async #lookUp(products: readonly string[], licenseKey: string, caller: Caller): Promise<LookupResult> {
    const charge = { requests: 0 };
    const left = this.#withoutMissing(products, licenseKey);
    try {
      return await this.#search(left, licenseKey, caller.credential, charge);
    } finally {
      this.#lookups.delete(nameOf(caller.credential, licenseKey));
      this.#lookupQueue.giveBack(caller, products.length - charge.requests);
    }
  }

  #withoutMissing(productIds: readonly string[], licenseKey: string): readonly string[] {
    return productIds.filter((productId) => !this.#missing.has(productId, licenseKey));
  }

  /**
   * Reads a key under each product in turn, also after the caller has left. `charge` counts the requests that count
   * against `limits.misses`; an existing key is free. Null: this lookup has no limit.
   */
  async #search(
    productIds: readonly string[],
    licenseKey: string,
    credential: string,
    charge: { requests: number } | null,
  ): Promise<LookupResult> {
    let result: LookupResult = { found: 'missing' };
    for (const productId of productIds) {
      const isFirst = !this.#underWay.has(nameOf(productId, licenseKey));
      const outcome = await this.#fetchForSearch(productId, licenseKey, credential);
      if (charge !== null && isFirst && !isUnsent(outcome)) charge.requests += 1;
      if (outcome.outcome === 'applied') {
        if (charge !== null && !this.#hasManyAliases(outcome.value.licenseKey)) charge.requests = 0;
        return { found: 'known' };
      }
      if ('unstored' in outcome) {
        if (charge !== null) charge.requests = 0;
        const { value: license, confirmedAt } = outcome.unstored;
        return { found: 'known', unstored: { license, productId, confirmedAt } };
      }
      if (!isMissing(outcome)) result = { found: 'unreachable', detail: outcome.detail };
    }
    return result;
  }

  forgetMissing(productIds: readonly string[], licenseKey: string): readonly string[] {
    return productIds.filter((productId) => this.#missing.forget(productId, licenseKey));
  }

  /** The next look-up of each key asks the upstream. */
  forgetAllMissing(): void {
    this.#missing.clear();
  }

  /** The unknown keys of a product whose callers get a 404 without a request now: the latest first. */
  watched(productId: string): readonly string[] {
    const { snapshots } = this.#parts.reader;
    return this.#missing.latest(productId).filter((licenseKey) => snapshots.get(licenseKey) === null);
  }

  /** Reads a key that the upstream has now, before its caller asks again. */
  appeared(productId: string, licenseKey: string): void {
    this.#missing.forget(productId, licenseKey);
    void this.fetch(productId, licenseKey, 'refresh');
  }

  refresh(productId: string, licenseKey: string): void {
    if (this.#underWay.size < enoughUnderWay) void this.fetch(productId, licenseKey, 'refresh');
  }

  /** Reads a key whose queues the caller holds; waits while the disk is full. */
  async fetchNow(productId: string, licenseKey: string): Promise<Outcome<License>> {
    const { clock, lifetime } = this.#parts;
    const read = await this.#fetchLicense(productId, licenseKey);
    await persist(clock, lifetime, () => this.#record(read));
    return read.outcome;
  }

  /**
   * Queues one read of a key, with the priority and credential (`requester`) of the first caller; concurrent callers share
   * the result. Never rejects.
   */
  fetch(
    productId: string,
    licenseKey: string,
    priority: Priority,
    requester: string = '',
  ): Promise<ReadOutcome> {
    const name = nameOf(productId, licenseKey);
    const underWay = this.#underWay.get(name);
    if (underWay !== undefined) return underWay;
    const reading = this.#fetchInTurn(productId, licenseKey, { priority, requester })
      .catch((error: unknown) => notApplied('unreachable', error instanceof Error ? error.message : 'ended'))
      .finally(() => this.#underWay.delete(name));
    this.#underWay.set(name, reading);
    return reading;
  }

  /** Reads for a caller, and caches a 404, also if the caller has left. */
  async #fetchForSearch(productId: string, licenseKey: string, requester: string): Promise<ReadOutcome> {
    const outcome = await this.fetch(productId, licenseKey, 'caller', requester);
    if (isMissing(outcome)) {
      const wasSeen = this.#parts.reader.snapshots.get(licenseKey) !== null;
      this.#missing.add(productId, licenseKey, wasSeen);
    }
    return outcome;
  }

  async #fetchInTurn(
    productId: string,
    licenseKey: string,
    { priority, requester }: { priority: Priority; requester: string },
  ): Promise<ReadOutcome> {
    const { mutex, limiter, clock, lifetime } = this.#parts;
    using _guard = await mutex.enter(licenseKey, ['counter', 'state'], lifetime);
    const admission = await limiter.admit(priority, lifetime, requester);
    if (!admission.admitted) return notApplied('unreachable', admission.detail);
    const isAccepted = limiter.isAccepted(productId);
    if (!isAccepted) limiter.giveBack();
    const unasked = limiter.isConfigured(productId) ? refusedSecret : missingSecret;
    const read = isAccepted
      ? await this.#fetchLicense(productId, licenseKey)
      : { productId, licenseKey, outcome: unasked, sentAt: clock.monotonic(), isMissingConfirmed: false };
    // A read can be repeated, so it does not wait while the disk is full.
    try {
      await this.#record(read);
    } catch (error) {
      if (!isDiskFull(error)) throw error;
      if (isMissing(read.outcome)) return read.outcome;
      const unreachable = notApplied('unreachable', error.message);
      return read.outcome.outcome === 'applied' ? { ...unreachable, unstored: read.outcome } : unreachable;
    }
    return read.outcome;
  }

  async #fetchLicense(productId: string, licenseKey: string): Promise<Read> {
    const { clock } = this.#parts;
    const sentAt = clock.monotonic();
    const outcome = await this.#verify(productId, licenseKey);
    const isSure = !isMissing(outcome) || ('license' in outcome && outcome.license !== undefined);
    const isMissingConfirmed = isSure || (await this.#isMissingConfirmed(productId, licenseKey));
    return { productId, licenseKey, outcome, sentAt, isMissingConfirmed };
  }

  async #verify(productId: string, licenseKey: string): Promise<Outcome<License>> {
    const { upstream, limiter, clock, lifetime } = this.#parts;
    const sentAt = clock.monotonic();
    const outcome = await upstream.verify(productId, licenseKey, lifetime);
    // All spellings of a pasted key are one subject: together they fail as one key.
    const subject = licenseKeysIn(licenseKey).at(-1) ?? licenseKey;
    limiter.observe(outcome, { owner: productId, subject, sentAt });
    return outcome;
  }

  /**
   * Whether a 404 about a known key counts: another known key of the product still answers, or there is none. A
   * gateway that has lost its routes answers 404 to everything.
   */
  async #isMissingConfirmed(productId: string, licenseKey: string): Promise<boolean> {
    const { reader, clock, limiter, lifetime } = this.#parts;
    const known = reader.snapshots.get(licenseKey);
    if (known === null) return true;
    if (clock.monotonic() < this.#disbelievedUntil) return false;
    const control = this.#controlKeyFor(productId, known.license.licenseKey);
    if (control === null) return true;
    const admission = await limiter.admit('delivery', lifetime);
    if (!admission.admitted) return false;
    const outcome = await this.#verify(productId, control);
    if (outcome.outcome === 'applied') return true;
    this.#disbelievedUntil = clock.monotonic() + disbeliefMs;
    return false;
  }

  /** Another key of the product that the upstream confirmed recently and has not answered 404 since. */
  #controlKeyFor(productId: string, licenseKey: string): string | null {
    const { snapshots } = this.#parts.reader;
    const others = snapshots.latest(productId, controlKeys).filter((other) => other !== licenseKey);
    // An activation disappears when it is given back.
    const keys = others.filter((other) => partsOfKey(other).activationId === null);
    return keys.find((other) => snapshots.get(other)?.missingSince === null) ?? null;
  }

  /** Records what the response to another request says about a key. */
  async learn(
    productId: string,
    licenseKey: string,
    said: Pick<License, 'enabled' | 'extra' | 'expiresAt'>,
  ): Promise<void> {
    const known = this.#parts.reader.snapshots.get(licenseKey);
    if (known !== null) await this.learnLicense(productId, { ...known.license, ...said }, 'enabled');
  }

  /** Records the license that the response to another request shows. */
  async learnLicense(productId: string, license: License, shows?: Applied<License>['shows']): Promise<void> {
    const { clock } = this.#parts;
    const applied = {
      outcome: 'applied',
      value: license,
      confirmedAt: clock.now(),
      isCached: false,
    } as const;
    const read = {
      productId,
      licenseKey: license.licenseKey,
      outcome: shows === undefined ? applied : { ...applied, shows },
      sentAt: clock.monotonic(),
      isMissingConfirmed: false,
    };
    this.#missing.forget(productId, license.licenseKey);
    await this.#record(read);
  }

  async #record(read: Read): Promise<void> {
    const { writer, policy, onRead } = this.#parts;
    const recorded = await writer.write('recordRead', { ...read, policy: policy() });
    onRead();
    const unexpected = recorded.ok ? recorded.value.unexpected : null;
    if (unexpected !== null)
      logOtherWriter(this.#parts, { licenseKey: read.licenseKey, ...unexpected }, policy());
  }

  /** Other spellings of a key are free only up to this many: there are millions of them. */
  #hasManyAliases(licenseKey: string): boolean {
    return this.#parts.reader.snapshots.aliasCount(licenseKey) >= maxAliases;
  }
}

/** After a 401 or 403, this secret is not used until a probe succeeds. */
const refusedSecret = notApplied('unauthorized', 'the upstream refuses the secret of this product');

/** The product is no longer configured. */
const missingSecret = notApplied('unauthorized', 'no secret is configured for the product of this key');

/** Whether nothing was sent, or nothing was recorded: such a lookup is not charged. */
export function isUnsent(outcome: Outcome<unknown>): boolean {
  return outcome.outcome === 'not_applied' && outcome.status === null;
}

/**
 * Logs a count that this agent's operations do not explain. It is a warning only if this agent is configured as the
 * only writer.
 */
export function logOtherWriter(
  { log, meter }: { log: Log; meter: UpstreamMeter },
  count: { licenseKey: string; expected: number; got: number; operation?: string },
  { writers }: Pick<SyncPolicy, 'writers'>,
): void {
  meter.unexpected();
  log[writers === 'single' ? 'warn' : 'info'](count, 'another writer changed the count of a key');
}
