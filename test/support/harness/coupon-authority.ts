import { DatabaseSync } from 'node:sqlite';
import type { Coupon, CouponTerms } from '../../../src/domain/checkout/coupon.ts';
import type { Redemption } from '../../../src/domain/checkout/quote.ts';
import { isFailure, done, failWith, type Result } from '../../../src/domain/problem/problem.ts';
import { problems } from '../../../src/domain/problem/problem-table.ts';
import type { Outcome } from '../../../src/domain/outbox/outcome.ts';
import type { Idempotency, Keyed, StoredRedemption, UpstreamRedemption } from '../../../src/service/ports.ts';
import { runUseCase } from '../../../src/service/run.ts';
import type { Transaction } from '../../../src/service/tables.ts';
import type { Writer } from '../../../src/service/writer.ts';
import { createTables } from '../../../src/store/sqlite/files/migrations.ts';
import { localWriter } from '../../../src/store/sqlite/commit.ts';
import { prepareTransaction } from '../../../src/store/sqlite/connection.ts';
import { readRedemption, readCoupon, type JsonObject, type Parsed } from '../../../src/upstream/wire.ts';
import { classify, emptyBody, type ResponseContext } from '../../../src/upstream/classification.ts';
import { received as dialects } from '../stores/dialects.ts';
import { serializeRedemption } from '../../../src/wire/checkout.ts';
import { serializeCoupon } from '../../../src/wire/coupon.ts';
import { serializeProblem } from '../../../src/wire/response.ts';
import { buildCart, buildTerms } from '../builders/coupon-builders.ts';
import type { VirtualClock } from './virtual-clock.ts';

const accountId = 'default';

/** The coupons of an authority in memory: what it does with keyed requests is what a real one does. It sells `press`. */
export class CouponAuthority implements Disposable {
  readonly store: Transaction;
  readonly writer: Writer;
  readonly #database = new DatabaseSync(':memory:');
  readonly #clock: VirtualClock;

  constructor(clock: VirtualClock) {
    this.#clock = clock;
    createTables(this.#database);
    this.store = prepareTransaction(this.#database);
    let bytes = 0;
    const random = {
      bytes: (count: number) => new Uint8Array(count).fill((bytes += 1) % 256),
      uuid: () => `authority-${(bytes += 1)}`,
      fraction: () => 0.5,
    };
    const context = () => ({
      now: clock.now(),
      monotonic: clock.monotonic(),
      random,
      digest: (text: string) => text,
      recordsHistory: true,
    });
    const { store: transaction } = this;
    const connection = { database: this.#database, transaction, [Symbol.dispose]: () => undefined };
    this.writer = localWriter(connection, { run: runUseCase, isFailure, context });
  }

  async start(): Promise<void> {
    const start = { adminTokenDigest: 'd', place: 'there', apiKeyDigest: 'key' };
    await this.writer.write('startAuthority', start);
    await this.writer.write('addProduct', {
      accountId,
      productKey: 'press',
      name: 'Press',
      secret: 'secret-of-press',
      recurring: false,
    });
  }

  async createCoupon(changes: Partial<CouponTerms> = {}): Promise<Coupon> {
    const created = await this.writer.write('createCoupon', { accountId, terms: buildTerms(changes) });
    if (!created.ok) throw new Error(created.problem.detail);
    return created.value;
  }

  /** Redeems as another agent or the shop does. */
  async redeem(order: string): Promise<boolean> {
    return (await this.writer.write('redeemCoupon', { accountId, order, cart: buildCart({}) })).ok;
  }

  redemption(order: string): Redemption | null {
    return this.store.redemptions.get(accountId, order);
  }

  list(): Coupon[] {
    return this.store.coupons.list(accountId, { limit: 100, offset: 0 });
  }

  /** A restore from a backup without these coupons, whose ids are given again, these orders, and all stored answers. */
  lose(codes: readonly string[], orders: readonly string[]): void {
    const { coupons, redemptions, idempotency } = this.store;
    for (const order of orders) redemptions.remove(accountId, order);
    for (const { id, code } of this.list()) if (codes.includes(code)) coupons.remove(id);
    this.#database.exec(
      "UPDATE sqlite_sequence SET seq = (SELECT coalesce(max(id), 0) FROM coupon) WHERE name = 'coupon'",
    );
    idempotency.prune(Number.MAX_SAFE_INTEGER, 100);
  }

  /** Answers a keyed request as the routes of an authority do: it is carried out once. */
  async createKeyed(terms: CouponTerms, keyed: Keyed, epoch: string): Promise<Outcome<Coupon>> {
    const read = (body: JsonObject): Parsed<Coupon> => readCoupon(body, () => true);
    return await this.#answer({ request: 'createCoupon', read, keyed, epoch }, async () => {
      const created = await this.writer.write('createCoupon', { accountId, terms }, onceOf(keyed, 'coupon'));
      return created.ok ? done(serializeCoupon(created.value)) : created;
    });
  }

  async redeemKeyed(
    { order, cart, answeredAt: takenAt }: UpstreamRedemption,
    keyed: Keyed,
    epoch: string,
  ): Promise<Outcome<StoredRedemption>> {
    const read = (body: JsonObject): Parsed<StoredRedemption> => readRedemption(body, order);
    return await this.#answer({ request: 'redeem', read, keyed, epoch }, async () => {
      const command = { accountId, order, cart, takenAt };
      const redeemed = await this.writer.write('redeemCoupon', command, onceOf(keyed, `redeem ${order}`));
      return redeemed.ok ? done(serializeRedemption(redeemed.value.redemption, 'authority')) : redeemed;
    });
  }

  async voidKeyed(order: string, keyed: Keyed, epoch: string): Promise<Outcome<null>> {
    const read = (body: JsonObject): Parsed<null> =>
      body === emptyBody ? { value: null } : { fault: 'it has a body' };
    return await this.#answer({ request: 'voidRedemption', read, keyed, epoch }, async () => {
      const once = onceOf(keyed, `void ${order}`);
      const voided = await this.writer.write('voidRedemption', { accountId, order, isFromAgent: true }, once);
      return voided.ok ? done(null) : voided;
    });
  }

  async #answer<Value>(
    { request, read, keyed, epoch }: Asked<Value>,
    work: () => Promise<Result<object | null>>,
  ): Promise<Outcome<Value>> {
    const isElsewhere = keyed.epoch !== null && keyed.epoch.slice(0, 16) !== epoch.slice(0, 16);
    const result = isElsewhere ? failWith('other_store', 'This is another store.') : await work();
    const status = result.ok ? (result.value === null ? 204 : 201) : problems[result.problem.code].status;
    const body = result.ok ? { data: result.value } : serializeProblem(result.problem, 'request');
    const text = status === 204 ? '' : JSON.stringify(body);
    const now = this.#clock.now();
    const context = {
      read,
      request,
      dialect: dialects.specification,
      self: null,
      hidden: [],
      now,
      confirmed: now,
    };
    return classify({ type: 'answered', status, headers: { 'latchkey-epoch': epoch }, text }, context);
  }

  [Symbol.dispose](): void {
    this.#database.close();
  }
}

type Asked<Value> = Pick<ResponseContext<Value>, 'request' | 'read'> & { keyed: Keyed; epoch: string };

function onceOf({ id: key }: Keyed, fingerprint: string): { idempotency: Idempotency } {
  return { idempotency: { credential: 'the tenant', key, fingerprint } };
}
