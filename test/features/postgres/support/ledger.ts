import { deepStrictEqual as equal, ok } from 'node:assert';
import type { Database } from '../../../../src/features/postgres/store/database.ts';

/** The redemption limit of the coupon that all orders use. */
export const redemptionLimit = 20;
/** The initial uses of the licenses that are used and unused, so that no count ever reaches 0. */
export const firstUses = 1_000_000;

/** The response to a change that is sent once. */
export type Told = 'done' | 'undone' | 'unknown';

/** The responses that callers of an authority got, to be compared with the stored data. */
export class Ledger {
  /** The prefix of all names in this ledger. */
  readonly name: string;
  /** The counts that the uses of one license were answered with. */
  readonly counted: number[] = [];
  /** The number of changes and the sum of their uses, by license. */
  readonly changed: Map<string, { changes: number; uses: number }> = new Map();
  /** The response to the only use of each license, by license. */
  readonly usedOnce: Map<string, Told> = new Map();
  /** The number of each response, by license; many callers use these licenses without an idempotency key. */
  readonly usedByMany: Map<string, Record<Told, number>> = new Map();
  /** By purchase id. */
  readonly purchases: Map<string, { licenseKey: string; isRefunded: boolean }> = new Map();
  /** Coupon ids by code. */
  readonly coupons: Map<string, number> = new Map();
  readonly orders: Set<string> = new Set();
  /**
   * The number of requests with a final response, and how many of them repeated an answered request under its
   * key.
   */
  answered = 0;
  repeated = 0;
  /** How often the coupon of all orders was redeemed, and how often it was exhausted. */
  redeemed = 0;
  usedUp = 0;
  /** Missing responses, and responses that ask for a retry. */
  readonly wrong: Map<string, number> = new Map();

  constructor(name: string) {
    this.name = name;
  }

  noteWrong(what: string): void {
    this.wrong.set(what, (this.wrong.get(what) ?? 0) + 1);
  }

  noteChange(licenseKey: string, uses: number): void {
    const before = this.changed.get(licenseKey) ?? { changes: 0, uses: 0 };
    this.changed.set(licenseKey, { changes: before.changes + 1, uses: before.uses + uses });
  }

  noteUse(licenseKey: string, told: Told): void {
    const before = this.usedByMany.get(licenseKey) ?? { done: 0, undone: 0, unknown: 0 };
    this.usedByMany.set(licenseKey, { ...before, [told]: before[told] + 1 });
  }

  /** A summary in one line. */
  get summary(): string {
    const sum = (counts: Iterable<number>): number => [...counts].reduce((all, count) => all + count, 0);
    const changes = sum([...this.changed.values()].map((each) => each.changes));
    const many = sum(
      [...this.usedByMany.values()].map(({ done, undone, unknown }) => done + undone + unknown),
    );
    const did = [
      `${this.counted.length + changes} changes under a key`,
      `${this.usedOnce.size + many} uses without`,
      `${this.purchases.size} sales`,
      `${this.coupons.size} coupons`,
      `${this.redeemed} redemptions, ${this.usedUp} refused at the limit of ${redemptionLimit}`,
      `${this.repeated} requests repeated by their key`,
    ];
    const wrong = [...this.wrong].map(([what, count]) => `${count} ${what}`);
    return `${this.name}: ${this.answered} answers: ${[...did, ...wrong].join('; ')}`;
  }
}

/** Fails if an answered change is not stored, or a stored change was not answered. */
export async function compare(ledger: Ledger, database: Database): Promise<void> {
  await compareLicenses(ledger, database);
  await compareSales(ledger, database);
  await compareCheckout(ledger, database);
}

async function compareLicenses({ name, ...ledger }: Ledger, { query, names }: Database): Promise<void> {
  const rows = await query(
    `SELECT license_key AS key, uses, changes FROM ${names.of('license')}
      WHERE license_key LIKE $1 AND changes > 0`,
    [`${name}-%`],
  );
  const stored = new Map(
    rows.map(({ key, uses, changes }) => [String(key), { changes: Number(changes), uses: Number(uses) }]),
  );
  const of = (key: string): { changes: number; uses: number } => stored.get(key) ?? { changes: 0, uses: 0 };
  const count = ledger.counted.length;
  equal(of(`${name}-COUNTED`), { changes: count, uses: count });
  // Each use was answered with a different count.
  const inOrder = ledger.counted.toSorted((one, other) => one - other);
  equal(
    inOrder,
    Array.from({ length: count }, (_, index) => index + 1),
  );
  for (const [key, { changes, uses }] of ledger.changed) {
    equal([key, of(key)], [key, { changes, uses: firstUses + uses }]);
  }
  const usesOf = { done: [1], undone: [0], unknown: [0, 1] };
  for (const [key, told] of ledger.usedOnce) {
    equal([key, told, usesOf[told].includes(of(key).uses)], [key, told, true]);
  }
  for (const [key, { done, unknown }] of ledger.usedByMany) {
    const { uses } = of(key);
    ok(uses >= done && uses <= done + unknown, `${key}: ${uses}, told ${done} and perhaps ${unknown}`);
  }
}

async function compareSales({ name, purchases }: Ledger, { query, names }: Database): Promise<void> {
  const rows = await query(
    `SELECT purchase_id, license_key, refunded_at FROM ${names.of('purchase')} JOIN ${names.of('license')} USING (license_key)
      WHERE product_key = $1 ORDER BY purchase_id COLLATE "C"`,
    [`${name}-PRESS`],
  );
  const stored = rows.map((row) => [row['purchase_id'], row['license_key'], row['refunded_at'] !== null]);
  const told = [...purchases].map(([id, { licenseKey, isRefunded }]) => [id, licenseKey, isRefunded]);
  equal(
    stored,
    told.toSorted(([one], [other]) => (String(one) < String(other) ? -1 : 1)),
  );
  const acts = await query(
    `SELECT action, count(*) AS count FROM ${names.of('audit_event')}
      WHERE action IN ('purchase.add', 'purchase.refund') AND subject = ANY ($1::text[]) GROUP BY action ORDER BY action`,
    [[...purchases.keys()]],
  );
  const refunds = told.filter(([, , isRefunded]) => isRefunded === true).length;
  equal(
    acts.map(({ action, count }) => [action, Number(count)]),
    [
      ['purchase.add', told.length],
      ['purchase.refund', refunds],
    ].filter(([, count]) => count !== 0),
  );
}

async function compareCheckout({ name, coupons, orders }: Ledger, { query, names }: Database): Promise<void> {
  const made = await query(`SELECT code, id FROM ${names.of('coupon')} WHERE code LIKE $1`, [`${name}-C-%`]);
  equal(new Map(made.map(({ code, id }) => [String(code), Number(id)])), coupons);
  const redeemed = await query(
    `SELECT order_id FROM ${names.of('redemption')} JOIN ${names.of('coupon')} ON coupon.id = coupon_id WHERE code = $1`,
    [`${name}-LIMITED`],
  );
  equal(new Set(redeemed.map((row) => String(row['order_id']))), orders);
  ok(redeemed.length <= redemptionLimit);
  equal(await redemptionsOf({ name }, { query, names }), redeemed.length);
}

/** How often the limited coupon is redeemed, by the store's count. */
export async function redemptionsOf(
  { name }: Pick<Ledger, 'name'>,
  { query, names }: Pick<Database, 'query' | 'names'>,
): Promise<number> {
  const [row] = await query(
    `SELECT count FROM ${names.of('redemption_count')} JOIN ${names.of('coupon')} ON coupon.id = coupon_id WHERE code = $1`,
    [`${name}-LIMITED`],
  );
  return Number(row?.['count'] ?? 0);
}
