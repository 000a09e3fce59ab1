import { mkdirSync, rmSync, statSync, unlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { latchkey } from '../support/process/command-line.ts';
import { startDaemonProcess, type DaemonProcess } from '../support/process/daemon-process.ts';
import { patience } from '../support/patience.ts';
import { httpClient } from '../support/network/raw-http.ts';
import { temporaryDirectory, type TemporaryDirectory } from '../support/temporary.ts';

type Harness = AsyncDisposable & { daemon: DaemonProcess; runtime: string; till: string; stateDir: string };

/** A daemon that listens on two sockets in a runtime directory, and not on TCP. */
async function startOnSockets(directory: TemporaryDirectory): Promise<Harness> {
  const runtime = join(directory.path, 'run');
  const till = join(runtime, 'till.sock');
  const listen = {
    tcp: false,
    socket: join(runtime, 'latchkey.sock'),
    sockets: [{ path: till, mode: '0666' }],
  };
  const daemon = await startDaemonProcess(directory.path, { listen });
  const stateDir = join(directory.path, 'state');
  return { daemon, runtime, till, stateDir, [Symbol.asyncDispose]: () => daemon[Symbol.asyncDispose]() };
}

test('a daemon recreates listen.json and the sockets whose directory was removed', async () => {
  await using directory = temporaryDirectory();
  await using harness = await startOnSockets(directory);
  const { daemon, runtime, till, stateDir } = harness;
  await using before = httpClient({ socket: till });
  expect((await before.get('/livez')).status).toBe(200);
  rmSync(runtime, { recursive: true });
  unlinkSync(join(stateDir, 'listen.json'));
  // The process does the same by itself once a minute.
  daemon.signal('SIGHUP');
  await vi.waitFor(() => expect(statSync(till).mode & 0o777).toBe(0o666), patience);
  await using http = httpClient({ socket: till });
  expect((await http.get('/livez')).status).toBe(200);
  await vi.waitFor(async () => {
    expect((await latchkey('status', '--state-dir', stateDir)).code).toBe(0);
  }, patience);
  const removed = daemon.lines.filter(({ msg }) => msg === 'the file of a socket was removed: created again');
  expect(removed.map(({ socket }) => socket)).toEqual([join(runtime, 'latchkey.sock'), till]);
  daemon.signal('SIGTERM');
  expect(await daemon.ended).toBe(0);
});

test('the log, status and doctor name a socket that cannot be recreated', async () => {
  await using directory = temporaryDirectory();
  await using harness = await startOnSockets(directory);
  const { daemon, till, stateDir } = harness;
  unlinkSync(till);
  writeFileSync(till, 'another file');
  daemon.signal('SIGHUP');
  const line = await daemon.said('the file of a socket was removed: connections to it fail');
  expect(line['socket']).toBe(till);
  const status = await latchkey('status', '--state-dir', stateDir);
  expect(status.out).toMatch(/^fail +the socket .*till\.sock was removed .*: connections to it fail +→ /m);
  const doctor = await latchkey('doctor', '--state-dir', stateDir);
  expect([doctor.code, doctor.out]).toEqual([
    1,
    expect.stringContaining(`the socket ${till} was removed and cannot be created again`),
  ]);
  unlinkSync(till);
  daemon.signal('SIGHUP');
  await vi.waitFor(async () => {
    expect((await latchkey('status', '--state-dir', stateDir)).out).not.toContain('connections to it fail');
  }, patience);
});

test('commands do not claim that no daemon runs while a process holds the state directory', async () => {
  await using directory = temporaryDirectory();
  await using harness = await startOnSockets(directory);
  const { runtime, stateDir } = harness;
  const named = ['--state-dir', stateDir];
  const holds = `latchkey: a process has locked ${stateDir} (from --state-dir), and cannot be reached`;
  rmSync(runtime, { recursive: true });
  const unreachable = await latchkey('status', ...named);
  expect([unreachable.code, unreachable.err]).toEqual([69, expect.stringContaining(holds)]);
  expect(unreachable.err).not.toContain('Start it');
  const doctor = await latchkey('doctor', ...named);
  expect([doctor.code, doctor.out]).toEqual([
    1,
    expect.stringContaining('a process has locked the state directory, and cannot be reached'),
  ]);
  unlinkSync(join(stateDir, 'listen.json'));
  const unknown = await latchkey('status', ...named);
  expect([unknown.code, unknown.err]).toEqual([69, expect.stringContaining(holds)]);
  mkdirSync(join(directory.path, 'empty'));
  const nothing = await latchkey('status', '--state-dir', join(directory.path, 'empty'));
  expect(nothing.err).toContain('no daemon runs on');
});
