import { EventEmitter } from 'node:events';
import { StatementSync } from 'node:sqlite';
import type { Worker } from 'node:worker_threads';
import { afterEach, expect, test, vi } from 'vitest';
import { startDaemon } from '../../src/daemon/start.ts';
import { ReadingThread, type ReadMessage } from '../../src/daemon/threads/reading-thread.ts';
import { embeddedConfiguration } from '../../src/config/load.ts';
import { LocalClient } from '../../src/daemon/local-client.ts';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { StorageError } from '../../src/service/ports.ts';
import {
  account,
  at,
  buildLicense,
  createTestStore,
  page,
  product,
} from '../support/builders/store-builders.ts';
import { silent } from '../support/silent-log.ts';
import { temporaryDirectory } from '../support/temporary.ts';

afterEach(() => {
  vi.restoreAllMocks();
  vi.useRealTimers();
});

test('The reading thread returns the same lists as the reader.', async () => {
  await using store = createTestStore();
  const { transaction } = store.writing;
  const { reader } = store.reading;
  transaction.accounts.add(account, 'digest');
  transaction.products.add(product, 'secret');
  transaction.licenses.add(buildLicense());
  transaction.purchases.add({ purchaseId: 'one', licenseKey: 'KEY-1', createdAt: at, refundedAt: null });
  await using thread = new ReadingThread(store.databasePath);
  const { lists } = thread;
  expect(await lists.accounts.list({}, page)).toEqual(reader.accounts.list({}, page));
  expect(await lists.products.list({}, page)).toEqual(reader.products.list({}, page));
  expect(await lists.collections.list({}, page)).toEqual(reader.collections.list({}, page));
  expect(await lists.licenses.list({ enabled: true }, page)).toEqual(
    reader.licenses.list({ enabled: true }, page),
  );
  expect(await lists.licenses.count({ enabled: false })).toBe(0);
  const buyer = { buyerEmail: 'A@example.com', since: undefined };
  expect(await lists.purchases.list(buyer, page)).toEqual(reader.purchases.list(buyer, page));
  expect(await lists.purchases.count({ since: at, until: at })).toBe(1);
  expect(await lists.coupons.list('default', page)).toEqual(reader.coupons.list('default', page));
  expect(await lists.redemptions.listOf('default', 1, page)).toEqual(
    reader.redemptions.listOf('default', 1, page),
  );
  expect(await lists.tokens.list({}, page)).toEqual(reader.tokens.list({}, page));
  expect(await lists.audit.list({}, page)).toEqual(reader.audit.list({}, page));
  expect(await lists.mirror.list(page)).toEqual(reader.mirror.list(page));
  expect(await lists.snapshots.list({ search: { text: 'KEY', keys: 'anywhere' } }, page)).toEqual([]);
  expect(await lists.operations.list(null, page)).toEqual(reader.operations.list(null, page));
  expect(await lists.operations.openOf('KEY-1', null, page)).toEqual([]);
  expect(await lists.operations.countOpenOf('KEY-1', null)).toBe(0);
  const search = { text: 'KEY-1', keys: 'anywhere' } as const;
  expect(await lists.operations.found(search, null, page)).toEqual([]);
  expect(await lists.operations.countFound(search, null)).toBe(0);
});

/** The statements that the thread of this test has run since the last call. */
function watchStatements(): () => string[] {
  const run: string[] = [];
  for (const method of ['all', 'get'] as const) {
    const original = StatementSync.prototype[method] as (this: StatementSync, ...values: unknown[]) => never;
    vi.spyOn(StatementSync.prototype, method).mockImplementation(function (
      this: StatementSync,
      ...values: unknown[]
    ) {
      run.push(this.sourceSQL);
      return original.apply(this, values);
    });
  }
  return () => run.splice(0);
}

test('A running daemon reads no list, count or export in the server thread.', async () => {
  await using directory = temporaryDirectory();
  const state = join(directory.path, 'state');
  const configuration = embeddedConfiguration({ state_dir: state, listen: { tcp: '127.0.0.1:0' } });
  const daemon = await startDaemon(configuration, { log: silent });
  try {
    const token = readFileSync(join(state, 'admin.token'), 'utf8').trim();
    const client = new LocalClient(daemon.addresses.tcp ?? '', { authorization: `Bearer ${token}` });
    const added = await client.postJson('/admin/v1/products', { name: 'Press', product_key: 'press' });
    expect(added.status).toBe(201);
    const statements = watchStatements();
    for (const path of [
      '/admin/v1/accounts',
      '/admin/v1/products',
      '/admin/v1/collections',
      '/admin/v1/licenses?product_key=press',
      '/admin/v1/licenses?search=abc',
      '/admin/v1/purchases?since=2026-01-01T00:00:00Z',
      '/admin/v1/tokens',
      '/admin/v1/audit',
      '/api/v2/coupons',
      '/agent/v1/redemptions?coupon_id=1',
      '/admin/v1/licenses/export',
      '/admin/v1/purchases/export',
      '/admin/v1/coupons/export',
    ]) {
      const response = await fetch(`${daemon.addresses.tcp}${path}`, {
        headers: { authorization: `Bearer ${token}` },
      });
      expect([path, response.status]).toEqual([path, 200]);
      await response.text();
      // The maintenance of the start may still remove silent agents.
      const long = statements().filter((sql) => /LIMIT|count\(/.test(sql) && !sql.includes('seen_at <'));
      expect([path, long]).toEqual([path, []]);
    }
  } finally {
    await daemon.stop();
  }
});

/** A reading thread whose responses the test sends. */
function silentThread() {
  const started: (EventEmitter & { requests: ReadMessage[]; isEnded: boolean })[] = [];
  const thread = new ReadingThread('', () => {
    const worker = Object.assign(new EventEmitter(), {
      requests: [] as ReadMessage[],
      isEnded: false,
      postMessage: (text: string) => void worker.requests.push(JSON.parse(text) as ReadMessage),
      terminate: async () => (worker.isEnded = true),
    });
    started.push(worker);
    return worker as unknown as Worker;
  });
  return { thread, started };
}

test('The results of the reading thread may come in any order.', async () => {
  const { thread, started } = silentThread();
  const [one, other] = [thread.lists.licenses.count({}), thread.lists.purchases.count({})];
  const [worker] = started;
  for (const { id, request } of (worker?.requests ?? []).toReversed()) {
    const result = 'table' in request ? request.table : null;
    worker?.emit('message', JSON.stringify({ id, outcome: { result } }));
  }
  expect([await one, await other]).toEqual(['licenses', 'purchases']);
});

test('A lost reading thread rejects waiting reads, and the next read starts a new thread.', async () => {
  const { thread, started } = silentThread();
  const read = thread.lists.licenses.count({});
  started[0]?.emit('error', new Error('out of memory'));
  await expect(read).rejects.toEqual(new StorageError('unreadable', new Error('out of memory')));
  const next = thread.lists.licenses.count({});
  expect(started).toHaveLength(2);
  await thread[Symbol.asyncDispose]();
  expect(started.at(-1)?.isEnded).toBe(true);
  await expect(next).rejects.toThrow(StorageError);
});

test('A reading thread ends after half a minute without a read.', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  const { thread, started } = silentThread();
  const read = thread.lists.licenses.count({});
  vi.advanceTimersByTime(60_000);
  expect(started[0]?.isEnded).toBe(false);
  started[0]?.emit('message', JSON.stringify({ id: 1, outcome: { result: 0 } }));
  expect(await read).toBe(0);
  vi.advanceTimersByTime(29_999);
  expect(started[0]?.isEnded).toBe(false);
  vi.advanceTimersByTime(1);
  expect(started[0]?.isEnded).toBe(true);
});

test('An error of SQLite in the reading thread rejects only the read that caused it.', async () => {
  await using store = createTestStore();
  await using thread = new ReadingThread(store.databasePath);
  store.writing.database.exec('DROP TABLE coupon');
  await expect(thread.lists.coupons.count('default')).rejects.toThrow('no such table: coupon');
  expect(await thread.lists.licenses.count({})).toBe(0);
});
