import { once } from 'node:events';
import { spawn } from 'node:child_process';
import { existsSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { ListenError, listenSocket, listenTcp } from '../../src/http/listen.ts';
import { httpClient } from '../support/network/raw-http.ts';
import { temporaryDirectory } from '../support/temporary.ts';
import { openApp, serverOf } from '../support/app/http-app.ts';

const codeOf = (error: unknown): unknown => (error instanceof ListenError ? error.code : error);

test.each([0o600, 0o660, 0o666])('a socket gets the configured mode: %o', async (mode) => {
  await using opened = await openApp();
  await using directory = temporaryDirectory();
  await using server = serverOf(opened.app, { listener: 'socket' });
  const path = join(directory.path, 'run', 'latchkey.sock');
  await listenSocket(server, { path, mode });
  expect(statSync(path).mode & 0o777).toBe(mode);
  expect(statSync(join(directory.path, 'run')).mode & 0o777).toBe(0o700);
});

test('from the first moment only the owner can use a socket', async () => {
  await using opened = await openApp();
  await using directory = temporaryDirectory();
  await using server = serverOf(opened.app, { listener: 'socket' });
  const path = join(directory.path, 'latchkey.sock');
  let modeAtFirst = 0;
  server.server.prependOnceListener('listening', () => {
    modeAtFirst = statSync(path).mode & 0o777;
  });
  const before = process.umask();
  await listenSocket(server, { path, mode: 0o666 });
  expect(modeAtFirst).toBe(0o600);
  expect(process.umask()).toBe(before);
});

test('a listener replaces the socket that a killed process left behind', async () => {
  await using opened = await openApp();
  await using directory = temporaryDirectory();
  await using server = serverOf(opened.app, { listener: 'socket' });
  const path = join(directory.path, 'latchkey.sock');
  const script = `require('node:net').createServer().listen(${JSON.stringify(path)}, () => console.log('up'))`;
  const other = spawn(process.execPath, ['-e', script]);
  await once(other.stdout, 'data');
  await expect(listenSocket(server, { path, mode: 0o600 })).rejects.toSatisfy(
    (error) => codeOf(error) === 'in_use',
  );
  other.kill('SIGKILL');
  await once(other, 'exit');
  expect(existsSync(path)).toBe(true);
  await listenSocket(server, { path, mode: 0o600 });
  await using http = httpClient({ socket: path });
  expect((await http.get('/livez')).status).toBe(200);
  await server.close();
  expect(existsSync(path)).toBe(false);
});

test('a socket that cannot be given to its group is not opened', async () => {
  await using opened = await openApp();
  await using directory = temporaryDirectory();
  await using server = serverOf(opened.app, { listener: 'socket' });
  const path = join(directory.path, 'latchkey.sock');
  const group = 2 ** 32;
  await expect(listenSocket(server, { path, mode: 0o666, group })).rejects.toMatchObject({
    code: 'refused',
    message: expect.stringContaining(`cannot give ${path} to group ${group}: `) as string,
  });
  expect(statSync(path).mode & 0o777).toBe(0o600);
});

test('a listener does not touch another file at the path of its socket', async () => {
  await using opened = await openApp();
  await using directory = temporaryDirectory();
  await using server = serverOf(opened.app, { listener: 'socket' });
  const path = join(directory.path, 'latchkey.sock');
  writeFileSync(path, 'precious');
  await expect(listenSocket(server, { path, mode: 0o600 })).rejects.toMatchObject({
    code: 'not_a_socket',
    message: `${path} exists and is not a socket`,
  });
  expect(statSync(path).size).toBe(8);
});

test('a socket path of 107 bytes is accepted, and a path of 108 bytes is refused', async () => {
  await using opened = await openApp();
  await using directory = temporaryDirectory();
  await using server = serverOf(opened.app, { listener: 'socket' });
  const longest = `${directory.path}/é`.padEnd(106, 'x');
  expect(Buffer.byteLength(longest)).toBe(107);
  await expect(listenSocket(server, { path: `${longest}x`, mode: 0o600 })).rejects.toMatchObject({
    code: 'path_too_long',
    message: `${longest}x: a socket's path has at most 107 bytes`,
  });
  await listenSocket(server, { path: longest, mode: 0o600 });
  expect(existsSync(longest)).toBe(true);
});

test('a socket whose directory cannot be created is refused with the reason', async () => {
  await using opened = await openApp();
  await using directory = temporaryDirectory();
  await using server = serverOf(opened.app, { listener: 'socket' });
  const file = join(directory.path, 'file');
  writeFileSync(file, '');
  const path = join(file, 'run', 'a.sock');
  await expect(listenSocket(server, { path, mode: 0o600 })).rejects.toMatchObject({
    code: 'refused',
    message: expect.stringContaining(`cannot make the directory of ${path}: ENOTDIR`) as string,
  });
});

test('a free port is chosen and reported, and a port in use is refused', async () => {
  await using opened = await openApp();
  await using first = serverOf(opened.app);
  await using second = serverOf(opened.app);
  const address = await listenTcp(first, { host: '127.0.0.1', port: 0 });
  expect(address).toMatch(/^http:\/\/127\.0\.0\.1:[1-9]\d+$/);
  const port = Number(new URL(address).port);
  await expect(listenTcp(second, { host: '127.0.0.1', port })).rejects.toSatisfy(
    (error) => codeOf(error) === 'in_use',
  );
});

test('an address of another machine is refused with the reason', async () => {
  await using opened = await openApp();
  await using server = serverOf(opened.app);
  await expect(listenTcp(server, { host: '192.0.2.1', port: 0 })).rejects.toMatchObject({
    code: 'refused',
    message: expect.stringContaining('cannot listen on 192.0.2.1:0: ') as string,
  });
});

test('an IPv6 address is reported in brackets', async () => {
  await using opened = await openApp();
  await using server = serverOf(opened.app);
  const address = await listenTcp(server, { host: '::1', port: 0 });
  expect(address).toMatch(/^http:\/\/\[::1\]:\d+$/);
  await using http = httpClient({ tcp: address });
  expect((await http.get('/livez')).status).toBe(200);
});
