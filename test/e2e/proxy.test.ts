import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer as createHttpServer } from 'node:http';
import { createServer, type AddressInfo, type Server } from 'node:net';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { Proxies } from '../../src/http/entry/client-address.ts';
import { dialects } from '../support/stores/dialects.ts';
import { routesOf } from '../../src/http/routes/all.ts';
import { runProcess } from '../support/process/command-line.ts';
import { startDaemonProcess } from '../support/process/daemon-process.ts';
import { blocksOf, chapterOf, readExample } from '../support/reference/guides.ts';
import { httpClient } from '../support/network/raw-http.ts';
import { temporaryDirectory } from '../support/temporary.ts';
import { isProxyInstalled, startProxy, type ProxyName } from '../support/network/tls-proxy.ts';

const form = { 'content-type': 'application/x-www-form-urlencoded' };
const [secret, licenseKey] = ['lk_prod_of_the_editor', 'AAAAA-BBBBB-CCCCC-DDDDD'];

/** The configuration of the guide, with a free port and a temporary state. */
function configuration(): object {
  const chapter = chapterOf(readExample('guides/seller.md'), 'Run it publicly behind a TLS proxy');
  const { listen, limits } = parse(blocksOf(chapter, 'yaml')[0] ?? '') as { listen: object; limits: object };
  return { listen: { ...listen, tcp: '127.0.0.1:0' }, limits };
}

function adminOf(directory: string): { authorization: string } {
  return { authorization: `Bearer ${readFileSync(join(directory, 'state', 'admin.token'), 'utf8').trim()}` };
}

async function makeCertificate(directory: string): Promise<void> {
  const argv = ['certificate', 'make', '--host', 'licenses.example.com', '--out', directory];
  const made = await runProcess(argv);
  expect(made).toMatchObject({ code: 0 });
}

/** Answers the first PUT, and closes the connection of every other. */
async function startBreaker(): Promise<{ server: Server; address: string; requests: () => number }> {
  let requests = 0;
  const server = createServer((socket) => {
    socket.on('error', () => undefined);
    socket.on('data', (chunk) => {
      const text = chunk.toString('latin1');
      // HAProxy asks whether the node is ready.
      if (text.startsWith('GET /readyz ')) socket.end('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok');
      if (!text.startsWith('PUT ')) return;
      requests += 1;
      if (requests === 1) socket.write('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok');
      else socket.destroy();
    });
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return { server, address: `127.0.0.1:${port}`, requests: () => requests };
}

/** The routes that programs, devices and stores use over the Internet. */
const exposed = (await routesOf(dialects.payhip)).filter(
  ({ path }) => /^\/(?:api|agent|sync|lease|hooks)\//.test(path) || /^\/(?:openapi\.json|livez)$/.test(path),
);

/** The configuration of the guide, with a public listener as in the guide to leases. */
function withPublicListener(): object {
  const { listen, limits } = configuration() as { listen: object; limits: object };
  const chapter = chapterOf(readExample('guides/leases.md'), 'Let holders reach the issuer');
  const guide = parse(blocksOf(chapter, 'yaml')[0] ?? '') as { listen: { public: object } };
  const publicListener = { ...guide.listen.public, address: '127.0.0.1:0', buyers: true };
  return { listen: { ...listen, public: publicListener }, limits };
}

/** Answers with the address of the client, as a public listener behind the proxy sees it. */
async function startClientAddresses(): Promise<AsyncDisposable & { address: string }> {
  const proxies = new Proxies([{ address: '127.0.0.1', prefix: 32 }]);
  const server = createHttpServer(({ socket, headersDistinct }, response) => {
    response.end(proxies.clientOf(socket.remoteAddress ?? '', headersDistinct['x-forwarded-for'] ?? []));
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    address: `127.0.0.1:${port}`,
    async [Symbol.asyncDispose]() {
      server.close();
      server.closeAllConnections();
      await once(server, 'close');
    },
  };
}

for (const name of ['nginx', 'caddy', 'haproxy'] as const satisfies readonly ProxyName[]) {
  const isInstalled = isProxyInstalled(name);
  const missing = isInstalled ? '' : ` (skipped: ${name} is not installed)`;
  describe.skipIf(!isInstalled)(`a central API behind ${name}, configured as its example${missing}`, () => {
    test('the example proxy exposes the routes of customers, but not /admin', async () => {
      await using directory = temporaryDirectory();
      const tls = join(directory.path, 'tls');
      await makeCertificate(tls);
      await using daemon = await startDaemonProcess(directory.path, configuration());
      const admin = adminOf(directory.path);
      await using local = httpClient({ tcp: daemon.tcp });
      await local.post('/admin/v1/products', {
        headers: admin,
        json: { name: 'Editor', product_key: 'EDITOR', secret },
      });
      await local.post('/admin/v1/purchases', {
        headers: admin,
        json: { product_key: 'EDITOR', buyer_email: 'b@example.com', license_key: licenseKey },
      });
      await using proxy = await startProxy(name, { directory: tls, behind: new URL(daemon.tcp).host });

      const headers = { 'product-secret-key': secret };
      const verified = await proxy.ask(`/api/v2/license/verify?license_key=${licenseKey}`, { headers });
      expect([verified.status, JSON.parse(verified.text)]).toMatchObject([200, { data: { uses: 0 } }]);
      const body = `license_key=${licenseKey}`;
      const used = await proxy.ask('/api/v2/license/usage', {
        method: 'PUT',
        headers: { ...headers, ...form },
        body,
      });
      expect([used.status, JSON.parse(used.text)]).toMatchObject([200, { data: { uses: 1 } }]);
      const unknown = await proxy.ask('/api/v2/license/verify?license_key=NONE', { headers });
      expect([unknown.status, JSON.parse(unknown.text)]).toMatchObject([404, { code: 'license_not_found' }]);
      for (const path of ['/docs', '/docs/swagger-ui.css', '/openapi.json', '/livez']) {
        expect([path, (await proxy.ask(path)).status]).toEqual([path, 200]);
      }

      for (const path of [
        '/admin/v1/products',
        '/api/../admin/v1/products',
        '/api/%2e%2e/admin/v1/products',
        '//admin/v1/products',
        '/%61dmin/v1/products',
        '/livez/../admin/v1/products',
        '/metrics',
        '/statusz',
        '/',
      ]) {
        const kept = await proxy.ask(path, { headers: admin });
        const reached = kept.headers['latchkey-instance'] !== undefined && kept.status < 400;
        expect([path, kept.status >= 400, reached]).toEqual([path, true, false]);
      }
    });

    test('the example proxy lets every route for programs, devices and stores pass', async () => {
      await using directory = temporaryDirectory();
      const tls = join(directory.path, 'tls');
      await makeCertificate(tls);
      await using daemon = await startDaemonProcess(directory.path, withPublicListener());
      const { listeners } = (await (
        await fetch(`${daemon.tcp}/statusz`, { headers: adminOf(directory.path) })
      ).json()) as {
        listeners: { public: string };
      };
      const [behind, publicBehind] = [daemon.tcp, listeners.public].map((url) => new URL(url).host);
      await using proxy = await startProxy(name, {
        directory: tls,
        behind: behind ?? '',
        publicBehind: publicBehind ?? '',
      });
      const kept: string[] = [];
      for (const { method, path } of exposed) {
        const { status, headers } = await proxy.ask(path.replace(/:\w+/g, '1'), { method });
        if (headers['latchkey-instance'] === undefined) kept.push(`${method} ${path}: ${status}`);
        // Only the other listener has responses that vary by a credential.
        const isPublic = /^\/(?:lease|hooks)\//.test(path);
        if (isPublic && headers['vary'] !== undefined) kept.push(`${path}: not by the public listener`);
      }
      expect(kept).toEqual([]);
      const page = await proxy.ask('/license');
      expect([page.status, page.headers['content-type']]).toEqual([200, 'text/html; charset=utf-8']);
      // A browser sends the address of the proxy as the origin of a form.
      const sent = {
        method: 'POST',
        headers: { ...form, origin: 'https://licenses.example.com' },
        body: 'license_key=NONE',
      };
      expect((await proxy.ask('/license', sent)).status).toBe(404);
    });

    test('the public listener learns the address of a client from the example proxy, whatever the client says', async () => {
      await using directory = temporaryDirectory();
      const tls = join(directory.path, 'tls');
      await makeCertificate(tls);
      await using addresses = await startClientAddresses();
      await using proxy = await startProxy(name, { directory: tls, behind: addresses.address });
      const headers = { 'x-forwarded-for': '203.0.113.7' };
      const asked = await proxy.ask('/lease/v1/keys', { headers, localAddress: '127.0.0.2' });
      expect(asked).toMatchObject({ status: 200, text: '127.0.0.2' });
    });

    test('the example proxy does not count a use twice if a connection breaks', async () => {
      await using directory = temporaryDirectory();
      const tls = join(directory.path, 'tls');
      await makeCertificate(tls);
      const { server, address, requests } = await startBreaker();
      try {
        await using proxy = await startProxy(name, { directory: tls, behind: address });
        const put = { method: 'PUT', headers: form, body: 'license_key=K' };
        expect((await proxy.ask('/api/v2/license/usage', put)).status).toBe(200);
        expect((await proxy.ask('/api/v2/license/usage', put)).status).toBe(502);
        expect(requests()).toBe(2);
      } finally {
        server.close();
      }
    });
  });
}

const hasNginx = isProxyInstalled('nginx');
test.skipIf(!hasNginx)(
  `a proxy that caches does not give a stranger the response to a caller with a secret${hasNginx ? '' : ' (skipped: nginx is not installed)'}`,
  async () => {
    await using directory = temporaryDirectory();
    const tls = join(directory.path, 'tls');
    await makeCertificate(tls);
    await using daemon = await startDaemonProcess(directory.path, configuration());
    await using local = httpClient({ tcp: daemon.tcp });
    const headers = adminOf(directory.path);
    const product = { name: 'Editor', product_key: 'EDITOR', secret };
    await local.post('/admin/v1/products', { headers, json: product });
    const purchase = { product_key: 'EDITOR', buyer_email: 'b@example.com', license_key: licenseKey };
    await local.post('/admin/v1/purchases', { headers, json: purchase });
    const behind = new URL(daemon.tcp).host;
    await using proxy = await startProxy('nginx', { directory: tls, behind, caches: true });
    const verify = `/api/v2/license/verify?license_key=${licenseKey}`;
    expect((await proxy.ask(verify, { headers: { 'product-secret-key': secret } })).status).toBe(200);
    expect((await proxy.ask(verify)).status).toBe(401);
  },
);
