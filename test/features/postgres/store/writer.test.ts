import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { done } from '../../../../src/domain/problem/problem.ts';
import { runUseCase } from '../../../../src/service/run.ts';
import type { Database } from '../../../../src/features/postgres/store/database.ts';
import { tryAdvisory } from '../../../../src/features/postgres/store/locks.ts';
import { buildCart, buildTerms } from '../../../support/builders/coupon-builders.ts';
import { startFaultProxy, type FaultProxy } from '../../../support/network/fault-proxy.ts';
import { hasPostgres, startPostgres, type PostgresServer } from '../support/postgres.ts';
import { openNodes, use, usesIn, writerOn } from '../support/postgres-writer.ts';
import { account, buildLicense, page } from '../../../support/builders/store-builders.ts';

const tenant = { accountId: account.accountId, productKey: null };
const key = 'KEY-1';
const idempotency = { credential: 'account:default', key: 'once', fingerprint: 'f' };

describe.skipIf(!hasPostgres)('an authority on PostgreSQL', () => {
  let server: PostgresServer;
  beforeAll(async () => {
    server = await startPostgres();
  });
  afterAll(async () => {
    await server?.[Symbol.asyncDispose]();
  });

  const nodes = (count: number, through?: FaultProxy, statementTimeoutMs?: number) =>
    openNodes(server, count, { through, statementTimeoutMs });

  /** Has each connection of a node wait for locks for a minute: longer than the slowest machine takes. */
  async function waitLong(database: Database): Promise<void> {
    const all = Promise.withResolvers<void>();
    let left = database.size;
    const setOne = async (): Promise<void> =>
      await database.lend(async (connection) => {
        await connection.query("SET lock_timeout = '1min'");
        left -= 1;
        if (left === 0) all.resolve();
        await all.promise;
      });
    await Promise.all(Array.from({ length: database.size }, setOne));
  }

  test('counts the uses of one key at several nodes one by one', async () => {
    await using databases = await nodes(3);
    const writers = databases.map((database) => writerOn(database));
    const triggers = Array.from({ length: 30 }, () => ['usage', 'usage', 'decrease'] as const).flat();
    await Promise.all(
      triggers.map((trigger, index) =>
        use(writers[index % 3] ?? writerOn(databases[0] as Database), { trigger }),
      ),
    );
    const [database] = databases;
    const changes = (await database?.reader.history.list(key, page)) ?? [];
    const oldestFirst = changes.toReversed();
    expect(oldestFirst[0]?.before.uses).toBe(0);
    for (const [index, change] of oldestFirst.entries()) {
      expect(change.after.uses - change.before.uses).toBe(change.change === 'usage' ? 1 : -1);
      expect(change.before).toEqual(oldestFirst[index - 1]?.after ?? { uses: 0, enabled: true });
    }
    expect(oldestFirst.at(-1)?.after.uses).toBe(await usesIn(database as Database));
  });

  test('commits uses that come together in one transaction, and each of one license counts', async () => {
    await using databases = await nodes(1);
    const [database] = databases as Database[];
    if (database === undefined) throw new Error('there is no node');
    const writer = writerOn(database);
    // What comes while the first is being committed is committed together.
    const results = await Promise.all(Array.from({ length: 20 }, () => use(writer)));
    const counts = results.map((result) => (result.ok ? result.value.uses : -1));
    expect(counts.toSorted((one, other) => one - other)).toEqual(counts.map((_, index) => index + 1));
    const license = database.names.of('license');
    const [row] = await database.query(`SELECT xmin::text AS last FROM ${license} WHERE license_key = $1`, [
      key,
    ]);
    const committed = await database.query(
      `SELECT 1 FROM ${database.names.of('license_history')} WHERE xmin::text = $1`,
      [String(row?.['last'])],
    );
    expect(committed).toHaveLength(19);
  });

  test('answers uses of other licenses while another transaction has one of them', async () => {
    await using databases = await nodes(1);
    const [database] = databases as Database[];
    if (database === undefined) throw new Error('there is no node');
    const writer = writerOn(database);
    await database.lend(async ({ transaction }) => {
      await transaction.licenses.add(buildLicense({ licenseKey: 'KEY-2' }));
    });
    const held = await database.lend(async (connection) => {
      await connection.begin(null, []);
      await connection.transaction.licenses.change({
        tenant,
        licenseKey: key,
        trigger: 'usage',
        historyEntry: null,
      });
      const waiting = [
        use(writer, { of: 'KEY-2' }),
        use(writer),
        use(writer, { of: 'KEY-2' }),
        use(writer, { of: 'nobody has it' }),
      ] as const;
      const others = await Promise.all([waiting[0], waiting[2], waiting[3]]);
      await connection.commit();
      return { others, one: await waiting[1] };
    });
    const [first, second, unknown] = held.others;
    expect(new Set([first, second].map((result) => result.ok && result.value.uses))).toEqual(new Set([1, 2]));
    expect(unknown).toMatchObject({ ok: false, problem: { code: 'license_not_found' } });
    expect(held.one).toMatchObject({ ok: true, value: { uses: 2 } });
  });

  test('makes what can be made of uses that come together, where one of them cannot', async () => {
    await using databases = await nodes(1);
    const [database] = databases as Database[];
    if (database === undefined) throw new Error('there is no node');
    const writer = writerOn(database);
    await database.lend(async ({ transaction }) => {
      await transaction.licenses.add(buildLicense({ licenseKey: 'FULL' }));
    });
    const license = database.names.of('license');
    await database.query(`UPDATE ${license} SET uses = 9223372036854775807 WHERE license_key = 'FULL'`);
    const outcomes = await Promise.allSettled([
      use(writer),
      use(writer),
      use(writer, { of: 'FULL' }),
      use(writer),
    ]);
    expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled', 'rejected', 'fulfilled']);
    expect(await usesIn(database)).toBe(3);
  });

  test('redeems a coupon no more often than it may be, however many nodes are asked at once', async () => {
    await using databases = await nodes(3);
    const writers = databases.map((database) => writerOn(database));
    const [database, , third] = databases;
    const [writer] = writers;
    const made = await writer?.write('createCoupon', {
      accountId: 'default',
      terms: buildTerms({ usageLimit: 5 }),
    });
    expect(made).toMatchObject({ ok: true });
    const cart = buildCart({ productKey: 'press' });
    const results = await Promise.all(
      Array.from({ length: 24 }, (_, index) =>
        (writers[index % 3] ?? writerOn(databases[0] as Database)).write('redeemCoupon', {
          accountId: 'default',
          order: `A-${index % 12}`,
          cart,
        }),
      ),
    );
    const redeemed = results.flatMap((result) => (result?.ok === true ? [result.value] : []));
    expect(new Set(redeemed.map(({ redemption }) => redemption.order)).size).toBe(5);
    expect(redeemed.filter(({ isNew }) => isNew)).toHaveLength(5);
    expect(await database?.reader.redemptions.countOf('default', 1)).toBe(5);
    expect(await third?.reader.redemptions.listOf('default', 1, page)).toHaveLength(5);
  });

  test('gives what can be given once to one of all who ask for it at the same time', async () => {
    await using databases = await nodes(3);
    const writers = databases.map((database) => writerOn(database));
    const sale = { productKey: 'press', buyerEmail: 'a@example.com', soldAt: null, uses: 0, enabled: true };
    const outcomes = await Promise.all(
      writers.flatMap((writer) => [
        writer.write('addPurchase', { ...sale, licenseKey: 'WANTED' }),
        writer.write('createCoupon', { accountId: 'default', terms: buildTerms() }),
        writer.write('addAccount', { name: 'Other', apiKey: 'the same key for both' }),
      ]),
    );
    const codes = outcomes.map((outcome) => (outcome.ok ? 'done' : outcome.problem.code)).toSorted();
    const taken = ['coupon_code_taken', 'license_key_taken', 'parameters_invalid'];
    expect(codes).toEqual([...taken, ...taken, 'done', 'done', 'done'].toSorted());
  });

  test('answers a request that comes twice under its idempotency key twice the same, and does it once', async () => {
    await using databases = await nodes(2);
    const results = await Promise.all(
      databases.map((database) => use(writerOn(database), { under: 'once' })),
    );
    expect(results).toEqual([expect.objectContaining({ ok: true }), results[0]]);
    expect(await usesIn(databases[0] as Database)).toBe(1);
  });

  test('says that a key is in use when its first request does not end', async () => {
    await using databases = await nodes(2);
    const [first, second] = databases;
    const held = await first?.lend(async (connection) => {
      await connection.begin({ ...idempotency, waits: true }, []);
      const answered = await use(writerOn(second as Database), { under: 'once' });
      await connection.rollback();
      return answered;
    });
    expect(held).toMatchObject({ ok: false, problem: { code: 'idempotency_key_in_use' } });
    expect(await use(writerOn(second as Database), { under: 'once' })).toMatchObject({ ok: true });
  });

  test('takes a constraint for a fault of its own only where nothing else has failed, whatever was tried', async () => {
    await using databases = await nodes(1);
    const [database] = databases;
    const taken = Object.assign(new Error('duplicate key value'), { code: '23505' });
    const lost = new Error('Connection terminated unexpectedly');
    const failing = async (errors: readonly Error[]): Promise<unknown> => {
      const left = [...errors];
      const run = (): never => {
        const [error = taken] = left.length > 1 ? left.splice(0, 1) : left;
        throw error;
      };
      return await use(writerOn(database as Database, { run }), { under: 'once' });
    };
    await expect(failing([taken])).rejects.toBe(taken);
    const outage = [lost, lost, lost, lost, lost, taken];
    await expect(failing(outage)).rejects.toMatchObject({ fault: 'unavailable' });
  });

  test.each([
    ['a disk that cannot be read', '58030'],
    ['a broken index', 'XX002'],
    ['a table that is gone', '42P01'],
  ])('refuses a write because of %s, and has no fault of its own', async (_, code) => {
    await using databases = await nodes(1);
    const [database] = databases as Database[];
    if (database === undefined) throw new Error('there is no node');
    const schema = database.names.schema;
    await database.query(`CREATE FUNCTION ${schema}.broken() RETURNS trigger LANGUAGE plpgsql AS
      $$BEGIN RAISE EXCEPTION 'broken' USING ERRCODE = '${code}'; END$$`);
    await database.query(`CREATE TRIGGER broken BEFORE INSERT ON ${database.names.of('setting')}
      EXECUTE FUNCTION ${schema}.broken()`);
    const marking = writerOn(database).write('markTime', { mark: { at: 1, isConfirmed: true } });
    await expect(marking).rejects.toMatchObject({ name: 'StorageError', fault: 'unavailable' });
  });

  test('lets half of its connections wait for keys, and goes on with what needs none', async () => {
    await using databases = await nodes(2, undefined, 60_000);
    const [holder, asked] = databases;
    await waitLong(asked as Database);
    const writer = writerOn(asked as Database);
    const answered: string[] = [];
    const note = (name: string) => (result: { ok: boolean }) => answered.push(`${name} ${result.ok}`);
    const waiting = await holder?.lend(async (connection) => {
      await connection.begin({ ...idempotency, key: 'key-0', waits: true }, []);
      for (let index = 1; index < 6; index += 1) {
        await connection.transaction.idempotency.put('account:default', `key-${index}`, {
          fingerprint: 'f',
          value: null,
          until: 0,
          unchanged: false,
        });
      }
      await connection.query('SELECT 1');
      const keyed = Array.from({ length: 6 }, (_, index) =>
        use(writer, { under: `key-${index}` }).then(note('keyed')),
      );
      await use(writer).then(note('unkeyed'));
      await expect.poll(() => answered).toHaveLength(5);
      await connection.rollback();
      return keyed;
    });
    expect(answered.toSorted()).toEqual([...Array.from({ length: 4 }, () => 'keyed false'), 'unkeyed true']);
    await Promise.all(waiting ?? []);
    expect(answered.slice(5)).toEqual(['keyed true', 'keyed true']);
  });

  test('leaves the maintenance to the node that is at it', async () => {
    await using databases = await nodes(2);
    const [first, second] = databases;
    await first?.lend(async (connection) => {
      await connection.begin(null, []);
      for (let index = 0; index < 3; index += 1) {
        const answer = { fingerprint: 'f', value: null, until: index, unchanged: false };
        await connection.transaction.idempotency.put('account:default', `old-${index}`, answer);
      }
      await connection.commit();
    });
    const writer = writerOn(second as Database);
    const day = 24 * 3_600_000;
    const prune = () => writer.write('pruneIdempotency', { removalTime: 30 * day, limit: 500 });
    const mark = () => writer.write('markTime', { mark: { at: day, isConfirmed: true } });
    await first?.lend(async (connection) => {
      await connection.begin(null, [{ statement: tryAdvisory(connection.names, 'housework'), values: [] }]);
      expect([await prune(), await mark()]).toEqual([done({ removed: 0 }), done(null)]);
      await connection.rollback();
    });
    expect(await first?.reader.settings.get('high_water')).toBeNull();
    expect([await prune(), await mark()]).toEqual([done({ removed: 3 }), done(null)]);
    expect(await first?.reader.settings.get('high_water')).toBe(String(day));
    const both = databases.map((database) =>
      writerOn(database).write('pruneHistory', { before: day, limit: 500 }),
    );
    expect(await Promise.all(both)).toEqual([done({ removed: 0 }), done({ removed: 0 })]);
  });

  test('says that nobody knows, where the answer to a use without a key was lost', async () => {
    await using proxy = await startFaultProxy(server.address.port);
    await using databases = await nodes(2, proxy);
    const [near, far] = databases;
    // The database is back before another try, if there is one: it would count.
    const clock = { monotonic: () => 0, sleep: () => proxy.become({ kind: 'pass' }) };
    const writer = writerOn(far as Database, { clock });
    await use(writer);
    await proxy.become({ kind: 'reset_answer' });
    await expect(use(writer)).rejects.toMatchObject({ fault: 'unknown' });
    await proxy.become({ kind: 'pass' });
    expect(await usesIn(near as Database)).toBe(2);
    expect(await use(writer)).toMatchObject({ ok: true, value: { uses: 3 } });
  });

  test('asks again under the idempotency key where the answer to its commit was lost, and counts once', async () => {
    await using proxy = await startFaultProxy(server.address.port);
    await using databases = await nodes(2, proxy);
    const [near, far] = databases;
    const reasons: string[] = [];
    const writer = writerOn(far as Database, {
      run: async (...call) => {
        const result = await runUseCase(...call);
        if (reasons.length === 0) await proxy.become({ kind: 'reset_answer', containing: 'COMMIT' });
        return result;
      },
      onRepeat: (reason) => reasons.push(reason),
      clock: { monotonic: () => 0, sleep: () => proxy.become({ kind: 'pass' }) },
    });
    expect(await use(writer, { under: 'once' })).toMatchObject({ ok: true, value: { uses: 1 } });
    expect(reasons).toEqual(['doubt']);
    expect(await usesIn(near as Database)).toBe(1);
  });

  test('says that nobody knows, where nobody could be asked again since the answer was lost', async () => {
    await using proxy = await startFaultProxy(server.address.port);
    await using databases = await nodes(2, proxy);
    const [near, far] = databases;
    const writer = writerOn(far as Database, {
      run: async (...call) => {
        const result = await runUseCase(...call);
        await proxy.become({ kind: 'reset_answer', containing: 'COMMIT' });
        return result;
      },
      clock: { monotonic: () => 0, sleep: () => proxy.become({ kind: 'refuse' }) },
    });
    await expect(use(writer, { under: 'once' })).rejects.toMatchObject({ fault: 'unknown' });
    expect(await usesIn(near as Database)).toBe(1);
  });

  test('begins again what was surely not done, when the connection is lost before the commit', async () => {
    await using proxy = await startFaultProxy(server.address.port);
    await using databases = await nodes(2, proxy);
    const [near, far] = databases;
    const reasons: string[] = [];
    const writer = writerOn(far as Database, {
      run: async (...call) => {
        if (reasons.length === 0) await proxy.become({ kind: 'reset_on_connect' });
        return await runUseCase(...call);
      },
      onRepeat: (reason) => reasons.push(reason),
      clock: { monotonic: () => 0, sleep: () => proxy.become({ kind: 'pass' }) },
    });
    const sale = { productKey: 'press', buyerEmail: 'a@example.com', soldAt: null, uses: 0, enabled: true };
    expect(await writer.write('addPurchase', { ...sale, licenseKey: null })).toMatchObject({ ok: true });
    expect(reasons).toEqual(['away']);
    expect(await near?.reader.purchases.count({})).toBe(1);
  });

  test('does not wait for ever for a database that answers nothing', async () => {
    await using proxy = await startFaultProxy(server.address.port);
    await using databases = await nodes(2, proxy, 2_000);
    const far = databases[1] as Database;
    const writer = writerOn(far);
    await use(writer);
    await proxy.become({ kind: 'half_open' });
    await expect(use(writer)).rejects.toMatchObject({ fault: 'unknown' });
    await expect(far.reader.licenses.get(key)).rejects.toMatchObject({ fault: 'unreadable' });
  });

  test('refuses while the database is away, and goes on by itself when it is back', async () => {
    await using databases = await nodes(1);
    const [database] = databases as Database[];
    if (database === undefined) throw new Error('there is no node');
    const writer = writerOn(database);
    expect(await use(writer)).toMatchObject({ ok: true });
    await server.stop('immediate');
    try {
      await expect(use(writer, { under: 'once' })).rejects.toMatchObject({ fault: 'unavailable' });
      await expect(database.reader.licenses.get(key)).rejects.toMatchObject({ fault: 'unreadable' });
    } finally {
      await server.start();
    }
    expect(await use(writer)).toMatchObject({ ok: true, value: { uses: 2 } });
  });
});
