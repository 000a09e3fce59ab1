import { isAnswer, type Outcome } from '../domain/outbox/outcome.ts';
import type { Clock, Log } from '../service/ports.ts';

/** How soon after the first refusal of a credential a read asks whether it is really refused, in ms. */
const firstPauseMs = 1_000;
/** How long what goes up under a refused credential rests before a read asks again, in ms. */
const refusedPauseMs = 15 * 60_000;

/** Whose credential: the id of a product for its secret, or (null) the API key, by which coupons go up. */
export type CredentialOwner = string | null;

export type CredentialSettings = {
  /** The ids of the configured products, each with its secret. */
  productIds: readonly string[];
  /** The key by which people know a product. */
  productKeyOf: (productId: string) => string;
  hasApiKey: boolean;
};

type CredentialStatesParts = { clock: Clock; log: Log; settings: () => CredentialSettings };

/** Which credentials there are to send under, and which of them the upstream refuses. */
export class CredentialStates {
  readonly #parts: CredentialStatesParts;
  /** Whose credential was refused, and when a read may ask again. */
  readonly #refused = new Map<CredentialOwner, { retryAt: number }>();

  /** `Clock.elapsed` when the credentials may last have changed. */
  #forgottenAt = -Infinity;

  constructor(parts: CredentialStatesParts) {
    this.#parts = parts;
  }

  /** Whether there is a credential to send under. A product may have left the configuration before its operations. */
  isConfigured(owner: CredentialOwner): boolean {
    const { productIds, hasApiKey } = this.#parts.settings();
    return owner === null ? hasApiKey : productIds.includes(owner);
  }

  /** Those that the upstream refuses, and when a read may ask again (`Clock.elapsed`). */
  refused(): ReadonlyMap<CredentialOwner, { retryAt: number }> {
    return this.#refused;
  }

  /** Whether the upstream refuses whatever it could be asked under: the secret of each product, else the API key. */
  areAllRefused(): boolean {
    const { productIds } = this.#parts.settings();
    const owners: readonly CredentialOwner[] = productIds.length > 0 ? productIds : [null];
    return owners.every((owner) => this.#refused.has(owner));
  }

  /** Takes note of what an outcome says of a credential; null: nothing new. */
  observe(outcome: Outcome<unknown>, owner: CredentialOwner, sentAt: number): 'refused' | 'accepted' | null {
    // Nothing was sent, or it was just taken out of the configuration: no refusal that anybody could mend.
    if (!this.isConfigured(owner)) return null;
    // The credential may have been another one when the request was sent.
    if (sentAt < this.#forgottenAt) return null;
    const { clock, log, settings } = this.#parts;
    const whose = owner === null ? { coupons: true } : { product: settings().productKeyOf(owner) };
    if (outcome.outcome === 'not_applied' && outcome.reason === 'unauthorized') {
      const before = this.#refused.get(owner);
      // It was on its way when another one was refused.
      if (before !== undefined && clock.elapsed() < before.retryAt) return null;
      if (before === undefined) {
        const hint = 'put the right one into the configuration and reload, or run: latchkey sync resume';
        log.error({ ...whose, error: outcome.detail, hint }, 'the upstream refuses our credential');
      }
      // What refuses one key may accept the credential all the same: another key is asked for soon.
      const pauseMs = before === undefined ? firstPauseMs : refusedPauseMs;
      this.#refused.set(owner, { retryAt: clock.elapsed() + pauseMs });
      return 'refused';
    }
    if (!isAnswer(outcome) || !this.#refused.delete(owner)) return null;
    log.info(whose, 'the upstream accepts our credential again');
    return 'accepted';
  }

  /** Takes none for refused any more: it may be another one now. */
  forget(): void {
    this.#refused.clear();
    this.#forgottenAt = this.#parts.clock.elapsed();
  }
}
