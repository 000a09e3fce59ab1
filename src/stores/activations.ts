import { activatedKey, type ActivationAttempt } from '../domain/agent/activated-key.ts';
import { notSent, type Outcome } from '../domain/outbox/outcome.ts';
import type { QueueName } from '../domain/outbox/operation.ts';
import type { License } from '../domain/license.ts';
import type { Clock, Log } from '../service/ports.ts';
import type { Reader } from '../service/tables.ts';
import type { Writer } from '../service/writer.ts';
import type { Activated, Activation, StoreClient } from './store.ts';

/** The turns of requests at the upstream. */
export type Turns = {
  admit(
    priority: 'caller' | 'refresh',
    signal: AbortSignal,
    requester?: string,
  ): Promise<{ admitted: true } | { admitted: false; detail: string }>;
  observe(outcome: Outcome<unknown>, request: { owner: string; subject: string; sentAt?: number }): void;
};

type ActivationParts = {
  reader: Pick<Reader, 'activationAttempts' | 'snapshots'>;
  writer: Writer;
  clock: Pick<Clock, 'now' | 'monotonic'>;
  /** For how long a request may still arrive after it was sent (`upstream.timeout`, `sync.reconcile_after`), in ms. */
  inDoubtMs: () => number;
  log: Pick<Log, 'warn'>;
  /** Ends requests in flight. */
  lifetime: AbortSignal;
  client: Pick<StoreClient, 'activate' | 'findsActivations'>;
  limiter: Turns;
  fetcher: { learnLicense(productId: string, license: License): Promise<void> };
  mutex: { enter(name: string, queues: readonly QueueName[], signal: AbortSignal): Promise<Disposable> };
};

/**
 * Activates license keys at a store where each request takes another seat. Only the store can give a seat, so the caller
 * waits, and the request is sent once. An attempt is stored before it is sent. If its answer is lost, the next activation of
 * the same license key and name asks first what the attempt has made.
 */
export class Activations {
  readonly #parts: ActivationParts;

  constructor(parts: ActivationParts) {
    this.#parts = parts;
  }

  /** `caller`: aborts when the caller leaves. What was sent by then is recorded all the same. */
  async activate(activation: Activation, caller: AbortSignal): Promise<Outcome<Activated>> {
    const { reader, mutex, lifetime } = this.#parts;
    const { licenseKey, name } = activation;
    const waiting = AbortSignal.any([caller, lifetime]);
    using _guard = await mutex.enter(`${licenseKey}\n${name}`, ['state'], waiting);
    const earlier = reader.activationAttempts.get(licenseKey, name);
    const found = earlier === null ? null : await this.#find(activation, earlier, waiting);
    // While the store does not say what the attempt has made, another one could take a second seat.
    if (found !== null && found.outcome !== 'applied') return found;
    const outcome =
      found !== null && found.value !== null
        ? { ...found, value: found.value }
        : await inTurn(this.#parts, activation, waiting, () => this.#send(activation));
    if (outcome.outcome === 'applied') await this.#record(activation, outcome.value, caller);
    else if (outcome.outcome === 'not_applied' && outcome.isHeldBack !== true)
      await this.#end(activation, null);
    return outcome;
  }

  /** Null: the store does not say it to this agent. */
  async #find(
    activation: Activation,
    earlier: ActivationAttempt,
    waiting: AbortSignal,
  ): Promise<Outcome<Activated | null> | null> {
    const { client, log, lifetime, reader } = this.#parts;
    const { sentAt } = earlier;
    const isStored = (activationId: string): boolean =>
      reader.snapshots.get(activatedKey(activation.licenseKey, activationId)) !== null;
    const what =
      'the answer to an earlier activation was lost: it may have taken a seat whose id is not known';
    const find = client.findsActivations?.(earlier) ?? null;
    if (find === null) {
      const hint = 'with upstream.access_token, the agent asks the store which activation it was';
      log.warn({ sentAt, hint }, what);
      return null;
    }
    const ask = () => find(activation, earlier, lifetime, isStored);
    const found = await inTurn(this.#parts, activation, waiting, ask);
    if (found.outcome !== 'applied' || found.value !== null) return found;
    const ageMs = Math.abs(this.#parts.clock.now() - sentAt);
    if (ageMs < this.#parts.inDoubtMs())
      return notSent('unreachable', 'an earlier activation of this name may still be under way');
    log.warn({ sentAt }, what);
    return found;
  }

  async #send(activation: Activation): Promise<Outcome<Activated>> {
    const { writer, client, lifetime } = this.#parts;
    const { licenseKey, name } = activation;
    const begun = await writer.write('beginActivation', { licenseKey, name });
    if (!begun.ok) throw new Error(begun.problem.detail);
    const sent = client.activate?.(activation, begun.value, lifetime);
    return (await sent) ?? notSent('rejected', 'this store has no activations');
  }

  async #record(activation: Activation, { activationId, licenses }: Activated, caller: AbortSignal) {
    // Before the caller has the answer, the next activation finds it by its id.
    if (activationId !== null) await this.#end(activation, activationId);
    for (const license of licenses) await this.#parts.fetcher.learnLicense(activation.productId, license);
    if (!caller.aborted || activationId === null) await this.#end(activation, null);
  }

  async #end({ licenseKey, name }: Activation, activationId: string | null): Promise<void> {
    await this.#parts.writer.write('endActivationAttempt', { licenseKey, name, activationId });
  }
}

/** Sends a request when it is its turn. `waiting`: aborts when its caller leaves. */
export async function inTurn<Value>(
  { limiter, clock }: Pick<ActivationParts, 'limiter' | 'clock'>,
  { productId: owner, licenseKey: subject }: Pick<Activation, 'productId' | 'licenseKey'>,
  waiting: AbortSignal,
  send: () => Promise<Outcome<Value>>,
): Promise<Outcome<Value>> {
  const admission = await limiter.admit('caller', waiting);
  if (!admission.admitted) return notSent('unreachable', admission.detail);
  const sentAt = clock.monotonic();
  const outcome = await send();
  limiter.observe(outcome, { owner, subject, sentAt });
  return outcome;
}
