import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer, type AddressInfo, type Server } from 'node:net';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
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

async function makeCertificate(directory: string): Promise<void> {
  const argv = ['certificate', 'make', '--host', 'licenses.example.com', '--out', directory];
  const made = await runProcess(argv);
  expect(made).toMatchObject({ code: 0 });
}

/** Answers the first request of a connection, and closes the connection at the second. */
async function startBreaker(): Promise<{ server: Server; address: string; requests: () => number }> {
  let requests = 0;
  const server = createServer((socket) => {
    let isFirst = true;
    socket.on('error', () => undefined);
    socket.on('data', (chunk) => {
      if (!chunk.toString('latin1').startsWith('PUT ')) return;
      requests += 1;
      if (isFirst) socket.write('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok');
      else socket.destroy();
      isFirst = false;
    });
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return { server, address: `127.0.0.1:${port}`, requests: () => requests };
}

for (const name of ['nginx', 'caddy'] as const satisfies readonly ProxyName[]) {
  const isInstalled = isProxyInstalled(name);
  const missing = isInstalled ? '' : ` (skipped: ${name} is not installed)`;
  describe.skipIf(!isInstalled)(`a central API behind ${name}, configured as its example${missing}`, () => {
    test('the example proxy exposes the routes of customers, but not /admin', async () => {
      await using directory = temporaryDirectory();
      const tls = join(directory.path, 'tls');
      await makeCertificate(tls);
      await using daemon = await startDaemonProcess(directory.path, configuration());
      const token = readFileSync(join(directory.path, 'state', 'admin.token'), 'utf8').trim();
      const admin = { authorization: `Bearer ${token}` };
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
