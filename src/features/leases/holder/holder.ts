import { LRUCache } from 'lru-cache';
import { actForLease, heldVerdict, nextAct, pendingUses } from '../domain/held-lease.ts';
import type { HeldLease } from '../domain/lease.ts';
import { isTooLongKey, tooLongKey } from '../../../domain/license.ts';
import {
  done,
  failWith,
  failWithFaults,
  notFound,
  type Problem,
  type Result,
} from '../../../domain/problem/problem.ts';
import { TokenBucket } from '../../../domain/token-bucket.ts';
import { heldStatement, noLease } from '../service/held-lease.ts';
import type { HeldLicenses } from '../service/held-license.ts';
import type { FileAnswer, HeldLeaseStatus, LeaseHolder, ProgramAnswer } from '../service/ports.ts';
import { raceWithAbort } from '../../../sync/waiting.ts';
import { type ExchangeParts, type Exchanged, Exchanges, type Want } from './exchanges.ts';
import { LeaseFiles, storedKey } from './lease-files.ts';
import { Renewals } from './renewals.ts';

export type HolderSettings = {
  activate: 'on_verify' | 'explicit';
  /** The keys of the configured products. */
  productKeys: readonly string[];
  /** How many unknown license keys a second may be looked up at the issuer (`limits.misses`). */
  misses: number;
};

export type HolderParts = ExchangeParts & {
  /** The current settings. */
  settings: () => HolderSettings;
  /** A number in [0, 1). */
  fraction: () => number;
  /** Ends requests in flight. */
  lifetime: AbortSignal;
};

/** For how long the issuer is not asked again after it has refused a license key, in ms. */
const refusalMs = 10_000;
/** The shortest time between two renewals with a nonce for one license key, in ms. */
const nonceMs = 10_000;
const maxRemembered = 1_000;

type Named = { licenseKey: string; productKey: string | null };

/** Has the leases of this device: gets them, renews them, and gives them to programs. */
export class Holder implements LeaseHolder, HeldLicenses {
  readonly #parts: HolderParts;
  readonly renewals: Renewals;
  readonly #files: LeaseFiles;
  readonly #refusals: LRUCache<string, Problem>;
  readonly #nonces: LRUCache<string, true>;
  readonly #misses = new TokenBucket();

  constructor(parts: HolderParts) {
    this.#parts = parts;
    const perf = { now: () => parts.clock.monotonic() };
    const limits = { max: maxRemembered, ttlResolution: 0, perf };
    this.#refusals = new LRUCache({ ...limits, ttl: refusalMs });
    this.#nonces = new LRUCache({ ...limits, ttl: nonceMs });
    const exchanges = new Exchanges(parts);
    const renewals = new Renewals({ ...parts, exchanges });
    this.renewals = renewals;
    this.#files = new LeaseFiles({ ...parts, exchanges, renewals, hold: (named) => this.#hold(named) });
  }

  async activate(
    { licenseKey: sent, productKey, replaces }: Named & { replaces: string | null },
    signal: AbortSignal,
  ): Promise<Result<HeldLeaseStatus>> {
    const held = await this.#hold({ licenseKey: sent, productKey });
    if (!held.ok) return held;
    const { licenseKey } = held.value;
    this.#refusals.delete(licenseKey);
    const want: Want = (now) => (replaces === null ? this.#wantLease(now) : { act: 'take', replaces });
    const asked = await this.#ask(licenseKey, want, signal);
    return asked.ok ? this.#statusOrProblem(asked.value) : asked;
  }

  async deactivate(sent: string, signal: AbortSignal): Promise<Result<HeldLeaseStatus>> {
    const licenseKey = storedKey(sent);
    const ended = await this.#parts.writer.write('endHeldLease', { licenseKey });
    if (!ended.ok) return ended;
    const want: Want = (held) => {
      const act = nextAct(held);
      return act === null ? null : { act };
    };
    const asked = await this.#ask(licenseKey, want, signal);
    // The request is repeated until the issuer answers.
    if (!asked.ok && asked.problem.code !== 'upstream_unreachable') return asked;
    const held = this.#parts.reader.heldLeases.get(licenseKey);
    return done(this.#statusOf(held ?? ended.value));
  }

  list(): readonly HeldLeaseStatus[] {
    return this.#parts.reader.heldLeases.all().map((held) => this.#statusOf(held));
  }

  async show(
    request: Named & { nonce: string | null; waitMs: number },
    signal: AbortSignal,
  ): Promise<Result<ProgramAnswer>> {
    const { nonce, waitMs } = request;
    const obtained = await this.#lease(request, signal);
    if (!obtained.ok) return obtained;
    const { licenseKey } = obtained.value;
    if (nonce !== null && waitMs > 0) await this.#renewWith(nonce, licenseKey, waitMs, signal);
    const held = this.#parts.reader.heldLeases.get(licenseKey) ?? obtained.value;
    const { document, productKey } = held;
    const statement = heldStatement(this.#parts.reader);
    if (document === null || statement === null) return noLease();
    const { text, kind } = document;
    const proof = nonce === null ? null : await this.#parts.documents.prove({ text, productKey }, nonce);
    const proven = { proof, keys: statement.text };
    return done(kind === 'notice' ? { notice: text, ...proven } : { lease: text, ...proven });
  }

  async requestFile(asked: Parameters<LeaseHolder['requestFile']>[0]): Promise<Result<string>> {
    return await this.#files.request(asked);
  }

  async install(answer: FileAnswer): Promise<Result<HeldLeaseStatus>> {
    const installed = await this.#files.install(answer);
    if (!installed.ok) return installed;
    this.#refusals.delete(installed.value.licenseKey);
    return done(this.#statusOf(installed.value));
  }

  async obtain(named: Named, signal: AbortSignal): Promise<Result<HeldLease>> {
    return await this.#lease(named, signal);
  }

  find({ licenseKey: sent, productKey }: Named): HeldLease | null {
    const held = this.#parts.reader.heldLeases.get(storedKey(sent));
    return held !== null && this.#isServed(held, productKey) ? held : null;
  }

  counted(licenseKey: string): void {
    this.renewals.counted(licenseKey);
  }

  refresh(licenseKey: string): void {
    this.renewals.refresh(licenseKey);
  }

  async confirm(licenseKey: string, waitMs: number, signal: AbortSignal): Promise<void> {
    const want: Want = (held) => (pendingUses(held) > 0 ? { act: 'renew' } : null);
    await this.#askFor(waitMs, licenseKey, want, signal);
  }

  /** The lease of a license key: the one that is held, or one that is obtained now if that is allowed. */
  async #lease(named: Named, signal: AbortSignal): Promise<Result<HeldLease>> {
    const stored = this.#parts.reader.heldLeases.get(storedKey(named.licenseKey));
    const { clock, settings } = this.#parts;
    if (stored !== null) {
      if (!this.#isServed(stored, named.productKey)) return notFound('license');
      const { verdict } = heldVerdict(stored, clock.now());
      if (verdict === 'answer') return done(stored);
      if (verdict === 'expired') return await this.#obtain(stored.licenseKey, signal);
      if (stored.wanted === 'ended') return noLease('The seat of this device was given back.');
    }
    const over = stored === null ? null : this.#overProblem(stored);
    if (settings().activate === 'explicit') return over ?? noLease();
    if (over?.problem.code === 'activation_blocked') return over;
    const limited =
      (stored?.document ?? null) === null ? this.#missesProblem(storedKey(named.licenseKey)) : null;
    if (limited !== null) return { ok: false, problem: limited };
    const held = await this.#hold(named);
    return held.ok ? await this.#obtain(held.value.licenseKey, signal) : held;
  }

  async #obtain(licenseKey: string, signal: AbortSignal): Promise<Result<HeldLease>> {
    const refusal = this.#refusals.get(licenseKey);
    if (refusal !== undefined) return { ok: false, problem: refusal };
    let asked = await this.#ask(licenseKey, (held) => this.#wantLease(held), signal);
    // The seat of an expired lease may be lost, and is taken again if that is allowed.
    const isTaken = this.#parts.settings().activate === 'on_verify';
    if (asked.ok && isTaken && this.#overProblem(asked.value)?.problem.code === 'lease_not_found')
      asked = await this.#ask(licenseKey, (held) => this.#wantLease(held), signal);
    if (!asked.ok) {
      const held = this.#parts.reader.heldLeases.get(licenseKey);
      const found = held === null ? null : heldVerdict(held, this.#parts.clock.now());
      if (found?.verdict !== 'expired' || asked.problem.code !== 'upstream_unreachable') return asked;
      const { detail } = asked.problem;
      if (found.ended !== null)
        return failWith('license_expired', `The license has ended, as far as is known here. ${detail}`);
      const isUnproven = held?.document?.kind === 'unproven';
      const what = isUnproven ? 'The stored lease is not proven' : 'The lease has expired';
      return failWith('verdict_expired', `${what}, and it cannot be renewed now. ${detail}`);
    }
    return this.#overProblem(asked.value) ?? asked;
  }

  /** Begins to hold the license key, if it is of a product that is served here. */
  async #hold({ licenseKey: sent, productKey }: Named): Promise<Result<HeldLease>> {
    const licenseKey = storedKey(sent);
    if (isTooLongKey(licenseKey)) return failWithFaults([tooLongKey]);
    const { productKeys } = this.#parts.settings();
    const stored = this.#parts.reader.heldLeases.get(licenseKey);
    const [only, ...more] = productKeys;
    const chosen = productKey ?? stored?.productKey ?? (more.length === 0 ? only : undefined);
    if (chosen === undefined) {
      const detail = 'product_key is required, since this holder has several products.';
      return failWithFaults([{ parameter: 'product_key', code: 'required', detail }]);
    }
    if (!productKeys.includes(chosen)) return notFound('license');
    if (stored !== null && stored.productKey !== chosen) return notFound('license');
    return await this.#parts.writer.write('holdLease', { licenseKey, productKey: chosen });
  }

  #isServed(held: HeldLease, productKey: string | null): boolean {
    return (
      (productKey === null || productKey === held.productKey) &&
      this.#parts.settings().productKeys.includes(held.productKey)
    );
  }

  #wantLease(held: HeldLease): ReturnType<Want> {
    const act = actForLease(held, this.#parts.clock.now());
    return act === null ? null : { act };
  }

  async #ask(licenseKey: string, want: Want, signal: AbortSignal): Promise<Result<HeldLease>> {
    const exchanged = await raceWithAbort(this.renewals.exchange(licenseKey, want), signal);
    return this.#resultOf(licenseKey, exchanged);
  }

  #resultOf(licenseKey: string, exchanged: Exchanged): Result<HeldLease> {
    if (exchanged.kind === 'done') return done(exchanged.held);
    if (exchanged.kind === 'away') {
      const detail = exchanged.detail.replace(/\.$/, '');
      return failWith('upstream_unreachable', `The issuer of leases gave no lease: ${detail}.`);
    }
    const { problem } = exchanged;
    this.#refusals.set(licenseKey, problem);
    return { ok: false, problem };
  }

  async #renewWith(nonce: string, licenseKey: string, waitMs: number, signal: AbortSignal): Promise<void> {
    if (this.#nonces.has(licenseKey)) return;
    this.#nonces.set(licenseKey, true);
    // The program sees by the nonce whether the issuer has answered.
    await this.#askFor(waitMs, licenseKey, () => ({ act: 'renew', nonce }), signal);
  }

  /** Asks the issuer, and does not wait for its answer for longer than `waitMs`. */
  async #askFor(waitMs: number, licenseKey: string, want: Want, signal: AbortSignal): Promise<void> {
    const ending = new AbortController();
    const asked = this.#ask(licenseKey, want, AbortSignal.any([signal, ending.signal])).catch(
      () => undefined,
    );
    const late = this.#parts.clock.sleep(waitMs, ending.signal).catch(() => undefined);
    await Promise.race([asked, late]);
    ending.abort();
    signal.throwIfAborted();
  }

  /** Limits how often this process asks for license keys that may be guesses. */
  #missesProblem(licenseKey: string): Problem | null {
    const refusal = this.#refusals.get(licenseKey);
    if (refusal !== undefined) return refusal;
    const perSecond = this.#parts.settings().misses;
    const rate = { perSecond, burst: Math.max(1, perSecond) };
    const waitMs = this.#misses.take(rate, this.#parts.clock.monotonic());
    if (waitMs === 0) return null;
    const detail = 'Too many unknown license keys are asked for.';
    return failWith('rate_limited', detail, { retryAfterS: Math.ceil(waitMs / 1000) }).problem;
  }

  /** The problem of a license key whose last answer was a notice other than `disabled`; null: there is no such notice. */
  #overProblem(held: HeldLease): { ok: false; problem: Problem } | null {
    const found = heldVerdict(held, this.#parts.clock.now());
    if (found.verdict !== 'over') return null;
    if (found.state === 'blocked')
      return failWith('activation_blocked', 'The vendor has blocked this device for the license key.');
    return noLease(
      found.state === 'replaced'
        ? 'Another device has taken over the seat of this device.'
        : 'The seat of this device has ended.',
    );
  }

  #statusOrProblem(held: HeldLease): Result<HeldLeaseStatus> {
    return this.#overProblem(held) ?? done(this.#statusOf(held));
  }

  #errorOf({ document, licenseKey }: HeldLease): string | null {
    if (document?.kind === 'unproven') return `The stored lease is not proven: ${document.fault}`;
    return this.renewals.lastError(licenseKey);
  }

  #statusOf(held: HeldLease): HeldLeaseStatus {
    const { document } = held;
    const lease =
      document?.kind === 'lease' ? { expiresAt: document.expiresAt, refreshAt: document.refreshAt } : null;
    const { clock } = this.#parts;
    return { held, lease, lastError: this.#errorOf(held), now: clock.now() };
  }
}
