import { expect, test, vi } from 'vitest';
import { secret } from '../../support/harness/dialect-harness.ts';
import { adminToken } from '../../support/app/http-app.ts';
import { serveApp, type Served } from '../../support/app/http-served.ts';
import { KeptConnection, openSocket } from '../../support/network/kept-connection.ts';
import { httpClient, sendRaw } from '../../support/network/raw-http.ts';

const listeners = ['tcp', 'socket'] as const;
const operator = { authorization: `Bearer ${adminToken}` };

/** An authority with one license key. */
async function serve(): Promise<Served> {
  const served = await serveApp({ cachesResponses: true });
  await using http = httpClient(served.listeners.tcp);
  const product = { name: 'Editor', product_key: 'EDITOR', secret };
  await http.post('/admin/v1/products', { headers: operator, json: product });
  const purchase = { product_key: 'EDITOR', buyer_email: 'a@example.com', license_key: 'KEY-1' };
  await http.post('/admin/v1/purchases', { headers: operator, json: purchase });
  return served;
}

const head = `Host: localhost\r\nproduct-secret-key: ${secret}\r\n`;
const body = 'license_key=KEY-1';
const verify = `GET /api/v2/license/verify?${body} HTTP/1.1\r\n${head}\r\n`;

const headOf = (operation: string, framing: string): string =>
  `PUT /api/v2/license/${operation} HTTP/1.1\r\n${head}Content-Type: application/x-www-form-urlencoded\r\n${framing}\r\n\r\n`;
const change = (operation: string): string => headOf(operation, `Content-Length: ${body.length}`) + body;
const inChunks = (operation: string): string =>
  `${headOf(operation, 'Transfer-Encoding: chunked')}${body
    .split('')
    .map((each) => `1\r\n${each}\r\n`)
    .join('')}0\r\n\r\n`;

/** Sends requests in one chunk; returns the states of the key in their responses. */
async function sendAtOnce(listener: Served['listeners']['tcp'], sent: readonly string[]): Promise<unknown[]> {
  const socket = openSocket(listener);
  let received = '';
  const told = (): unknown[] =>
    [...received.matchAll(/"enabled":(\w+).*?"uses":(\d+)/g)].map(
      ([, enabled, uses]) => `${enabled} ${uses}`,
    );
  socket.on('data', (text: string) => (received += text));
  socket.write(sent.join(''));
  await expect.poll(() => told().length).toBe(sent.length);
  socket.destroy();
  return told();
}

test.each(listeners)('a verify pipelined behind changes (%s) shows their effect', async (kind) => {
  await using served = await serve();
  const sent = [change('usage'), verify, change('disable'), verify, verify, change('usage'), verify];
  const told = ['true 1', 'true 1', 'false 1', 'false 1', 'false 1', 'false 2', 'false 2'];
  expect(await sendAtOnce(served.listeners[kind], sent)).toEqual(told);
  const again = ['false 3', 'false 3', 'false 3', 'false 3', 'false 3', 'false 4', 'false 4'];
  expect(await sendAtOnce(served.listeners[kind], sent)).toEqual(again);
});

test.each(listeners)('many verifies that wait behind a change (%s) cause no leak warning', async (kind) => {
  await using served = await serve();
  using warned = vi.spyOn(process, 'emitWarning');
  const sent = [change('usage'), ...Array.from({ length: 20 }, () => verify)];
  expect(await sendAtOnce(served.listeners[kind], sent)).toEqual(sent.map(() => 'true 1'));
  expect(warned).not.toHaveBeenCalled();
});

test.each(listeners)('a chunked change (%s) is not overtaken by the change behind it', async (kind) => {
  await using served = await serve();
  const sent = [inChunks('disable'), change('enable'), inChunks('usage'), change('decrease'), verify];
  const told = ['false 0', 'true 0', 'true 1', 'true 0', 'true 0'];
  for (let time = 0; time < 3; time += 1) {
    expect(await sendAtOnce(served.listeners[kind], sent)).toEqual(told);
  }
});

test('a change that waits for the previous one is executed once its body has arrived, however it arrives', async () => {
  await using served = await serve();
  await using http = httpClient(served.listeners.tcp);
  await sendAtOnce(served.listeners.tcp, [change('usage')]);
  const isHeld = Promise.withResolvers<void>();
  const { licenseService } = served.app;
  const carryOut = licenseService.change.bind(licenseService);
  const asked = vi.spyOn(licenseService, 'change').mockImplementationOnce(async (...command) => {
    await isHeld.promise;
    return await carryOut(...command);
  });
  const socket = openSocket(served.listeners.tcp).setNoDelay(true);
  let received = '';
  socket.on('data', (text: string) => (received += text));
  const begun = change('usage') + headOf('usage', `Content-Length: ${body.length}`);
  for (const part of [begun, body.slice(0, -2), body.slice(-2)]) {
    await new Promise((resolve) => socket.write(part, resolve));
    // The server has read this before the next request is sent.
    await http.get('/livez');
  }
  expect(asked).toHaveBeenCalledTimes(1);
  isHeld.resolve();
  await expect.poll(() => received.match(/"uses":\d/g)).toEqual(['"uses":2', '"uses":3']);
  socket.destroy();
});

const closing = verify.replace('Host:', 'Connection: close\r\nHost:');
const statusesIn = (raw: string): string[] => raw.match(/HTTP\/1\.1 \d+/g) ?? [];

test.each(listeners)(
  'requests behind the last request of a connection (%s) are not answered, even if its response is cached',
  async (kind) => {
    await using served = await serve();
    for (let time = 0; time < 4; time += 1) {
      const { raw, ending } = await sendRaw(served.listeners[kind], closing + change('usage') + verify);
      expect([statusesIn(raw), ending]).toEqual([['HTTP/1.1 200'], 'closed']);
    }
    expect(await sendAtOnce(served.listeners[kind], [verify])).toEqual(['true 0']);
  },
);

test.each(listeners)(
  'a verify with Expect: 100-continue (%s) closes only its own connection',
  async (kind) => {
    await using served = await serve();
    const listener = served.listeners[kind];
    await using kept = new KeptConnection(listener);
    for (let time = 0; time < 3; time += 1) await kept.send(verify);
    await using http = httpClient(listener);
    await http.put('/api/v2/license/usage', {
      headers: { 'product-secret-key': secret },
      form: { license_key: 'KEY-1' },
    });
    const expecting = verify.replace('Host:', 'Expect: 100-continue\r\nHost:');
    const other = verify.replace('KEY-1', 'KEY-2');
    // Behind another request, its response is the last of its connection.
    for (let time = 0; time < 3; time += 1) {
      const { raw } = await sendRaw(listener, other.replace('Host:', `X-Head: ${time}\r\nHost:`) + expecting);
      expect(statusesIn(raw)).toEqual(['HTTP/1.1 404', 'HTTP/1.1 200']);
    }
    const { raw } = await sendRaw(listener, verify + verify + closing);
    expect(statusesIn(raw)).toHaveLength(3);
    expect(await kept.send(verify)).toContain('Connection: keep-alive');
  },
);
