import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { StorageError } from '../../../src/service/ports.ts';
import { Database } from '../../../src/store/postgres/database.ts';
import { migrate } from '../../../src/store/postgres/migrations.ts';
import type { PostgresWriter } from '../../../src/store/postgres/writer.ts';
import { givenCart } from '../../support/coupon-given.ts';
import { startFaultProxy } from '../../support/fault-proxy.ts';
import { writerOn } from '../../support/postgres-writer.ts';
import { hasPostgres, startPostgres } from '../../support/postgres.ts';
import { account, givenLicense, product } from '../../support/store-given.ts';

const copies = 4;
const clientsOfACopy = 16;
const requestsOfAClient = 20;
const limit = 50;
const reach = { accountId: account.accountId, productKey: null };
const keyed = ['K-1', 'K-2', 'K-3'];
const unkeyed = ['U-1', 'U-2', 'U-3'];

/** What callers were told, to be compared with what is stored. */
class Ledger {
  readonly done = new Map<string, number>();
  readonly doubtful = new Map<string, number>();
  readonly orders = new Set<string>();

  count(counts: 'done' | 'doubtful', licenseKey: string): void {
    this[counts].set(licenseKey, (this[counts].get(licenseKey) ?? 0) + 1);
  }
}

/** A client that sends its request again until it was answered, as it may under an idempotency key. */
async function persist<Value>(send: () => Promise<Value>): Promise<Value> {
  for (;;) {
    try {
      return await send();
    } catch (error) {
      if (!(error instanceof StorageError)) throw error;
    }
  }
}

async function useKeyed(writer: PostgresWriter, licenseKey: string, ledger: Ledger): Promise<void> {
  const idempotency = { credential: 'c', key: randomUUID(), fingerprint: 'f' };
  const used = await persist(async () => {
    const result = await writer.write(
      'changeLicense',
      { reach, licenseKey, trigger: 'usage' },
      { idempotency },
    );
    // Its first try is still at work.
    if (!result.ok && result.problem.code === 'idempotency_key_in_use')
      throw new StorageError('unavailable', null);
    return result;
  });
  expect(used.ok).toBe(true);
  ledger.count('done', licenseKey);
}

async function useUnkeyed(writer: PostgresWriter, licenseKey: string, ledger: Ledger): Promise<void> {
  try {
    const used = await writer.write('changeLicense', { reach, licenseKey, trigger: 'usage' });
    expect(used.ok).toBe(true);
    ledger.count('done', licenseKey);
  } catch (error) {
    if (!(error instanceof StorageError)) throw error;
    if (error.fault === 'unknown') ledger.count('doubtful', licenseKey);
  }
}

async function redeem(writer: PostgresWriter, ledger: Ledger): Promise<void> {
  const order = randomUUID();
  const cart = givenCart({ productKey: 'press' });
  const result = await persist(() => writer.write('redeemCoupon', { accountId: 'default', order, cart }));
  if (result.ok) ledger.orders.add(order);
  else if (result.problem.code !== 'coupon_not_redeemable') throw new Error(result.problem.detail);
}

test.skipIf(!hasPostgres)(
  'what copies have answered is what is stored, however often their connections are cut',
  async () => {
    await using server = await startPostgres();
    await using stack = new AsyncDisposableStack();
    const proxies = await Promise.all(
      Array.from({ length: copies }, () => startFaultProxy(server.address.port)),
    );
    for (const proxy of proxies) stack.use(proxy);
    const own = server.settings();
    const near = stack.use(new Database(own));
    await migrate(near);
    await near.lend(async (connection) => {
      await connection.begin(null, []);
      const { accounts, products, licenses } = connection.transaction;
      await accounts.add(account, 'digest');
      await products.add(product, 'digest');
      for (const licenseKey of [...keyed, ...unkeyed]) await licenses.add(givenLicense({ licenseKey }));
      await connection.commit();
    });
    const terms = {
      scope: { type: 'multi' },
      discount: { type: 'percent', percentOff: 10 },
      code: 'SPRING',
      startAt: null,
      endAt: null,
      minimumPurchaseAmount: null,
      usageLimit: limit,
      notes: null,
    } as const;
    await writerOn(near).write('createCoupon', { accountId: 'default', terms });
    const ledger = new Ledger();
    const work = proxies.flatMap(({ port }) => {
      const far = { ...own, address: { ...own.address, host: '127.0.0.1', port } };
      const writer = writerOn(stack.use(new Database(far)));
      return Array.from({ length: clientsOfACopy }, async () => {
        for (let request = 0; request < requestsOfAClient; request += 1) {
          const place = request % 3;
          await useKeyed(writer, keyed[place] ?? '', ledger);
          await useUnkeyed(writer, unkeyed[place] ?? '', ledger);
          if (place === 0) await redeem(writer, ledger);
        }
      });
    });
    const ended = new AbortController();
    const cutting = (async () => {
      for (let turn = 0; !ended.signal.aborted; turn += 1) {
        proxies[turn % copies]?.resetAll();
        await sleep(100, undefined, { signal: ended.signal }).catch(() => undefined);
      }
    })();
    await Promise.all(work);
    ended.abort();
    await cutting;
    const usesOf = async (licenseKey: string) => (await near.reader.licenses.get(licenseKey))?.uses ?? -1;
    for (const licenseKey of keyed) expect(await usesOf(licenseKey)).toBe(ledger.done.get(licenseKey));
    for (const licenseKey of unkeyed) {
      const done = ledger.done.get(licenseKey) ?? 0;
      const uses = await usesOf(licenseKey);
      expect(uses).toBeGreaterThanOrEqual(done);
      expect(uses).toBeLessThanOrEqual(done + (ledger.doubtful.get(licenseKey) ?? 0));
    }
    // Something must have been cut, or nothing was shown.
    expect(ledger.doubtful.size).toBeGreaterThan(0);
    expect(await near.reader.redemptions.countOf('default', 1)).toBe(limit);
    expect(await near.reader.redemptions.ordersOf('default', 1, 1_000)).toHaveLength(limit);
    expect(ledger.orders.size).toBe(limit);
  },
);
