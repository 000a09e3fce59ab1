import { randomUUID } from 'node:crypto';
import { lstatSync } from 'node:fs';
import { expect, test } from 'vitest';
import { listenSocket } from '../../src/http/listen.ts';
import { httpClient } from '../support/network/raw-http.ts';
import { openApp, serverOf } from '../support/app/http-app.ts';

// Linux takes the name of a pipe for the name of a Unix socket in the working directory.
const pipeName = (): string => String.raw`\\.\pipe\latchkey-test-${randomUUID()}`;

test.each([
  { mode: 0o600, isOpenToAll: false },
  { mode: 0o666, isOpenToAll: true },
])('a pipe serves requests with mode $mode', async ({ mode, isOpenToAll }) => {
  await using opened = await openApp();
  await using server = serverOf(opened.app, { listener: 'socket' });
  const path = pipeName();
  await listenSocket(server, { path, mode });
  await using http = httpClient({ socket: path });
  expect((await http.get('/livez')).status).toBe(200);
  // Linux shows as permission bits what Node asked of the pipe.
  const bits = process.platform === 'win32' ? mode : lstatSync(path).mode;
  expect((bits & 0o666) === 0o666).toBe(isOpenToAll);
});

test('a pipe on which another server listens is refused, and is free when that server has closed', async () => {
  await using opened = await openApp();
  await using first = serverOf(opened.app, { listener: 'socket' });
  await using second = serverOf(opened.app, { listener: 'socket' });
  const path = pipeName();
  await listenSocket(first, { path, mode: 0o600 });
  await expect(listenSocket(second, { path, mode: 0o600 })).rejects.toMatchObject({
    code: 'in_use',
    message: `another program listens on ${path}`,
  });
  await first.close();
  await listenSocket(second, { path, mode: 0o600 });
});

test.each([
  {
    place: { mode: 0o660 },
    reason:
      'a named pipe cannot have mode 0660: 0600 is for its creator and administrators, 0666 for every user',
  },
  { place: { mode: 0o600, group: 1000 }, reason: 'a named pipe has no group' },
])('a pipe is refused because $reason', async ({ place, reason }) => {
  await using opened = await openApp();
  await using server = serverOf(opened.app, { listener: 'socket' });
  const path = pipeName();
  await expect(listenSocket(server, { path, ...place })).rejects.toMatchObject({
    code: 'refused',
    message: `${path}: ${reason}`,
  });
});
