import { createServer, type Server, type Socket } from 'node:net';
import { setImmediate } from 'node:timers/promises';
import { createServer as createSecureServer } from 'node:tls';
import { expect, test } from 'vitest';
import { certificate, privateKey } from '../support/network/certificate.ts';
import { startForwarder } from '../support/network/forward-proxy.ts';
import { listen } from '../support/network/listener.ts';
import { changeOf, clientOf, key, never } from '../support/harness/upstream-harness.ts';

/*
 * Unrequested interim responses (1xx), which a client must skip (RFC 9110, 15.2). Some servers send `100
 * Continue` for every request with a body.
 */

const license = {
  license_key: key,
  enabled: true,
  product_link: 'p1',
  buyer_email: 'a@example.com',
  uses: 3,
  date: '2024-02-22T11:23:05+00:00',
};
const body = JSON.stringify({ data: license });
const final = `HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
const proceed = 'HTTP/1.1 100 Continue\r\n\r\n';
const hints = 'HTTP/1.1 103 Early Hints\r\nLink: </style.css>; rel=preload\r\n\r\n';

/** A text in chunks of one byte. */
function bytesOf(text: string): string[] {
  return text.split('');
}

/** Writes a response in these chunks to each request on a connection. */
function answering(pieces: readonly string[], requests: { count: number }): (socket: Socket) => void {
  return (socket) => {
    let received = '';
    let turns = Promise.resolve();
    const answer = async (): Promise<void> => {
      for (const piece of pieces) {
        socket.write(piece);
        // The client reads each chunk separately.
        for (let turn = 0; turn < 5; turn += 1) await setImmediate();
      }
    };
    socket.on('error', () => undefined);
    socket.on('data', (chunk: Buffer) => {
      received += chunk.toString('latin1');
      for (;;) {
        const head = /^[^]*?\r\n\r\n/.exec(received)?.[0];
        if (head === undefined) return;
        const length = head.length + Number(/content-length: (\d+)/i.exec(head)?.[1] ?? 0);
        if (received.length < length) return;
        received = received.slice(length);
        requests.count += 1;
        turns = turns.then(answer);
      }
    });
  };
}

async function serve(pieces: readonly string[]) {
  const requests = { count: 0 };
  const connections: Socket[] = [];
  const server: Server = createServer(answering(pieces, requests));
  server.on('connection', (socket) => connections.push(socket));
  const listener = await listen(server);
  return { url: `http://127.0.0.1:${listener.port}`, port: listener.port, requests, connections, listener };
}

const applied = { outcome: 'applied', value: { licenseKey: key, enabled: true, uses: 3 } };

test.each([
  ['100 Continue', [proceed, final]],
  ['100 Continue, in one chunk with its response', [proceed + final]],
  ['100 Continue, in many chunks', bytesOf(proceed + final)],
  ['100 Continue several times', [proceed + proceed, proceed, final]],
  ['100 Continue with headers', [`HTTP/1.1 100 Continue\r\nServer: shop\r\nX-Node: 7\r\n\r\n${final}`]],
  ['100 Continue of HTTP/1.0', [`HTTP/1.0 100 Continue\r\n\r\n${final}`]],
  ['100 without a reason', [`HTTP/1.1 100 \r\n\r\n${final}`, '']],
  ['103 Early Hints', [hints, final]],
  ['102 Processing', ['HTTP/1.1 102 Processing\r\n\r\n', final]],
  ['both', [proceed, hints, proceed, final]],
  ['nothing', [final]],
  ['nothing, in many pieces', bytesOf(final)],
])('the final response is read after %s', async (_, pieces) => {
  const upstream = await serve(pieces);
  await using _listener = upstream.listener;
  await using client = clientOf(upstream.url, { maxConnections: () => 1 });
  expect(await client.verify('p1', key, never())).toMatchObject(applied);
  expect(await client.change(changeOf('p1', key, 'usage'), never())).toMatchObject(applied);
  expect(await client.verify('p1', key, never())).toMatchObject(applied);
  expect([upstream.requests.count, upstream.connections.length]).toEqual([3, 1]);
});

test('an upstream over TLS and behind a proxy may send 100 Continue', async () => {
  const server = createSecureServer(
    { cert: certificate, key: privateKey },
    answering([proceed, final], { count: 0 }),
  );
  await using secure = await listen(server);
  await using direct = clientOf(`https://localhost:${secure.port}`, { ca: certificate });
  expect(await direct.verify('p1', key, never())).toMatchObject(applied);
  await using forwarder = await startForwarder(secure.port);
  await using tunnelled = clientOf('https://localhost', { proxy: forwarder.url, ca: certificate });
  expect(await tunnelled.verify('p1', key, never())).toMatchObject(applied);
  expect(forwarder.asked).toEqual(['CONNECT localhost:443']);
});

test('a proxy may send 100 Continue itself', async () => {
  const proxy = await serve([proceed, final]);
  await using _listener = proxy.listener;
  await using client = clientOf('http://upstream.test', { proxy: proxy.url });
  expect(await client.verify('p1', key, never())).toMatchObject(applied);
});

test('an upstream behind connect_to may send 100 Continue', async () => {
  const upstream = await serve([proceed, final]);
  await using _listener = upstream.listener;
  const connectTo = { host: '127.0.0.1', port: upstream.port };
  await using client = clientOf('http://upstream.test', { connectTo });
  expect(await client.verify('p1', key, never())).toMatchObject(applied);
});

test.each([
  ['that sends 100 Continue and no response', [proceed]],
  ['that sends half of 100 Continue', ['HTTP/1.1 10']],
  ['that sends endless headers after 100', [`HTTP/1.1 100 Continue\r\n${'X-A: b\r\n'.repeat(4_000)}`]],
  [
    'that switches protocols without a request',
    ['HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n'],
  ],
])('an upstream %s leaves the outcome open', async (_, pieces) => {
  const server = createServer((socket) => {
    answering(pieces, { count: 0 })(socket);
    socket.once('data', () => void setTimeout(() => socket.end(), 50));
  });
  await using listener = await listen(server);
  await using client = clientOf(`http://127.0.0.1:${listener.port}`);
  const outcome = await client.change(changeOf('p1', key, 'usage'), never());
  expect(outcome).toMatchObject({ outcome: 'ambiguous', status: null });
});
