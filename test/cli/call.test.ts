import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, test } from 'vitest';
import { type Call, call, type CallResult, Connection } from '../../src/cli/client/call.ts';
import type { Endpoint } from '../../src/cli/client/endpoint.ts';
import { freePort } from '../support/network/free-port.ts';
import { temporaryDirectory } from '../support/temporary.ts';
import { socketPath } from '../support/network/socket-path.ts';

async function callOnce(endpoint: Endpoint, request: Call): Promise<CallResult> {
  using connection = new Connection(endpoint);
  return await call(connection, request, null);
}

test('a request whose response breaks off counts as sent', async () => {
  await using server = createServer((request, response) => {
    response.writeHead(200).write('{');
    if (request.url === '/cut') setImmediate(() => request.socket.destroy());
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  const endpoint = { kind: 'tcp', url, certificate: null } as const;
  expect(await callOnce(endpoint, { path: '/', timeoutMs: 50 })).toEqual({
    ok: false,
    sent: true,
    silent: true,
    reason: 'no response within 0.05 seconds',
  });
  expect(await callOnce(endpoint, { path: '/cut' })).toMatchObject({ ok: false, sent: true });
  server.closeAllConnections();
});

test('a request that could not be sent counts as not sent', async () => {
  await using directory = temporaryDirectory();
  const socket = { kind: 'socket', path: socketPath(directory.path, 'none.sock') } as const;
  expect(await callOnce(socket, { path: '/' })).toMatchObject({ ok: false, sent: false });
  const url = new URL(`http://127.0.0.1:${await freePort()}`);
  const refused = await callOnce({ kind: 'tcp', url, certificate: null }, { path: '/' });
  expect(refused).toMatchObject({ ok: false, sent: false });
});
