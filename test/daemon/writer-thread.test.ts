import { EventEmitter } from 'node:events';
import type { Worker } from 'node:worker_threads';
import { expect, expectTypeOf, test } from 'vitest';
import {
  outcomeMessage,
  piecesOf,
  type BatchMessage,
  type DiskSpaceMessage,
} from '../../src/daemon/threads/worker.ts';
import { startWriter, WriterThread } from '../../src/daemon/threads/writer-thread.ts';
import { traced, type Traced } from '../../src/domain/outbox/trace.ts';
import { StorageError } from '../../src/service/ports.ts';
import type { CommandOf, CommandResult, UseCaseName } from '../../src/service/writer.ts';
import { buildOperation } from '../support/builders/operation-builders.ts';
import { account, buildLicense, createTestStore, product } from '../support/builders/store-builders.ts';

const commit = { durationMs: 1, size: 1 };

/** A writer thread whose responses the test sends. */
function startSilentWriter(): {
  writer: WriterThread;
  thread: EventEmitter;
  send: (message: BatchMessage | DiskSpaceMessage) => void;
  turnTo: (monotonic: number) => void;
  diskStates: boolean[];
  steps: string[];
} {
  let monotonic = 0;
  const diskStates: boolean[] = [];
  const steps: string[] = [];
  const thread = Object.assign(new EventEmitter(), { postMessage: () => undefined });
  const clock = { now: () => monotonic, monotonic: () => monotonic, sleep: () => Promise.resolve() };
  const options = {
    role: 'authority' as const,
    recordsHistory: () => true,
    onCommit: () => undefined,
    onChanged: () => undefined,
    onTraced: (newSteps: readonly Traced[]) => void steps.push(...newSteps.map(({ id }) => id)),
    onDiskSpace: (isFull: boolean) => void diskStates.push(isFull),
  };
  const writer = new WriterThread(thread as unknown as Worker, clock, options);
  const send = (message: object): void => void thread.emit('message', message);
  return { writer, thread, send, diskStates, steps, turnTo: (at) => (monotonic = at) };
}

test('A write that waits for more than a minute shows that the disk hangs.', async () => {
  const { writer, send, turnTo } = startSilentWriter();
  const write = writer.write('pruneIdempotency', { removalTime: 0, limit: 10 });
  turnTo(60_000);
  expect(writer.isStuck).toBe(false);
  turnTo(60_001);
  expect(writer.isStuck).toBe(true);
  send({ outcomes: '[{"result":null}]', traced: [], commit, broken: null });
  await write;
  expect(writer.isStuck).toBe(false);
});

test('The writer thread reports a full disk and free space as they occur.', () => {
  const { writer, send, diskStates } = startSilentWriter();
  send({ isFull: true });
  expect(writer.storage).toBe('full');
  send({ isFull: false });
  expect([writer.storage, diskStates]).toEqual(['ok', [true, false]]);
});

test('After refuse, every write is rejected and the thread is not lost.', async () => {
  const { writer } = startSilentWriter();
  writer.disable(new Error('damaged'));
  await expect(writer.write('pruneIdempotency', { removalTime: 0, limit: 10 })).rejects.toBeInstanceOf(
    StorageError,
  );
  await expect(Promise.race([writer.lost, Promise.resolve('pending')])).resolves.toBe('pending');
});

test('A write that cannot be sent to the thread is rejected, and so is every later write.', async () => {
  const { writer } = startSilentWriter();
  const command = { removalTime: 0, limit: 10, unsent: 1n };
  await expect(writer.write('pruneIdempotency', command)).rejects.toBeInstanceOf(StorageError);
  await expect(writer.write('pruneIdempotency', { removalTime: 0, limit: 10 })).rejects.toBeInstanceOf(
    StorageError,
  );
  await expect(writer.lost).rejects.toBeInstanceOf(StorageError);
});

test('The unanswered writes of a lost thread have an unknown outcome, and every later write is rejected.', async () => {
  const { writer, thread } = startSilentWriter();
  const command = { removalTime: 0, limit: 10 };
  const write = writer.write('pruneIdempotency', command);
  thread.emit('exit', 1);
  await expect(write).rejects.toMatchObject({ fault: 'commit_failed' });
  await expect(writer.write('pruneIdempotency', command)).rejects.toMatchObject({ fault: 'failed' });
});

test('A write that the thread had not started when its storage failed was certainly not done.', async () => {
  const { writer, send } = startSilentWriter();
  const [begun, waiting] = ['begun', 'waiting'].map(() =>
    writer.write('pruneIdempotency', { removalTime: 0, limit: 10 }),
  );
  const outcomes = JSON.stringify([{ storageFault: 'commit_failed', detail: 'disk I/O error' }]);
  send({ outcomes, traced: [], commit, broken: 'disk I/O error' });
  await expect(begun).rejects.toMatchObject({ fault: 'commit_failed' });
  await expect(waiting).rejects.toMatchObject({ fault: 'failed' });
});

test('An error of a write reaches its caller with message and stack.', async () => {
  const { writer, send } = startSilentWriter();
  const write = writer.write('pruneIdempotency', { removalTime: 0, limit: 10 });
  const error = new TypeError('not an operation');
  const outcomes = JSON.stringify([outcomeMessage({ error })]);
  send({ outcomes, traced: [], commit, broken: null });
  await expect(write).rejects.toMatchObject({ message: 'not an operation', stack: error.stack });
});

/** The message of a batch with one write that changed `count` operations, numbered from `first`. */
function batchAbout(count: number, first = 0): BatchMessage {
  const steps = Array.from({ length: count }, (_, index) =>
    traced('reconciled', buildOperation({ id: String(first + index) })),
  );
  const outcomes = JSON.stringify([{ result: null }]);
  return { outcomes, traced: piecesOf([{ result: null, traced: steps }]), commit, broken: null };
}

const turn = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve));

test('The steps of very many operations are reported in order over many turns, and other requests are answered in between.', async () => {
  const { send, steps } = startSilentWriter();
  send(batchAbout(2));
  expect(steps).toHaveLength(2);
  send(batchAbout(1_200, 2));
  send(batchAbout(1, 1_202));
  const counts = [steps.length];
  while (steps.length < 1_203 && counts.length < 100) {
    await turn();
    counts.push(steps.length);
  }
  const increases = counts.map((count, index) => count - (counts[index - 1] ?? 0));
  expect(Math.max(...increases)).toBeLessThanOrEqual(502);
  expect(steps).toEqual(Array.from({ length: 1_203 }, (_, index) => String(index)));
});

test('The remaining steps of operations are reported before the end, also over many turns.', async () => {
  const { writer, thread, send, steps } = startSilentWriter();
  send(batchAbout(1_800));
  const end = writer[Symbol.asyncDispose]();
  thread.emit('exit', 0);
  await turn();
  // All steps at once would exceed the buffer of the log.
  expect(steps.length).toBeLessThan(1_800);
  await end;
  expect(steps).toHaveLength(1_800);
});

/** Types that survive JSON unchanged. `unknown` values from other programs arrived as JSON. */
type Json<Value> = unknown extends Value
  ? Value
  : Value extends string | number | boolean | null | undefined
    ? Value
    : Value extends bigint | symbol | ((...args: never) => unknown) | ReadonlyMap<never, unknown>
      ? never
      : Value extends ReadonlySet<unknown> | Date | Error | ArrayBufferView
        ? never
        : { [Key in keyof Value]: Json<Value[Key]> };

test('Every command and result is JSON, which the compiler checks.', () => {
  type Lossy = {
    [Name in UseCaseName]: [CommandOf<Name>, CommandResult<Name>] extends Json<
      [CommandOf<Name>, CommandResult<Name>]
    >
      ? never
      : Name;
  }[UseCaseName];
  expectTypeOf<Lossy>().toBeNever();
});

test('All writes that were requested just before the end are committed and answered.', async () => {
  await using store = createTestStore();
  const clock = { now: () => 1, monotonic: () => 1, sleep: () => Promise.resolve() };
  const sizes: number[] = [];
  await using writer = await startWriter(store.databasePath, clock, {
    role: 'authority',
    recordsHistory: () => true,
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

test('Writes that arrive during a commit are each done once, many in one commit.', async () => {
  await using store = createTestStore();
  const { accounts, products, licenses } = store.writing.transaction;
  accounts.add(account, 'digest');
  products.add(product, 'digest');
  licenses.add(buildLicense());
  const clock = { now: () => 1, monotonic: () => 1, sleep: () => Promise.resolve() };
  const sizes: number[] = [];
  const onCommit = ({ size }: { size: number }): void => void sizes.push(size);
  await using writer = await startWriter(store.databasePath, clock, {
    role: 'authority',
    recordsHistory: () => true,
    onCommit,
    onChanged: () => undefined,
    onTraced: () => undefined,
    onDiskSpace: () => undefined,
  });
  const tenant = { accountId: account.accountId, productKey: null };
  const use = async (): Promise<void> => {
    const { licenseKey } = buildLicense();
    for (let count = 0; count < 20; count += 1) {
      const changed = await writer.write('changeLicense', { tenant, licenseKey, trigger: 'usage' });
      expect(changed.ok).toBe(true);
    }
  };
  await Promise.all(Array.from({ length: 50 }, use));
  expect(store.reading.reader.licenses.get(buildLicense().licenseKey)?.uses).toBe(1000);
  expect(sizes.reduce((sum, size) => sum + size, 0)).toBe(1000);
  expect(Math.max(...sizes)).toBeGreaterThan(1);
});
