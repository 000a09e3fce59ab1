import { once } from 'node:events';
import { readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { Client } from 'undici';
import { expect, test, vi } from 'vitest';
import { backUpInThread, Backups } from '../../../../src/daemon/store/backups.ts';
import { StorageError } from '../../../../src/service/ports.ts';
import { VirtualTime } from '../../../support/harness/virtual-clock.ts';
import { createTestStore } from '../../../support/builders/store-builders.ts';
import { httpClient } from '../../../support/network/raw-http.ts';
import { temporaryDirectory } from '../../../support/temporary.ts';
import { adminToken, openApp, serverOf } from '../../../support/app/http-app.ts';
import { serveApp } from '../../../support/app/http-served.ts';
import { patience } from '../../../support/patience.ts';

const clock = new VirtualTime().clock();
const path = '/admin/v1/backup';
const headers = { authorization: `Bearer ${adminToken}` };
const request = { url: path, headers };
const leftovers = (directory: string): string[] =>
  readdirSync(directory).filter((name) => name.startsWith('backup'));

test('a backup is the store in one file, and leaves no file behind', async () => {
  await using opened = await openApp();
  const answer = await serverOf(opened.app).inject(request);
  expect(answer.statusCode).toBe(200);
  expect(answer.headers['content-type']).toBe('application/octet-stream');
  expect(answer.headers['content-length']).toBe(String(answer.rawPayload.length));
  await using directory = temporaryDirectory();
  const file = join(directory.path, 'copy.db');
  writeFileSync(file, answer.rawPayload);
  using copy = new DatabaseSync(file);
  expect(copy.prepare('PRAGMA quick_check').get()).toEqual({ quick_check: 'ok' });
  expect(copy.prepare('SELECT account_id FROM account').all()).toEqual([{ account_id: 'default' }]);
  expect(leftovers(opened.directory)).toEqual([]);
});

test('a second backup is refused while the first is made, and accepted when it is done', async () => {
  const { promise, resolve } = Promise.withResolvers<void>();
  await using directory = temporaryDirectory();
  const copyTo = async (file: string): Promise<void> => {
    await promise;
    writeFileSync(file, 'all of it', { mode: 0o600 });
  };
  const backups = new Backups(directory.path, copyTo, clock, new AbortController().signal);
  await using opened = await openApp({ backup: (signal) => backups.make(signal) });
  const server = serverOf(opened.app);
  // `inject` sends the request only when it is awaited.
  const first = Promise.resolve(server.inject(request));
  await vi.waitFor(async () => {
    const second = await server.inject(request);
    expect([second.statusCode, second.json<{ code: string }>().code]).toEqual([409, 'backup_running']);
  }, patience);
  resolve();
  expect((await first).body).toBe('all of it');
  expect((await server.inject(request)).body).toBe('all of it');
});

test('a caller that disconnects leaves no backup file behind, and the next backup is accepted', async () => {
  await using directory = temporaryDirectory();
  // More than the buffers between two processes can hold.
  const large = Buffer.alloc(16 * 1024 * 1024, 'x');
  const copyTo = async (file: string): Promise<void> => writeFileSync(file, large, { mode: 0o600 });
  const backups = new Backups(directory.path, copyTo, clock, new AbortController().signal);
  await using served = await serveApp({ backup: (signal) => backups.make(signal) });
  const origin = 'tcp' in served.listeners.tcp ? served.listeners.tcp.tcp : '';
  await using other = httpClient(served.listeners.socket);
  const status = async (): Promise<number> => (await other.get(path, { headers })).status;
  for (let time = 0; time < 3; time += 1) {
    await using ending = new AsyncDisposableStack();
    const leaving = ending.adopt(new Client(origin), (client) => client.destroy());
    const answer = await leaving.request({ method: 'GET', path, headers });
    answer.body.on('error', () => undefined);
    expect(answer.statusCode).toBe(200);
    expect(await status()).toBe(409);
    answer.body.destroy();
    await vi.waitFor(async () => expect(await status()).toBe(200), patience);
  }
  expect(leftovers(directory.path)).toEqual([]);
});

test('a caller that disconnects while the backup is made ends it', async () => {
  await using directory = temporaryDirectory();
  await using store = createTestStore();
  const begun = Promise.withResolvers<void>();
  let isFirst = true;
  const copyTo = async (file: string, signal: AbortSignal): Promise<void> => {
    if (isFirst) {
      isFirst = false;
      writeFileSync(file, 'half of it', { mode: 0o600 });
      begun.resolve();
      await once(signal, 'abort');
      signal.throwIfAborted();
    }
    await backUpInThread({ databasePath: store.databasePath, path: file }, signal);
  };
  const backups = new Backups(directory.path, copyTo, clock, new AbortController().signal);
  await using served = await serveApp({ backup: (signal) => backups.make(signal) });
  await using client = httpClient(served.listeners.socket);
  const leaving = new AbortController();
  const answer = client.get(path, { headers, signal: leaving.signal });
  await begun.promise;
  leaving.abort();
  await expect(answer).rejects.toMatchObject({ name: 'AbortError' });
  await vi.waitFor(async () => expect((await client.get(path, { headers })).status).toBe(200), patience);
  expect(leftovers(directory.path)).toEqual([]);
});

test('an abort ends a backup in its own thread', async () => {
  await using directory = temporaryDirectory();
  await using store = createTestStore();
  const order = { databasePath: store.databasePath, path: join(directory.path, 'copy.db') };
  await expect(backUpInThread(order, AbortSignal.abort())).rejects.toMatchObject({ name: 'AbortError' });
  writeFileSync(order.path, 'precious');
  await expect(backUpInThread(order, new AbortController().signal)).rejects.toMatchObject({
    cause: { message: expect.stringContaining('EEXIST') as string },
  });
});

test('a caller that reads nothing for a minute loses its place to the next, and a slow reader does not', async () => {
  await using directory = temporaryDirectory();
  const large = Buffer.alloc(4 * 1024 * 1024, 'x');
  const copyTo = async (file: string): Promise<void> => writeFileSync(file, large, { mode: 0o600 });
  const time = new VirtualTime();
  const backups = new Backups(directory.path, copyTo, time.clock(), new AbortController().signal);
  const make = () => backups.make(new AbortController().signal);
  const slow = await make();
  if (!slow.ok) throw new Error('the first backup is refused');
  const { content } = slow.value;
  for (let taken = 0; taken < 5; taken += 1) {
    if (content.readableLength === 0) await once(content, 'readable');
    expect((content.read() as Buffer | null)?.length).toBeGreaterThan(0);
    await once(content, 'readable');
    await time.advance(50_000);
    expect(content.destroyed).toBe(false);
  }
  await time.advance(5_000);
  expect(await make()).toMatchObject({ ok: false, problem: { code: 'backup_running' } });
  const closed = new Promise((resolve) => content.once('close', resolve));
  await time.advance(10_000);
  expect(content.destroyed).toBe(true);
  await closed;
  expect(await make()).toMatchObject({ ok: true });
});

test('HEAD returns the length of a backup, and the next backup is accepted', async () => {
  await using opened = await openApp();
  const server = serverOf(opened.app);
  const head = await server.inject({ ...request, method: 'HEAD' });
  expect([head.statusCode, head.body]).toEqual([200, '']);
  expect(Number(head.headers['content-length'])).toBeGreaterThan(4096);
  await vi.waitFor(async () => expect((await server.inject(request)).statusCode).toBe(200), patience);
});

test('a failed backup is refused and removed, and does not block the next backup', async () => {
  await using directory = temporaryDirectory();
  const faults = [new StorageError('full', new Error('no room')), new Error('no such thing')];
  const copyTo = async (file: string): Promise<void> => {
    writeFileSync(file, 'half of it', { mode: 0o600 });
    const fault = faults.shift();
    if (fault !== undefined) throw fault;
  };
  const backups = new Backups(directory.path, copyTo, clock, new AbortController().signal);
  await using opened = await openApp({ backup: (signal) => backups.make(signal) });
  const server = serverOf(opened.app);
  const codes = [];
  for (let time = 0; time < 3; time += 1) codes.push((await server.inject(request)).statusCode);
  expect(codes).toEqual([507, 500, 200]);
  expect(leftovers(directory.path)).toEqual([]);
});

test('the next start removes the unfinished backup of a killed process', async () => {
  await using directory = temporaryDirectory();
  for (const name of ['backup.new', 'backup.new-journal']) writeFileSync(join(directory.path, name), 'half');
  const backups = new Backups(directory.path, () => Promise.resolve(), clock, new AbortController().signal);
  expect(backups).toBeDefined();
  expect(leftovers(directory.path)).toEqual([]);
});
