import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { isBrowserInstalled, startBrowser, type Page } from '../support/process/browser.ts';
import { startDaemonProcess, type DaemonProcess } from '../support/process/daemon-process.ts';
import { httpClient, type HttpClient } from '../support/network/raw-http.ts';
import { temporaryDirectory } from '../support/temporary.ts';

const secret = 'lk_prod_of_the_editor';
const form = 'application/x-www-form-urlencoded';

const missing = isBrowserInstalled ? '' : ' (skipped: Chromium is not installed at /usr/bin/chromium)';

/** The result of a page's fetch: type, status and text of the response, or the name of the error. */
type Got = readonly [type: string, status: number, text: string] | string;

describe.skipIf(!isBrowserInstalled)(`a page of another origin in a real browser${missing}`, () => {
  const opened = new AsyncDisposableStack();
  const directory = opened.use(temporaryDirectory());
  let daemon: DaemonProcess;
  let http: HttpClient;
  let page: Page;
  let foreign: string;
  let admin: { authorization: string };

  beforeAll(async () => {
    const listen = { tcp: '127.0.0.1:0', socket: false };
    // Even with the most open configuration no page can read anything.
    daemon = opened.use(await startDaemonProcess(directory.path, { listen, metrics: { open: true } }));
    http = opened.use(httpClient({ tcp: daemon.tcp }));
    const token = readFileSync(join(directory.path, 'state', 'admin.token'), 'utf8').trim();
    admin = { authorization: `Bearer ${token}` };
    await http.post('/admin/v1/products', {
      headers: admin,
      json: { name: 'Editor', product_key: 'EDITOR', secret },
    });
    await http.post('/admin/v1/purchases', {
      headers: admin,
      json: { product_key: 'EDITOR', buyer_email: 'b@example.com', license_key: 'KEY' },
    });
    const browser = opened.use(await startBrowser());
    const server = opened.adopt(await serveForeignPage(), (each) => each.close().closeAllConnections());
    foreign = `http://evil.example:${(server.address() as AddressInfo).port}`;
    page = await browser.newPage();
  });
  afterAll(() => opened.disposeAsync());

  async function serveForeignPage(): Promise<Server> {
    const server = createServer((_, response) => {
      response
        .writeHead(200, { 'content-type': 'text/html' })
        .end('<!doctype html><title>evil</title><body>');
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    return server;
  }

  /** Calls `fetch` in the open page. */
  async function fetches(url: string, init: object = {}): Promise<Got> {
    const asked = `fetch(${JSON.stringify(url)}, ${JSON.stringify(init)})`;
    return await page.evaluate<Got>(
      `${asked}.then(async (answer) => [answer.type, answer.status, await answer.text()], (error) => error.name)`,
    );
  }

  /** The codes of the requests that the daemon refused after log line `first`. */
  function refusedSince(first: number): unknown[] {
    const refused = daemon.lines.slice(first).filter(({ msg }) => msg === 'refused');
    // A browser opens spare connections that it may never use.
    return refused.map((line) => line['code']).filter((code) => code !== 'request_timeout');
  }

  /** Everything that a page could try to change. */
  async function state(): Promise<unknown> {
    const paths = ['accounts', 'products', 'licenses', 'tokens'];
    const answers = await Promise.all(paths.map((path) => http.get(`/admin/v1/${path}`, { headers: admin })));
    const coupons = await http.get('/api/v2/coupons', {
      headers: { 'service-api-key': admin.authorization.slice(7) },
    });
    return [...answers, coupons].map(({ status, body }) => [status, body]);
  }

  /** Runs an action in a page of the other origin: the daemon sees it, and nothing changes. */
  async function attack(does: () => Promise<unknown>, code: string): Promise<unknown> {
    await page.goto(foreign);
    const [before, first] = [await state(), daemon.lines.length];
    const got = await does();
    await expect.poll(() => refusedSince(first)).toContain(code);
    expect(await state()).toEqual(before);
    return got;
  }

  test('a page of another origin cannot read any route by a plain request, not even the status', async () => {
    for (const path of ['/livez', '/openapi.json', '/metrics', '/statusz']) {
      const got = await attack(() => fetches(`${daemon.tcp}${path}`), 'origin_forbidden');
      expect(got).toBe('TypeError');
    }
  });

  test('a page of another origin cannot read anything by a no-cors request', async () => {
    for (const path of ['/livez', '/metrics', '/api/v2/license/verify?license_key=KEY']) {
      const got = await attack(
        () => fetches(`${daemon.tcp}${path}`, { mode: 'no-cors' }),
        'origin_forbidden',
      );
      expect(got).toEqual(['opaque', 0, '']);
    }
  });

  test('the preflight stops a page of another origin even if it has the secret', async () => {
    const headers = { 'product-secret-key': secret };
    for (const init of [
      { headers },
      { method: 'PUT', headers: { ...headers, 'content-type': form }, body: 'license_key=KEY' },
      { method: 'DELETE', headers: admin },
    ]) {
      const path = 'headers' in init && 'method' in init ? '/api/v2/license/usage' : '/api/v2/coupons';
      const got = await attack(() => fetches(`${daemon.tcp}${path}`, init), 'origin_forbidden');
      expect(got).toBe('TypeError');
    }
  });

  test.each([form, 'text/plain', 'multipart/form-data'])(
    'a page of another origin cannot change anything by a form of type %s',
    async (type) => {
      const submit = `{
      const form = document.createElement('form');
      form.method = 'POST';
      form.enctype = ${JSON.stringify(type)};
      form.action = ${JSON.stringify(`${daemon.tcp}/admin/v1/accounts`)};
      form.innerHTML = '<input name="name" value="evil">';
      document.body.append(form);
      form.submit();
    }`;
      const shown = await attack(async () => {
        await Promise.all([page.waitForEvent('framenavigated'), page.evaluate(submit)]);
        return await page.evaluate('document.body.innerText');
      }, 'origin_forbidden');
      expect(shown).toContain('origin_forbidden');
    },
  );

  test('a page of another origin cannot change anything by a no-cors request, a beacon or a keepalive request', async () => {
    const url = `${daemon.tcp}/api/v2/coupons`;
    const body = 'coupon_type=multi&amount_off=5&code=EVIL';
    for (const init of [
      { mode: 'no-cors', method: 'POST', body },
      { mode: 'no-cors', method: 'POST', body, keepalive: true, referrerPolicy: 'no-referrer' },
    ]) {
      expect(await attack(() => fetches(url, init), 'origin_forbidden')).toEqual(['opaque', 0, '']);
    }
    const beacon = `navigator.sendBeacon(${JSON.stringify(url)}, ${JSON.stringify(body)})`;
    await attack(() => page.evaluate(beacon), 'origin_forbidden');
  });

  test('a page of another origin cannot load anything by an image, a script, a frame or a WebSocket', async () => {
    const load = (tag: string): string => `new Promise((resolve) => {
      const element = document.createElement(${JSON.stringify(tag)});
      element.onload = () => resolve('loaded');
      element.onerror = () => resolve('failed');
      element.src = ${JSON.stringify(`${daemon.tcp}/openapi.json`)};
      document.body.append(element);
    })`;
    for (const tag of ['img', 'script']) {
      expect(await attack(() => page.evaluate(load(tag)), 'origin_forbidden')).toBe('failed');
    }
    await attack(() => page.evaluate(load('iframe')), 'origin_forbidden');
    expect(await page.evaluate('document.querySelector("iframe").contentDocument')).toBeNull();
    const socket = `new Promise((resolve) => {
      const socket = new WebSocket(${JSON.stringify(daemon.tcp.replace('http', 'ws'))});
      socket.onopen = () => resolve('open');
      socket.onerror = () => resolve('failed');
    })`;
    expect(await attack(() => page.evaluate(socket), 'origin_forbidden')).toBe('failed');
  });

  test('a page of another origin that sends no Referer gets an empty response', async () => {
    const init = { mode: 'no-cors', referrerPolicy: 'no-referrer' };
    const got = await attack(() => fetches(`${daemon.tcp}/api/v2/coupons`, init), 'credentials_missing');
    expect(got).toEqual(['opaque', 0, '']);
  });

  test('a page whose host name resolves to this machine is refused (DNS rebinding)', async () => {
    const rebound = daemon.tcp.replace('127.0.0.1', 'rebind.example');
    const [before, first] = [await state(), daemon.lines.length];
    const shown = await page.goto(`${rebound}/livez`);
    expect([shown?.status(), await shown?.text()]).toEqual([403, expect.stringContaining('host_forbidden')]);
    const headers = { 'product-secret-key': secret, 'content-type': form };
    for (const init of [
      {},
      { method: 'PUT', headers, body: 'license_key=KEY' },
      { method: 'POST', headers: admin },
    ]) {
      // The page has the rebound origin now and may read the response: it contains nothing.
      const got = await fetches(`${rebound}/api/v2/license/usage`, init);
      expect([got[0], got[1], got[2]]).toEqual(['basic', 403, expect.stringContaining('host_forbidden')]);
    }
    await expect.poll(() => new Set(refusedSince(first))).toEqual(new Set(['host_forbidden']));
    expect(await state()).toEqual(before);
  });

  test('the requests that fail in a browser succeed outside of it', async () => {
    const headers = { 'product-secret-key': secret };
    const used = await http.put('/api/v2/license/usage', { headers, form: { license_key: 'KEY' } });
    expect([used.status, (used.body as { data: object }).data]).toMatchObject([200, { uses: 1 }]);
  });
});
