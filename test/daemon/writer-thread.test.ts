import { EventEmitter } from 'node:events';
import type { Worker } from 'node:worker_threads';
import { expect, test } from 'vitest';
import { WriterThread } from '../../src/daemon/threads/writer-thread.ts';
import { StorageError } from '../../src/service/ports.ts';

/** A writer whose thread answers only what the test lets it. */
function startSilentWriter(): {
  writer: WriterThread;
  thread: EventEmitter;
  turnTo: (steady: number) => void;
  rooms: boolean[];
} {
  let steady = 0;
  const rooms: boolean[] = [];
  const thread = Object.assign(new EventEmitter(), { postMessage: () => undefined });
  const clock = { now: () => steady, steady: () => steady, sleep: () => Promise.resolve() };
  const events = { onCommit: () => undefined, onRoom: (isFull: boolean) => void rooms.push(isFull) };
  const writer = new WriterThread(thread as unknown as Worker, clock, events);
  return { writer, thread, rooms, turnTo: (at) => (steady = at) };
}

test('a write that waits for more than a minute shows that the disk hangs', async () => {
  const { writer, thread, turnTo } = startSilentWriter();
  const write = writer.write('pruneIdempotency', { believedNow: 0 });
  turnTo(60_000);
  expect(writer.isStuck).toBe(false);
  turnTo(60_001);
  expect(writer.isStuck).toBe(true);
  thread.emit('message', { outcomes: [{ id: 1, result: null }], commit: null, isBroken: false });
  await write;
  expect(writer.isStuck).toBe(false);
});

test('a full disk and room on it are told as they come', () => {
  const { writer, thread, rooms } = startSilentWriter();
  thread.emit('message', { isFull: true });
  expect(writer.isFull).toBe(true);
  thread.emit('message', { isFull: false });
  expect([writer.isFull, rooms]).toEqual([false, [true, false]]);
});

test('what is refused writes nothing any more, and is no loss of the thread', async () => {
  const { writer } = startSilentWriter();
  writer.refuse(new Error('damaged'));
  await expect(writer.write('pruneIdempotency', { believedNow: 0 })).rejects.toBeInstanceOf(StorageError);
  await expect(Promise.race([writer.lost, Promise.resolve('pending')])).resolves.toBe('pending');
});
