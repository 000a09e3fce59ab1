import { EventEmitter } from 'node:events';
import type { Worker } from 'node:worker_threads';
import { expect, expectTypeOf, test } from 'vitest';
import {
  outcomeMessage,
  piecesOf,
  type BatchMessage,
  type DiskSpaceMessage,
} from '../../src/daemon/threads/writer-message.ts';
import { startWriter, WriterThread } from '../../src/daemon/threads/writer-thread.ts';
import { traced, type Traced } from '../../src/domain/outbox/operation.ts';
import { StorageError } from '../../src/service/ports.ts';
import type { CommandOf, CommandResult, UseCaseName } from '../../src/service/writer.ts';
import { buildOperation } from '../support/builders/operation-builders.ts';
import { account, buildLicense, createTestStore, product } from '../support/builders/store-builders.ts';

const commit = { durationMs: 1, size: 1 };

/** A writer whose thread answers only what the test lets it. */
function startSilentWriter(): {
  writer: WriterThread;
  thread: EventEmitter;
  tell: (message: BatchMessage | DiskSpaceMessage) => void;
  turnTo: (elapsed: number) => void;
  rooms: boolean[];
  told: string[];
} {
  let elapsed = 0;
  const rooms: boolean[] = [];
  const told: string[] = [];
  const thread = Object.assign(new EventEmitter(), { postMessage: () => undefined });
  const clock = { now: () => elapsed, elapsed: () => elapsed, sleep: () => Promise.resolve() };
  const options = {
    role: 'authority' as const,
    keepsHistory: () => true,
    onCommit: () => undefined,
    onChanged: () => undefined,
    onTraced: (happened: readonly Traced[]) => void told.push(...happened.map(({ id }) => id)),
    onDiskSpace: (isFull: boolean) => void rooms.push(isFull),
  };
  const writer = new WriterThread(thread as unknown as Worker, clock, options);
  const tell = (message: object): void => void thread.emit('message', message);
  return { writer, thread, tell, rooms, told, turnTo: (at) => (elapsed = at) };
}

test('a write that waits for more than a minute shows that the disk hangs', async () => {
  const { writer, tell, turnTo } = startSilentWriter();
  const write = writer.write('pruneIdempotency', { removalTime: 0, limit: 10 });
  turnTo(60_000);
  expect(writer.isStuck).toBe(false);
  turnTo(60_001);
  expect(writer.isStuck).toBe(true);
  tell({ outcomes: '[{"result":null}]', traced: [], commit, broken: null });
  await write;
  expect(writer.isStuck).toBe(false);
});

test('a full disk and room on it are told as they come', () => {
  const { writer, tell, rooms } = startSilentWriter();
  tell({ isFull: true });
  expect(writer.storage).toBe('full');
  tell({ isFull: false });
  expect([writer.storage, rooms]).toEqual(['ok', [true, false]]);
});

test('what is refused writes nothing any more, and is no loss of the thread', async () => {
  const { writer } = startSilentWriter();
  writer.refuse(new Error('damaged'));
  await expect(writer.write('pruneIdempotency', { removalTime: 0, limit: 10 })).rejects.toBeInstanceOf(
    StorageError,
  );
  await expect(Promise.race([writer.lost, Promise.resolve('pending')])).resolves.toBe('pending');
});

test('what cannot be sent to the thread is refused, and so is all that follows', async () => {
  const { writer } = startSilentWriter();
  const command = { removalTime: 0, limit: 10, unsent: 1n };
  await expect(writer.write('pruneIdempotency', command)).rejects.toBeInstanceOf(StorageError);
  await expect(writer.write('pruneIdempotency', { removalTime: 0, limit: 10 })).rejects.toBeInstanceOf(
    StorageError,
  );
  await expect(writer.lost).rejects.toBeInstanceOf(StorageError);
});

test('of writes that a lost thread had not answered nobody knows, and nothing more is taken', async () => {
  const { writer, thread } = startSilentWriter();
  const command = { removalTime: 0, limit: 10 };
  const write = writer.write('pruneIdempotency', command);
  thread.emit('exit', 1);
  await expect(write).rejects.toMatchObject({ fault: 'commit_failed' });
  await expect(writer.write('pruneIdempotency', command)).rejects.toMatchObject({ fault: 'failed' });
});

test('what a thread had not begun when its storage failed was surely not done', async () => {
  const { writer, tell } = startSilentWriter();
  const [begun, waiting] = ['begun', 'waiting'].map(() =>
    writer.write('pruneIdempotency', { removalTime: 0, limit: 10 }),
  );
  const outcomes = JSON.stringify([{ storageFault: 'commit_failed', detail: 'disk I/O error' }]);
  tell({ outcomes, traced: [], commit, broken: 'disk I/O error' });
  await expect(begun).rejects.toMatchObject({ fault: 'commit_failed' });
  await expect(waiting).rejects.toMatchObject({ fault: 'failed' });
});

test('an error of a write tells its caller what went wrong, and where', async () => {
  const { writer, tell } = startSilentWriter();
  const write = writer.write('pruneIdempotency', { removalTime: 0, limit: 10 });
  const error = new TypeError('not an operation');
  const outcomes = JSON.stringify([outcomeMessage({ error })]);
  tell({ outcomes, traced: [], commit, broken: null });
  await expect(write).rejects.toMatchObject({ message: 'not an operation', stack: error.stack });
});

/** The message of a batch with one write, which happened to so many operations, numbered from the first. */
function batchAbout(count: number, first = 0): BatchMessage {
  const happened = Array.from({ length: count }, (_, index) =>
    traced('reconciled', buildOperation({ id: String(first + index) })),
  );
  const outcomes = JSON.stringify([{ result: null }]);
  return { outcomes, traced: piecesOf([{ result: null, traced: happened }]), commit, broken: null };
}

const turn = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve));

test('what happened to very many operations is told over many turns, so that callers are answered meanwhile, and in order', async () => {
  const { tell, told } = startSilentWriter();
  tell(batchAbout(2));
  expect(told).toHaveLength(2);
  tell(batchAbout(1_200, 2));
  tell(batchAbout(1, 1_202));
  const counts = [told.length];
  while (told.length < 1_203 && counts.length < 100) {
    await turn();
    counts.push(told.length);
  }
  const steps = counts.map((count, index) => count - (counts[index - 1] ?? 0));
  expect(Math.max(...steps)).toBeLessThanOrEqual(502);
  expect(told).toEqual(Array.from({ length: 1_203 }, (_, index) => String(index)));
});

test('what happened to operations and was not told yet is told before the end, in turns as well', async () => {
  const { writer, thread, tell, told } = startSilentWriter();
  tell(batchAbout(1_800));
  const end = writer[Symbol.asyncDispose]();
  thread.emit('exit', 0);
  await turn();
  // At once it would be more than the log keeps.
  expect(told.length).toBeLessThan(1_800);
  await end;
  expect(told).toHaveLength(1_800);
});

/** What JSON gives back as it was; what another program sent, as `unknown`, came as JSON. */
type Json<Value> = unknown extends Value
  ? Value
  : Value extends string | number | boolean | null | undefined
    ? Value
    : Value extends bigint | symbol | ((...args: never) => unknown) | ReadonlyMap<never, unknown>
      ? never
      : Value extends ReadonlySet<unknown> | Date | Error | ArrayBufferView
        ? never
        : { [Key in keyof Value]: Json<Value[Key]> };

test('every command and result goes to the thread and back as JSON, which the compiler checks', () => {
  type Lossy = {
    [Name in UseCaseName]: [CommandOf<Name>, CommandResult<Name>] extends Json<
      [CommandOf<Name>, CommandResult<Name>]
    >
      ? never
      : Name;
  }[UseCaseName];
  expectTypeOf<Lossy>().toBeNever();
});

test('writes that were asked for just before the end are committed, however many, and answered', async () => {
  await using store = createTestStore();
  const clock = { now: () => 1, elapsed: () => 1, sleep: () => Promise.resolve() };
  const sizes: number[] = [];
  await using writer = await startWriter(store.databasePath, clock, {
    role: 'authority',
    keepsHistory: () => true,
    onCommit: ({ size }) => void sizes.push(size),
    onChanged: () => undefined,
    onTraced: () => undefined,
    onDiskSpace: () => undefined,
  });
  const writes = Array.from({ length: 600 }, () =>
    writer.write('pruneIdempotency', { removalTime: 0, limit: 10 }),
  );
  const end = writer[Symbol.asyncDispose]();
  const outcomes = await Promise.all(writes);
  await end;
  expect(outcomes.every(({ ok }) => ok)).toBe(true);
  expect(sizes.reduce((sum, size) => sum + size, 0)).toBe(600);
  expect(Math.max(...sizes)).toBeLessThan(600);
});

test('writes that keep coming while others are committed are each done once, many to a commit', async () => {
  await using store = createTestStore();
  const { accounts, products, licenses } = store.writing.transaction;
  accounts.add(account, 'digest');
  products.add(product, 'digest');
  licenses.add(buildLicense());
  const clock = { now: () => 1, elapsed: () => 1, sleep: () => Promise.resolve() };
  const sizes: number[] = [];
  const onCommit = ({ size }: { size: number }): void => void sizes.push(size);
  await using writer = await startWriter(store.databasePath, clock, {
    role: 'authority',
    keepsHistory: () => true,
    onCommit,
    onChanged: () => undefined,
    onTraced: () => undefined,
    onDiskSpace: () => undefined,
  });
  const reach = { accountId: account.accountId, productKey: null };
  const use = async (): Promise<void> => {
    const { licenseKey } = buildLicense();
    for (let count = 0; count < 20; count += 1) {
      const changed = await writer.write('changeLicense', { reach, licenseKey, trigger: 'usage' });
      expect(changed.ok).toBe(true);
    }
  };
  await Promise.all(Array.from({ length: 50 }, use));
  expect(store.reading.reader.licenses.get(buildLicense().licenseKey)?.uses).toBe(1000);
  expect(sizes.reduce((sum, size) => sum + size, 0)).toBe(1000);
  expect(Math.max(...sizes)).toBeGreaterThan(1);
});
