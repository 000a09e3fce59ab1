import { DatabaseSync } from 'node:sqlite';
import type { Coupon, CouponTerms } from '../../../src/domain/checkout/coupon.ts';
import type { Redemption } from '../../../src/domain/checkout/quote.ts';
import { isFailure } from '../../../src/service/access/records.ts';
import type { KnownAnswer, PushAnswer } from '../../../src/service/ports.ts';
import { runUseCase } from '../../../src/service/run.ts';
import type { Transaction } from '../../../src/service/tables.ts';
import type { Writer } from '../../../src/service/writer.ts';
import { createTables } from '../../../src/store/sqlite/files/migrations.ts';
import { localWriter } from '../../../src/store/sqlite/local-writer.ts';
import { prepareTransaction } from '../../../src/store/sqlite/tables.ts';
import { readPushReply } from '../../../src/upstream/sync-wire.ts';
import { readOperation, serializePush } from '../../../src/wire/sync.ts';
import { buildCart, buildTerms } from '../builders/coupon-builders.ts';
import type { VirtualClock } from './virtual-clock.ts';

const accountId = 'default';
const tenant = { accountId, productKey: null };

type Sent = { agent: string; seq: number; operations: readonly { id: string }[] };

/** The coupons of an authority in memory: what it does with pushes is what a real one does. It sells `press`. */
export class CouponAuthority implements Disposable {
  readonly store: Transaction;
  readonly writer: Writer;
  readonly #database = new DatabaseSync(':memory:');

  constructor(clock: VirtualClock) {
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

  /** A restore from a backup of before all pushes, without these coupons, whose ids are given again. */
  lose(codes: readonly string[], orders: readonly string[]): void {
    const { coupons, redemptions, sync } = this.store;
    for (const order of orders) redemptions.remove(accountId, order);
    for (const { id, code } of this.list()) if (codes.includes(code)) coupons.remove(id);
    this.#database.exec(
      "UPDATE sqlite_sequence SET seq = (SELECT coalesce(max(id), 0) FROM coupon) WHERE name = 'coupon'",
    );
    for (const { number } of sync.list({ tenant }, { limit: 10, offset: 0 })) sync.remove(number);
    sync.pruneOutcomes(Number.MAX_SAFE_INTEGER, 100);
  }

  async push(body: string): Promise<PushAnswer> {
    const { agent: agentId, seq, operations } = JSON.parse(body) as Sent;
    const command = { agentId, tenant, seq, digest: body, operations: operations.map(readOperation) };
    const applied = await this.writer.write('applyPush', command);
    if (!applied.ok) {
      const { code, sequence } = applied.problem;
      if (code === 'sequence_reused') return { kind: 'reused' };
      return { kind: 'out_of_sequence', last: sequence?.last ?? 0, epoch: sequence?.epoch ?? '' };
    }
    const data = serializePush({ ...applied.value, epoch: this.store.sync.epoch() });
    const ids = operations.map(({ id }) => id);
    const read = readPushReply(JSON.parse(JSON.stringify({ data })) as Record<string, unknown>, { seq, ids });
    if ('fault' in read) throw new Error(read.fault);
    return read.value;
  }

  known(ids: readonly string[]): KnownAnswer {
    const outcomes = new Map(this.store.sync.outcomes(accountId, ids).map((each) => [each.id, each]));
    return ids.map((id) => {
      const { outcome, code } = outcomes.get(id) ?? { outcome: 'not_seen' as const, code: null };
      return { id, outcome, code };
    });
  }

  [Symbol.dispose](): void {
    this.#database.close();
  }
}
