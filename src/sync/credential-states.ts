import { isResponse, type Outcome } from '../domain/outbox/outcome.ts';
import type { Clock, Log } from '../service/ports.ts';
import { minuteMs } from '../domain/time.ts';

/** How long after the first refusal of a credential a read tests it, in ms. */
const firstPauseMs = 1_000;
/** How long a refused credential rests before another read tests it, in ms. */
const refusedPauseMs = 15 * minuteMs;

/** The id of a product for its secret, or null for the API key, which sends coupons. */
export type CredentialOwner = string | null;

export type CredentialSettings = {
  /** The ids of the configured products, each with its secret. */
  productIds: readonly string[];
  /** The key by which people know a product. */
  productKeyOf: (productId: string) => string;
  hasApiKey: boolean;
};

type Parts = { clock: Clock; log: Log; settings: () => CredentialSettings };

/** Which credentials are configured, and which of them the upstream refuses. */
export class CredentialStates {
  readonly #parts: Parts;
  readonly #refused = new Map<CredentialOwner, { retryAt: number }>();
  /** When the credentials may last have changed (monotonic ms, `Clock.monotonic`). */
  #resetAt = -Infinity;
  #since: number;

  constructor(parts: Parts) {
    this.#parts = parts;
    this.#since = parts.clock.now();
  }

  /** Whether a credential is configured. A product may be removed before its operations are delivered. */
  isConfigured(owner: CredentialOwner): boolean {
    const { productIds, hasApiKey } = this.#parts.settings();
    return owner === null ? hasApiKey : productIds.includes(owner);
  }

  /** The refused credentials, and when a read may test each (monotonic ms). */
  refused(): ReadonlyMap<CredentialOwner, { retryAt: number }> {
    return this.#refused;
  }

  /** Whether the upstream refuses every credential that a probe could use. */
  areAllRefused(): boolean {
    const { productIds } = this.#parts.settings();
    const owners: readonly CredentialOwner[] = productIds.length > 0 ? productIds : [null];
    return owners.every((owner) => this.#refused.has(owner));
  }

  /** Handles what a response says about a credential; null if it says nothing new. */
  observe(outcome: Outcome<unknown>, owner: CredentialOwner, sentAt: number): 'refused' | 'accepted' | null {
    // Nothing was sent, or the credential was just removed from the configuration: reload cannot fix this refusal.
    if (!this.isConfigured(owner)) return null;
    // The credential may have been another one when the request was sent.
    if (sentAt < this.#resetAt) return null;
    const { clock, log, settings } = this.#parts;
    const subject = owner === null ? { coupons: true } : { product: settings().productKeyOf(owner) };
    if (outcome.outcome === 'not_applied' && outcome.reason === 'unauthorized') {
      const before = this.#refused.get(owner);
      // The request was already under way when another one was refused.
      if (before !== undefined && clock.monotonic() < before.retryAt) return null;
      if (before === undefined) {
        const hint = 'put the right one into the configuration and reload, or run: latchkey sync resume';
        log.error({ ...subject, error: outcome.detail, hint }, 'the upstream refuses our credential');
      }
      // The upstream may refuse one key but accept the credential: another key tests it soon.
      const pauseMs = before === undefined ? firstPauseMs : refusedPauseMs;
      this.#refused.set(owner, { retryAt: clock.monotonic() + pauseMs });
      return 'refused';
    }
    if (!isResponse(outcome) || !this.#refused.delete(owner)) return null;
    log.info(subject, 'the upstream accepts our credential again');
    return 'accepted';
  }

  /** Since when this process has the credentials that it has now (epoch ms). */
  get since(): number {
    return this.#since;
  }

  /** Forgets all refusals: the credentials may be others now. */
  reset(): void {
    this.#refused.clear();
    this.#resetAt = this.#parts.clock.monotonic();
    this.#since = this.#parts.clock.now();
  }
}
