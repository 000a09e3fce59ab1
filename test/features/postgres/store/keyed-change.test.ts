import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { runUseCase } from '../../../../src/service/run.ts';
import type { Database } from '../../../../src/features/postgres/store/database.ts';
import type { PostgresWriter } from '../../../../src/features/postgres/store/writer.ts';
import { startFaultProxy } from '../../../support/network/fault-proxy.ts';
import { hasPostgres, startPostgres, type PostgresServer } from '../support/postgres.ts';
import { openNodes, use, usesIn, writerOn } from '../support/postgres-writer.ts';
import { account, buildLicense } from '../../../support/builders/store-builders.ts';

const tenant = { accountId: account.accountId, productKey: null };
const soldKey = 'KEY-1';
const numbers = Array.from({ length: 20 }, (_, index) => index);
const notDone = { ok: false, problem: { code: 'license_not_found' } };

const counted = (uses: number) => ({ ok: true, value: { uses } });

function usesOf(results: readonly Awaited<ReturnType<typeof use>>[]): number[] {
  return results.map((result) => (result.ok ? result.value.uses : -1)).toSorted((one, other) => one - other);
}

describe.skipIf(!hasPostgres)('uses under idempotency keys that come together', () => {
  let server: PostgresServer;
  beforeAll(async () => {
    server = await startPostgres();
  });
  afterAll(async () => {
    await server?.[Symbol.asyncDispose]();
  });

  /** A node with one license, and those that are named. */
  async function given(...licenseKeys: readonly string[]) {
    const databases = await openNodes(server, 2);
    const [database, other] = databases as [Database, Database] & typeof databases;
    await sell(database, ...licenseKeys);
    return {
      database,
      writer: writerOn(database),
      otherWriter: writerOn(other),
      [Symbol.asyncDispose]: () => databases[Symbol.asyncDispose](),
    };
  }

  async function sell(database: Database, ...licenseKeys: readonly string[]): Promise<void> {
    await database.lend(async ({ transaction }) => {
      for (const licenseKey of licenseKeys) await transaction.licenses.add(buildLicense({ licenseKey }));
    });
  }

  /** How many answers each transaction has kept. */
  async function keptTogether({ names, query }: Database): Promise<number[]> {
    const rows = await query(
      `SELECT count(*) AS count FROM ${names.of('idempotency')} WHERE value IS NOT NULL GROUP BY xmin::text`,
    );
    return rows.map(({ count }) => Number(count)).toSorted((one, other) => one - other);
  }

  test('are committed in one transaction, with those that have none, and each counts', async () => {
    await using node = await given();
    const { writer, database } = node;
    const results = await Promise.all(
      numbers.map((number) => use(writer, { under: number % 2 === 0 ? `key-${number}` : null })),
    );
    expect(usesOf(results)).toEqual(numbers.map((number) => number + 1));
    // They come while the first, which has no key, is being committed.
    expect(await keptTogether(database)).toEqual([10]);
  });

  test('are answered the same when they come again, at any node, and count once', async () => {
    await using node = await given();
    const all = (writer: PostgresWriter) =>
      Promise.all(numbers.map((number) => use(writer, { under: `key-${number}` })));
    const first = await all(node.writer);
    expect(await all(node.otherWriter)).toEqual(first);
    expect(await all(node.writer)).toEqual(first);
    expect(await usesIn(node.database)).toBe(20);
  });

  test('count once where two nodes are sent each at the same time, and both answer the same', async () => {
    const licenseKeys = numbers.map((number) => `OF-${number % 3}`);
    await using node = await given(...new Set(licenseKeys));
    const uses = (writer: PostgresWriter) =>
      licenseKeys.map((of, number) => use(writer, { under: `key-${number}`, of }));
    const [here, there] = await Promise.all([
      Promise.all(uses(node.writer)),
      Promise.all(uses(node.otherWriter)),
    ]);
    expect(there).toEqual(here);
    const counts = await Promise.all(['OF-0', 'OF-1', 'OF-2'].map((of) => usesIn(node.database, of)));
    expect(counts).toEqual([7, 7, 6]);
  });

  test('count once where one node is sent one twice', async () => {
    await using node = await given();
    const [, ...results] = await Promise.all([
      use(node.writer),
      use(node.writer, { under: 'twice' }),
      use(node.writer, { under: 'other' }),
      use(node.writer, { under: 'twice' }),
    ]);
    expect(results[2]).toEqual(results[0]);
    expect(usesOf(results.slice(0, 2))).toEqual([2, 3]);
    expect(await usesIn(node.database)).toBe(3);
  });

  test('are answered each for itself, where some are refused or were answered before', async () => {
    await using node = await given();
    const { writer, database } = node;
    const before = await use(writer, { under: 'before' });
    const results = await Promise.all([
      use(writer, { under: 'first' }),
      use(writer, { under: 'unknown', of: 'LATER' }),
      use(writer, { under: 'before' }),
      use(writer, { under: 'before', fingerprint: 'of another request' }),
      use(writer, { under: 'new' }),
    ]);
    expect(results[2]).toEqual(before);
    const reused = { ok: false, problem: { code: 'idempotency_key_reused' } };
    expect(results).toMatchObject([counted(2), notDone, before, reused, counted(3)]);
    // A refusal changed nothing and is not kept.
    await sell(database, 'LATER');
    expect(await use(writer, { under: 'unknown', of: 'LATER' })).toMatchObject(counted(1));
  });

  test('are done as far as they can be, where one of them cannot', async () => {
    await using node = await given('FULL');
    const { writer, database } = node;
    const license = database.names.of('license');
    await database.query(`UPDATE ${license} SET uses = 9223372036854775807 WHERE license_key = 'FULL'`);
    const outcomes = await Promise.allSettled([
      use(writer, { under: 'first' }),
      use(writer, { under: 'second' }),
      use(writer, { under: 'full', of: 'FULL' }),
      use(writer),
      use(writer, { under: 'third' }),
    ]);
    expect(outcomes.map(({ status }) => status)).toEqual([
      'fulfilled',
      'fulfilled',
      'rejected',
      'fulfilled',
      'fulfilled',
    ]);
    expect(await usesIn(database)).toBe(4);
  });

  test('leave nothing of one whose answer cannot be made, and are done without it', async () => {
    await using node = await given('UNANSWERED');
    const { database } = node;
    const writer = writerOn(database, {
      run: ({ licenses, ...tables }, request, context) => {
        const change: typeof licenses.change = async (asked) => {
          const changed = await licenses.change(asked);
          if (asked.licenseKey === 'UNANSWERED') throw new Error('no answer');
          return changed;
        };
        return runUseCase({ ...tables, licenses: { ...licenses, change } }, request, context);
      },
    });
    const outcomes = await Promise.allSettled([
      use(writer, { under: 'first' }),
      use(writer, { under: 'second' }),
      use(writer, { under: 'unanswered', of: 'UNANSWERED' }),
      use(writer, { under: 'third' }),
    ]);
    expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled', 'rejected', 'fulfilled']);
    expect([await usesIn(database), await usesIn(database, 'UNANSWERED')]).toEqual([3, 0]);
  });

  test.each([
    { who: 'another node', takesLock: true },
    { who: 'a node of an older version', takesLock: false },
  ])('do not wait for one whose key $who has', async ({ takesLock }) => {
    await using node = await given();
    const { database, writer } = node;
    const idempotency = { credential: 'account:default', key: 'taken', fingerprint: 'f' };
    await database.lend(async (connection) => {
      const claim = takesLock ? { ...idempotency, waits: true } : null;
      await connection.begin(claim, []);
      if (!takesLock) {
        const table = connection.names.of('idempotency');
        await connection.query(
          `INSERT INTO ${table} (credential, key, fingerprint, kept_until) VALUES ('account:default', 'taken', 'f', 0)`,
        );
      }
      const first = use(writer, { under: 'first' });
      const taken = use(writer, { under: 'taken' });
      const others = await Promise.all([first, use(writer, { under: 'second' }), use(writer)]);
      expect(usesOf(others)).toEqual([1, 2, 3]);
      expect(await taken).toMatchObject({ ok: false, problem: { code: 'idempotency_key_in_use' } });
      await connection.rollback();
    });
    expect(await use(writer, { under: 'taken' })).toMatchObject(counted(4));
  });

  test('do not wait for one whose license another transaction has', async () => {
    await using node = await given('OTHER');
    const { database, writer } = node;
    const waiting = await database.lend(async (connection) => {
      await connection.begin(null, []);
      const historyEntry = null;
      await connection.transaction.licenses.change({
        tenant,
        licenseKey: soldKey,
        trigger: 'usage',
        historyEntry,
      });
      const first = use(writer, { under: 'first', of: 'OTHER' });
      const held = use(writer, { under: 'held' });
      expect(usesOf([await first, await use(writer, { under: 'second', of: 'OTHER' })])).toEqual([1, 2]);
      await connection.commit();
      return held;
    });
    expect(waiting).toMatchObject(counted(2));
  });

  test('are asked each under its key where the answer to their commit was lost, and those without one are in doubt', async () => {
    await using proxy = await startFaultProxy(server.address.port);
    await using databases = await openNodes(server, 2, { through: proxy });
    const [near, far] = databases as [Database, Database] & typeof databases;
    const reasons: string[] = [];
    const writer = writerOn(far, {
      onRepeat: (reason) => reasons.push(reason),
      clock: { monotonic: () => 0, sleep: () => proxy.become({ kind: 'pass' }) },
    });
    await proxy.become({ kind: 'reset_answer', containing: 'COMMIT' });
    const unkeyed = use(writer);
    const keyed = numbers.map((number) => use(writer, { under: `key-${number}` }));
    const inDoubt = use(writer);
    expect(await unkeyed).toMatchObject(counted(1));
    await expect(inDoubt).rejects.toMatchObject({ fault: 'unknown' });
    // The one in doubt was counted too.
    expect(new Set(usesOf(await Promise.all(keyed))).size).toBe(20);
    expect(reasons).toEqual(numbers.map(() => 'doubt'));
    expect(await usesIn(near)).toBe(22);
  });

  test('are begun again where the connection is lost before their commit', async () => {
    await using proxy = await startFaultProxy(server.address.port);
    await using databases = await openNodes(server, 2, { through: proxy });
    const [near, far] = databases as [Database, Database] & typeof databases;
    const reasons: string[] = [];
    const writer = writerOn(far, {
      onRepeat: (reason) => reasons.push(reason),
      clock: { monotonic: () => 0, sleep: () => proxy.become({ kind: 'pass' }) },
    });
    await use(writer);
    await proxy.become({ kind: 'reset_answer', containing: 'licenseKey' });
    const results = await Promise.all([0, 1, 2].map((number) => use(writer, { under: `key-${number}` })));
    expect(usesOf(results)).toEqual([2, 3, 4]);
    expect(new Set(reasons)).toEqual(new Set(['away']));
    expect(await usesIn(near)).toBe(4);
  });
});
