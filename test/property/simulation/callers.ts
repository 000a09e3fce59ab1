import type { LicenseOperationKind } from '../../../src/domain/outbox/operation.ts';
import { count } from './history.ts';
import { asRequest, isFaultAfterCommit } from './step-after-commit.ts';
import type { World } from './world.ts';
import { buildTerms } from '../../support/builders/coupon-builders.ts';

const accountId = 'default';

const nobody = { actor: null, requestId: null, idempotency: null };

/** The software beside the agent: it asks, goes away when the process dies, and keeps what it was answered. */
export class Callers {
  readonly #world: World;
  readonly #forEver: AbortSignal = new AbortController().signal;
  #couponCount = 0;
  /** Idempotency keys of requests that are being answered, by process: a second one is refused before it gets here. */
  readonly #underWay = new WeakMap<object, Set<string>>();

  constructor(world: World) {
    this.#world = world;
  }

  verify(key: string): void {
    void this.#verify(key);
  }

  async #verify(key: string): Promise<void> {
    const { agent, history } = this.#world;
    const tenant = this.#tenant(key);
    if (tenant === null) return;
    const isHeard = this.#listen(key);
    try {
      const answer = await agent.licenseService.verify(tenant, this.#spelling(key), this.#forEver);
      if (!answer.ok) isHeard(answer.problem.code);
    } catch (error) {
      // Of a process that is gone nothing is heard, also where its store is gone with it.
      if (!agent.isDead) history.broken.push(`a verify failed: ${String(error)}`);
    }
  }

  /** Looks at the refusal of a request that begins now: no key is unknown that the upstream always knew. */
  #listen(key: string): (code: string) => void {
    const world = this.#world;
    const { agent, removals } = world;
    return (code) => {
      const isKnown = !world.troubles.has('gateway') && !world.troubles.has('removal');
      const wasConfigured = removals === world.removals && agent === world.agent && !agent.isDead;
      // An activation that was given back is unknown.
      const isGivenBack = world.ledger.oneWay.has(key) && !world.ledger.license(key).enabled;
      if (code === 'license_not_found' && isKnown && wasConfigured && !isGivenBack) {
        world.history.broken.push(`products: ${key} is answered 404, and the upstream knows it`);
      }
    };
  }

  change(key: string, trigger: LicenseOperationKind): void {
    if (!this.#isTaken(key, trigger)) return;
    const { issued, answered } = this.#world.history;
    const name = `${this.#world.ledger.fold(key)} ${trigger}`;
    count(issued, name);
    const { store } = this.#world.behaviour;
    const amount =
      trigger === 'usage' && store?.countsSeveral === true ? this.#world.random.between(1, 5) : 1;
    void this.#ask(key, { trigger, amount, once: null }, () => count(answered, name));
  }

  /** A use under an idempotency key, often one that was asked for before: also by a process that died since. */
  useOnce(key: string): void {
    if (!this.#isTaken(key, 'usage')) return;
    const { once, issued, answered } = this.#world.history;
    const id = `${this.#world.ledger.fold(key)} ${this.#world.random.between(0, 5)}`;
    const name = `${this.#world.ledger.fold(key)} usage`;
    if (!once.has(id)) {
      once.set(id, null);
      count(issued, name);
    }
    void this.#ask(key, { trigger: 'usage', amount: 1, once: id }, (given) => {
      const before = once.get(id) ?? null;
      if (before === null) count(answered, name);
      else if (before !== given) {
        this.#world.history.broken.push(`invariant 8: ${id}: ${before}, then ${given}`);
      }
      once.set(id, given);
    });
  }

  createCoupon(): void {
    void this.#createCoupon();
  }

  async #ask(
    key: string,
    { trigger, amount, once }: { trigger: LicenseOperationKind; amount: number; once: string | null },
    onResponse: (given: string) => void,
  ): Promise<void> {
    const { agent, machine, random, troubles } = this.#world;
    const tenant = this.#tenant(key);
    if (tenant === null) return;
    const underWay = this.#underWay.get(agent) ?? new Set<string>();
    this.#underWay.set(agent, underWay);
    if (once !== null && underWay.has(once)) return;
    if (once !== null) underWay.add(once);
    const isHeard = this.#listen(key);
    const request = {
      tenant,
      licenseKey: this.#spelling(key),
      trigger,
      amount,
      actor: 'product',
      idempotency: once === null ? null : { credential: 'product', key: once, fingerprint: once },
      waitMs: troubles.has('wait') ? random.pick([0, 500, 5_000, 30_000]) : 0,
    };
    // Refusals and full disks are answers too, which promise nothing.
    const answer = await asRequest(() => agent.licenseService.change(request, this.#forEver)).catch(
      this.#refused,
    );
    if (once !== null) underWay.delete(once);
    if (answer?.ok === false) isHeard(answer.problem.code);
    // An answer of a store that was replaced meanwhile is that of a process that is gone.
    if (answer?.ok === true && machine === this.#world.machine)
      onResponse(JSON.stringify(answer.value.license));
  }

  async #createCoupon(): Promise<void> {
    const { agent, history, machine, random } = this.#world;
    // Some ask again for a code that they had asked for before.
    const isRepeated = this.#couponCount > 0 && random.chance(0.2);
    if (!isRepeated) this.#couponCount += 1;
    const code = `CODE-${isRepeated ? random.between(1, this.#couponCount) : this.#couponCount}`;
    const creating = asRequest(() =>
      agent.couponService.create(accountId, buildTerms({ code }), nobody, this.#forEver),
    );
    const created = await creating.catch(this.#refused);
    if (created?.ok === true && machine === this.#world.machine) history.coupons.push(code);
  }

  readonly #refused = (error: unknown): null => {
    if (isFaultAfterCommit(error))
      this.#world.history.broken.push('a committed change is answered as failed');
    return null;
  };

  /** Null: the product of the key is not configured, so that its secret is not accepted. */
  #tenant(key: string): { accountId: string; productKey: string | null } | null {
    const { random, troubles } = this.#world;
    const isAdmin = troubles.has('products') && random.chance(0.2);
    const productKey = this.#world.productIdOf(key);
    if (productKey === null) return null;
    return { accountId, productKey: isAdmin ? null : productKey };
  }

  /** Whether the store has a request for a change. */
  #isTaken(key: string, trigger: LicenseOperationKind): boolean {
    return this.#world.behaviour.store?.takes?.(trigger, key) !== false;
  }

  /** As people type it. */
  #spelling(key: string): string {
    const { random, troubles } = this.#world;
    if (!troubles.has('spellings') || random.chance(0.5)) return key;
    return random.pick([key.toLowerCase(), `${key.slice(0, 1)}${key.slice(1).toLowerCase()}`]);
  }
}
