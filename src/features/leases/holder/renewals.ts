import { mayHaveSeat, pendingUses, warningOf } from '../domain/held-lease.ts';
import type { HeldLease } from '../domain/lease.ts';
import { backoffMs, defaultBackoffPolicy } from '../../../domain/outbox/delivery.ts';
import { counted } from '../../../domain/text.ts';
import { formatDatetime, minuteMs } from '../../../domain/time.ts';
import { StorageError } from '../../../service/ports.ts';
import { KeyedMutex, Wake } from '../../../sync/waiting.ts';
import { dueWant, type Exchanged, type ExchangeParts, type Exchanges, type Want } from './exchanges.ts';
import { DueTimes, newKeyState, type KeyState } from './renewal-state.ts';

/** How many requests are under way at once, and how many more wait at the issuer. A holder may have 1,000 license keys. */
export const maxExchanges = 8;
export const maxWaits = 8;

/** `Prefer: wait`, in seconds; less after connections were cut sooner. */
const longestWaitS = 25;
const shortestWaitS = 5;
/** A wait that ends sooner did not wait, in ms. */
const noWaitMs = 1_000;
/** After a use, more uses may follow: no request waits at the issuer for this long, in ms. */
const quietMs = 2_000;
/** A disabled license is asked for again when it is verified, at most once in this time, in ms. */
const disabledMs = minuteMs;
/** Between two requests about a license key that follow each other by themselves, in ms. */
const betweenMs = 1_000;
/** The loop never runs more often, in ms. */
const shortestIdleMs = 20;
/** The loop looks at all license keys at least this often, in ms. */
const lookMs = minuteMs;

export type RenewalParts = ExchangeParts & {
  exchanges: Exchanges;
  /** A number in [0, 1), for jitter. */
  fraction: () => number;
  lifetime: AbortSignal;
};

/** The issuer as a holder sees it. Epoch ms. */
export type IssuerContact = {
  lastSuccessAt: number | null;
  lastError: string | null;
  lastErrorAt: number | null;
};

/** Renews leases, reports uses, gives seats back, and waits at the issuer for changes. */
export class Renewals {
  readonly #parts: RenewalParts;
  readonly #due: DueTimes;
  readonly #keys = new Map<string, KeyState>();
  readonly #mutex = new KeyedMutex();
  readonly #wake: Wake;
  readonly #tasks = new Set<Promise<void>>();
  #exchanging = 0;
  #waiting = 0;
  #waitS = longestWaitS;
  /** After so many failures in a row, no wait begins before `until` (monotonic ms). */
  #pause = { failures: 0, until: 0 };
  /** The issuer does not answer: only callers ask it before `until` (monotonic ms). */
  #away: { failures: number; until: number } | null = null;
  #contact: IssuerContact = { lastSuccessAt: null, lastError: null, lastErrorAt: null };
  #storeError: unknown = null;
  /** Ends the requests of the loop: a stop need not wait for their answers, since they are repeated. */
  #ending: AbortSignal;

  constructor(parts: RenewalParts) {
    this.#parts = parts;
    this.#due = new DueTimes(parts.reader);
    this.#wake = new Wake(parts.clock);
    this.#ending = parts.lifetime;
  }

  /** Runs until the signal. Rejects if the store fails. */
  async run(signal: AbortSignal): Promise<void> {
    this.#ending = AbortSignal.any([this.#parts.lifetime, signal]);
    this.#due.noteChange((held) => this.#note(held));
    while (!signal.aborted && this.#storeError === null) {
      this.#start();
      await this.#wake.wait(this.#idleMs(), signal);
    }
    for (const { waiting } of this.#keys.values()) waiting?.abort();
    await Promise.all(this.#tasks);
    if (this.#storeError !== null) throw this.#storeError as Error;
  }

  contact(): IssuerContact {
    return this.#contact;
  }

  lastError(licenseKey: string): string | null {
    return this.#keys.get(licenseKey)?.lastError ?? null;
  }

  /** Ends all waits for another attempt: the machine slept, or the network is back. */
  retryNow(): void {
    this.#away = null;
    this.#pause = { failures: 0, until: 0 };
    for (const state of this.#keys.values()) {
      state.retryAt = 0;
      state.waitFrom = 0;
      // A connection does not survive that the machine sleeps.
      state.waiting?.abort();
    }
    this.#wake.up();
  }

  /** Exchanges documents about a license key at once, for a caller. Ends a wait at the issuer. */
  async exchange(
    licenseKey: string,
    want: Want,
    signal: AbortSignal = this.#parts.lifetime,
  ): Promise<Exchanged> {
    return await this.inTurn(licenseKey, async () => {
      const exchanged = await this.#parts.exchanges.exchange(licenseKey, want, signal);
      // The end of this process says nothing about the issuer.
      if (!signal.aborted) this.#learn(licenseKey, exchanged);
      return exchanged;
    });
  }

  /** Does something about a license key while no exchange about it is under way. */
  async inTurn<Value>(licenseKey: string, work: () => Promise<Value>): Promise<Value> {
    this.#noteKey(licenseKey);
    const state = this.#keys.get(licenseKey);
    state?.waiting?.abort();
    if (state !== undefined) state.busy += 1;
    try {
      using _ = await this.#mutex.enter(licenseKey, ['state'], this.#parts.lifetime);
      return await work();
    } finally {
      if (state !== undefined) state.busy -= 1;
      this.#noteKey(licenseKey);
    }
  }

  /** A use was counted: it is sent at once. */
  counted(licenseKey: string): void {
    this.#noteKey(licenseKey);
    const state = this.#keys.get(licenseKey);
    if (state === undefined) return;
    state.waitFrom = this.#parts.clock.monotonic() + quietMs;
    state.waiting?.abort();
  }

  /** Asks again for a disabled license, whose state may have changed. */
  refresh(licenseKey: string): void {
    const state = this.#keys.get(licenseKey);
    const { monotonic } = this.#times();
    if (state === undefined || monotonic - state.refreshedAt < disabledMs) return;
    state.refreshedAt = monotonic;
    state.isAsked = true;
    this.#wake.up();
  }

  #times(): { now: number; monotonic: number } {
    const { clock } = this.#parts;
    return { now: clock.now(), monotonic: clock.monotonic() };
  }

  #noteKey(licenseKey: string): void {
    this.#due.noteChange((held) => this.#note(held));
    const held = this.#parts.reader.heldLeases.get(licenseKey);
    if (held === null) this.#keys.delete(licenseKey);
    else this.#note(held);
    this.#wake.up();
  }

  #note(held: HeldLease): void {
    const known = this.#keys.get(held.licenseKey);
    const canWait = mayHaveSeat(held) && held.wanted === 'active' && pendingUses(held) === 0;
    const facts = { dueAt: this.#due.at(held), canWait };
    // What is due at once does not wait at the issuer.
    if (facts.dueAt === 0) known?.waiting?.abort();
    if (known !== undefined) Object.assign(known, facts);
    else this.#keys.set(held.licenseKey, newKeyState(facts));
    this.#warn(held);
  }

  /** Starts what is due, as far as the limits allow. */
  #start(): void {
    const { now, monotonic } = this.#times();
    const isAway = this.#away !== null && this.#away.until > monotonic;
    const waitable: [string, KeyState][] = [];
    for (const [licenseKey, state] of this.#keys) {
      if (state.busy > 0) continue;
      if (state.dueAt <= now || state.isAsked) {
        if (isAway || state.retryAt > monotonic || this.#exchanging >= maxExchanges) continue;
        this.#exchanging += 1;
        this.#task(licenseKey, state, async () => {
          const want = dueWant(now, { isAsked: state.isAsked, dueAt: (held) => this.#due.at(held) });
          state.isAsked = false;
          await this.exchange(licenseKey, want, this.#ending).finally(() => (this.#exchanging -= 1));
        });
        // One request finds out whether the issuer is back.
        if (this.#away !== null) break;
      } else if (state.canWait && state.waitFrom <= monotonic) waitable.push([licenseKey, state]);
    }
    if (isAway || this.#pause.until > monotonic) return;
    // In turns: the license key that has not waited for the longest time is first.
    waitable.sort(([, left], [, right]) => left.waitedAt - right.waitedAt);
    for (const [licenseKey, state] of waitable.slice(0, Math.max(0, maxWaits - this.#waiting))) {
      this.#waiting += 1;
      this.#task(licenseKey, state, async () => {
        await this.#waitForChange(licenseKey, state).finally(() => (this.#waiting -= 1));
      });
    }
  }

  #task(licenseKey: string, state: KeyState, work: () => Promise<void>): void {
    state.busy += 1;
    const task: Promise<void> = work()
      .catch((error: unknown) => this.#fail(licenseKey, state, error))
      .finally(() => {
        state.busy -= 1;
        this.#tasks.delete(task);
        this.#wake.up();
      });
    this.#tasks.add(task);
  }

  /** A full disk ends. Every other error of the store ends the process. */
  #fail(licenseKey: string, state: KeyState, error: unknown): void {
    if (this.#parts.lifetime.aborted) return;
    if (error instanceof StorageError && error.fault === 'full') {
      state.failures += 1;
      state.retryAt = this.#parts.clock.monotonic() + this.#backoffMs(state.failures);
      return;
    }
    this.#parts.log.error({ licenseKey, err: error }, 'the renewal of a lease failed');
    this.#storeError = error;
  }

  async #waitForChange(licenseKey: string, state: KeyState): Promise<void> {
    const { clock, exchanges, lifetime, reader } = this.#parts;
    const ending = new AbortController();
    // Before the turn: who comes meanwhile must not wait for the whole time.
    state.waiting = ending;
    using _ = await this.#mutex.enter(licenseKey, ['state'], lifetime);
    const began = clock.monotonic();
    try {
      if (ending.signal.aborted) return;
      const signal = AbortSignal.any([lifetime, ending.signal]);
      const kindBefore = reader.heldLeases.get(licenseKey)?.document?.kind;
      const changed = await exchanges.waitForChange(licenseKey, this.#waitS, signal);
      const took = clock.monotonic() - began;
      if (ending.signal.aborted && changed?.kind !== 'done') return;
      if (changed?.kind === 'away') {
        this.#waitFailed(changed, took, state);
        return;
      }
      this.#pause = { failures: 0, until: 0 };
      const isSameKind = changed?.kind === 'done' && changed.held.document?.kind === kindBefore;
      // Does the issuer answer without waiting?
      if (took < noWaitMs && (changed === null || isSameKind))
        state.waitFrom = clock.monotonic() + longestWaitS * 1000;
      if (changed === null) this.#answered();
      else this.#learn(licenseKey, changed);
      if (changed?.kind === 'refused') state.waitFrom = state.retryAt;
    } finally {
      state.waiting = null;
      state.waitedAt = clock.monotonic();
      this.#noteKey(licenseKey);
    }
  }

  /** A proxy between may cut connections sooner than we wait: the next wait is shorter. */
  #waitFailed(
    { detail, retryAfterS }: Extract<Exchanged, { kind: 'away' }>,
    took: number,
    state: KeyState,
  ): void {
    const now = this.#parts.clock.monotonic();
    // Waits that are cut together are one failure.
    const isFirst = this.#pause.until <= now;
    if (isFirst && took >= shortestWaitS * 1000)
      this.#waitS = Math.max(shortestWaitS, Math.floor(this.#waitS / 2));
    const failures = this.#pause.failures + (isFirst ? 1 : 0);
    const waitMs = Math.max(this.#backoffMs(failures), (retryAfterS ?? 0) * 1000);
    state.waitFrom = now + waitMs;
    this.#pause = { failures, until: state.waitFrom };
    this.#parts.log.debug({ detail, waitMs }, 'waiting for changes at the issuer of leases failed');
    this.#notAnswered(detail);
  }

  /** Learns from the result of an exchange when to try again. */
  #learn(licenseKey: string, exchanged: Exchanged): void {
    const { clock, log } = this.#parts;
    const state = this.#keys.get(licenseKey);
    if (exchanged.kind === 'away') {
      const failures = (this.#away?.failures ?? 0) + 1;
      const waitMs = Math.max(this.#backoffMs(failures), (exchanged.retryAfterS ?? 0) * 1000);
      if (failures === 1) log.warn({ detail: exchanged.detail }, 'the issuer of leases does not answer');
      this.#away = { failures, until: clock.monotonic() + waitMs };
      this.#notAnswered(exchanged.detail);
    } else this.#answered();
    if (state === undefined) return;
    if (exchanged.kind === 'done') {
      state.lastError = null;
      const isDueAgain = this.#due.at(exchanged.held) <= clock.now();
      const hasMoreUses = pendingUses(exchanged.held) > 0;
      // Without more uses, the answer was an old one, or one of an issuer whose clock is slow.
      state.failures = isDueAgain && !hasMoreUses ? state.failures + 1 : 0;
      const waitMs = hasMoreUses ? betweenMs : this.#backoffMs(state.failures + 2);
      state.retryAt = isDueAgain ? clock.monotonic() + waitMs : 0;
      return;
    }
    const { detail } = exchanged.kind === 'refused' ? exchanged.problem : exchanged;
    if (exchanged.kind === 'refused' && state.lastError !== detail)
      log.warn({ licenseKey, code: exchanged.problem.code, detail }, 'the issuer of leases has refused');
    state.lastError = detail;
    state.failures += 1;
    // A refusal does not end by itself soon.
    const failures = exchanged.kind === 'refused' ? state.failures + 5 : state.failures;
    state.retryAt = clock.monotonic() + this.#backoffMs(failures);
  }

  #answered(): void {
    if (this.#away !== null) this.#parts.log.info({}, 'the issuer of leases answers again');
    this.#away = null;
    this.#contact = { ...this.#contact, lastSuccessAt: this.#parts.clock.now() };
  }

  #notAnswered(detail: string): void {
    this.#contact = { ...this.#contact, lastError: detail, lastErrorAt: this.#parts.clock.now() };
  }

  /** At least half of the longest wait. */
  #backoffMs(failures: number): number {
    return backoffMs(defaultBackoffPolicy, failures, 0.5 + this.#parts.fraction() / 2);
  }

  /** How long nothing is due, in ms. */
  #idleMs(): number {
    const { now, monotonic } = this.#times();
    let idleMs = lookMs;
    const awayMs = this.#away === null ? 0 : this.#away.until - monotonic;
    const pauseMs = Math.max(awayMs, this.#pause.until - monotonic);
    for (const state of this.#keys.values()) {
      if (state.busy > 0) continue;
      const dueMs = Math.max(state.isAsked ? 0 : state.dueAt - now, state.retryAt - monotonic, awayMs);
      const waitMs =
        state.canWait && this.#waiting < maxWaits ? Math.max(state.waitFrom - monotonic, pauseMs) : Infinity;
      idleMs = Math.min(idleMs, dueMs, waitMs);
    }
    // What is due now waits for the end of a task, which wakes the loop.
    return idleMs <= 0 && this.#exchanging + this.#waiting > 0 ? lookMs : Math.max(shortestIdleMs, idleMs);
  }

  /** Logs once each that a lease ends in 14, 7 and 1 days. */
  #warn(held: HeldLease): void {
    const state = this.#keys.get(held.licenseKey);
    const days = warningOf(held, this.#parts.clock.now());
    if (state === undefined || days === null || held.document?.kind !== 'lease') return;
    const { expiresAt } = held.document;
    const warned = `${expiresAt} ${days}`;
    if (state.warned === warned) return;
    state.warned = warned;
    const { licenseKey, productKey } = held;
    const fields = {
      licenseKey,
      product: productKey,
      until: formatDatetime(expiresAt),
      detail: state.lastError,
    };
    this.#parts.log.warn(
      fields,
      `a lease ends in ${counted(days, 'day')} or sooner, and could not be renewed`,
    );
  }
}
