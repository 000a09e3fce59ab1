import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { call } from '../../src/cli/client/call.ts';
import { freePort } from '../support/network/free-port.ts';
import { temporaryDirectory } from '../support/temporary.ts';

test('a request whose response breaks off counts as sent', async () => {
  await using server = createServer((request, response) => {
    response.writeHead(200).write('{');
    if (request.url === '/cut') setImmediate(() => request.socket.destroy());
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  const endpoint = { kind: 'tcp', url, certificate: null } as const;
  expect(await call(endpoint, { path: '/', timeoutMs: 50 }, null)).toEqual({
    ok: false,
    sent: true,
    silent: true,
    reason: 'no response within 0.05 seconds',
  });
  expect(await call(endpoint, { path: '/cut' }, null)).toMatchObject({ ok: false, sent: true });
  server.closeAllConnections();
});

test('a request that could not be sent counts as not sent', async () => {
  await using directory = temporaryDirectory();
  const socket = { kind: 'socket', path: join(directory.path, 'none.sock') } as const;
  expect(await call(socket, { path: '/' }, null)).toMatchObject({ ok: false, sent: false });
  const url = new URL(`http://127.0.0.1:${await freePort()}`);
  const refused = await call({ kind: 'tcp', url, certificate: null }, { path: '/' }, null);
  expect(refused).toMatchObject({ ok: false, sent: false });
});
