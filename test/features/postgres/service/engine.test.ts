import { setImmediate as turnOfTheEventLoop } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { authorityCredentials, TokenUses } from '../../../../src/service/access/credential.ts';
import { isFailure } from '../../../../src/domain/problem/problem.ts';
import {
  authorityCouponService,
  authorityLicenseService,
} from '../../../../src/service/authority/services.ts';
import { loadUseCases, runUseCase } from '../../../../src/service/run.ts';
import type { AuthorityTransaction, Transaction } from '../../../../src/service/tables.ts';
import { prepareCommitter } from '../../../../src/store/sqlite/commit.ts';
import { PostgresWriter } from '../../../../src/features/postgres/store/writer.ts';
import {
  authorityUseCases,
  contextOf,
  digest,
  tenant,
  requestOf,
  type AuthorityRequest,
} from '../../../support/app/authority-commands.ts';
import { hasPostgres, startPostgres } from '../support/postgres.ts';
import { at, createTestStore, page, type TestStore } from '../../../support/builders/store-builders.ts';

/** Runs all requests in one batch, as the writer's thread does. */
async function runInABatch(store: TestStore): Promise<unknown[]> {
  const committer = prepareCommitter<AuthorityRequest>(store.writing, {
    run: (transaction, request) => runUseCase(transaction, request, contextOf(request.name)),
    isFailure,
  });
  return await committer.commitBatch(authorityUseCases.map(requestOf));
}

/** Tables that behave like a database server: every call resolves in a later turn of the event loop. */
function faraway(transaction: Transaction): AuthorityTransaction {
  const { events, ...others } = transaction;
  const tables = Object.entries(others).map(([name, table]: [string, object]) => [
    name,
    new Proxy(table, {
      get:
        (target, method) =>
        async (...args: readonly unknown[]): Promise<unknown> => {
          await turnOfTheEventLoop();
          return (Reflect.get(target, method) as (...args: readonly unknown[]) => unknown)(...args);
        },
    }),
  ]);
  return { ...Object.fromEntries(tables), events } as AuthorityTransaction;
}

/** The content of all tables. */
function lineContent({ reading: { database } }: TestStore): Record<string, unknown[]> {
  const tables = database
    .prepare(`SELECT name FROM sqlite_schema WHERE type = 'table' AND name <> 'license_search'`)
    .all();
  return Object.fromEntries(
    tables.map(({ name }) => [String(name), database.prepare(`SELECT * FROM "${String(name)}"`).all()]),
  );
}

test('no other write runs while a batch of all writes of an authority is committed', async () => {
  await using store = createTestStore();
  await loadUseCases(authorityUseCases);
  const between: string[] = [];
  setImmediate(() => between.push('immediate'));
  setTimeout(() => between.push('timer'), 0);
  const { port1, port2 } = new MessageChannel();
  port2.on('message', () => between.push('message'));
  port1.postMessage('before the batch');
  const outcomes = await runInABatch(store);
  expect(between).toEqual([]);
  expect(outcomes).toMatchObject(authorityUseCases.map(() => ({ result: { ok: true } })));
  await turnOfTheEventLoop();
  expect(between).toContain('immediate');
  port1.close();
});

test('an authority writes the same to an asynchronous engine, and each request once', async () => {
  await using near = createTestStore();
  const outcomes = await runInABatch(near);
  await using far = createTestStore();
  const transaction = faraway(far.writing.transaction);
  for (const again of [false, true]) {
    for (const [index, name] of authorityUseCases.entries()) {
      const result = await runUseCase(transaction, requestOf(name), contextOf(name));
      expect(outcomes[index], `${name}, ${again ? 'again' : 'once'}`).toMatchObject({ result });
    }
    expect(lineContent(far)).toEqual(lineContent(near));
  }
  expect(lineContent(far)['audit_event']).toHaveLength(37);
});

test.skipIf(!hasPostgres)('an authority writes the same to PostgreSQL, and each request once', async () => {
  await using near = createTestStore();
  const outcomes = await runInABatch(near);
  await using server = await startPostgres();
  await using database = await server.store();
  let name = authorityUseCases[0] ?? 'startAuthority';
  const writer = new PostgresWriter(database, {
    run: runUseCase,
    isFailure,
    context: () => contextOf(name),
    clock: { sleep: () => Promise.reject(new Error('nothing is to be repeated')), monotonic: () => at },
    random: { fraction: () => 0.5 },
    onCredentialsChanged: () => undefined,
    onRepeat: () => undefined,
    onTried: () => undefined,
    timer: () => 0,
  });
  for (const again of [false, true]) {
    for (const [index, each] of authorityUseCases.entries()) {
      name = each;
      const { command, writeOptions } = requestOf(each);
      const result = await writer.write(each, command, writeOptions);
      // PostgreSQL dates some stored responses by its own clock, which is ahead of the test's clock.
      const expected = each === 'pruneIdempotency' ? { ok: result.ok } : result;
      expect(outcomes[index], `${each}, ${again ? 'again' : 'once'}`).toMatchObject({ result: expected });
    }
  }
  expect(await database.reader.audit.count({})).toBe(37);
  expect(await database.reader.history.list('KEY', page)).toEqual(
    near.reading.reader.history.list('KEY', page),
  );
});

test('an authority answers from an asynchronous engine', async () => {
  await using store = createTestStore();
  await runInABatch(store);
  const reader = faraway(store.writing.transaction);
  const writer = { write: () => Promise.reject(new Error('it only reads')) };
  const { signal } = new AbortController();
  const credentials = authorityCredentials({
    reader,
    verifiedNow: () => at,
    uses: new TokenUses(),
  });
  expect(await credentials.find({ kind: 'api_key', digest: digest('key') })).toMatchObject({
    principal: { credential: 'account:default' },
  });
  expect(await credentials.find({ kind: 'product_secret', digest: digest('theirs') })).toBeNull();
  const verified = await authorityLicenseService(reader, writer, { now: () => at }).verify(
    tenant,
    'KEY',
    signal,
  );
  expect(verified).toMatchObject({ ok: true, value: { license: { uses: 9, enabled: false } } });
  const listed = await authorityCouponService(reader, writer).list('default', page, signal);
  expect(listed).toMatchObject({
    ok: true,
    value: { total: 1, coupons: [{ code: 'THEIRS' }] },
  });
});
