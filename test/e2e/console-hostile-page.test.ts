import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { patienceMs } from '../support/patience.ts';
import { servedConsole } from '../features/console/console-app.ts';
import { httpClient, type HttpClient } from '../support/network/raw-http.ts';
import { isBrowserInstalled, startBrowser, type Browser, type Page } from '../support/process/browser.ts';
import { runProcess } from '../support/process/command-line.ts';
import { startDaemonProcess, type DaemonProcess } from '../support/process/daemon-process.ts';
import { temporaryDirectory } from '../support/temporary.ts';

const missing = isBrowserInstalled ? '' : ' (skipped: Chromium is not installed at /usr/bin/chromium)';

/** The result of a page's fetch: type, status and text of the response, or the name of the error. */
type Got = readonly [type: string, status: number, text: string] | string;

/** A page of another machine, and a page of another program on this machine: to a browser, its site is the same. */
const hosts = ['evil.example', '127.0.0.1'] as const;

describe.skipIf(!isBrowserInstalled)(`a hostile page and the console in a real browser${missing}`, () => {
  const opened = new AsyncDisposableStack();
  const directory = opened.use(temporaryDirectory());
  let daemon: DaemonProcess;
  let http: HttpClient;
  let browser: Browser;
  let hostile: Page;
  let port: number;
  let admin: { authorization: string };
  /** The token of a session that may change things. A hostile page cannot get the token. */
  let token: string;
  let script: string;

  beforeAll(async () => {
    const listen = { tcp: '127.0.0.1:0', socket: false };
    daemon = opened.use(await startDaemonProcess(directory.path, { listen }));
    http = opened.use(httpClient({ tcp: daemon.tcp }));
    const adminToken = readFileSync(join(directory.path, 'state', 'admin.token'), 'utf8').trim();
    admin = { authorization: `Bearer ${adminToken}` };
    browser = opened.use(await startBrowser());
    const server = opened.adopt(await servePage(), (each) => each.close().closeAllConnections());
    ({ port } = server.address() as AddressInfo);
    script = [...(await servedConsole(daemon.tcp)).keys()].find((name) => name.endsWith('.js')) ?? '';
    const signedIn = await browser.newPage();
    token = await signIn(signedIn);
    hostile = await signedIn.context().newPage();
  });
  afterAll(() => opened.disposeAsync());

  async function servePage(): Promise<Server> {
    const server = createServer(({ url }, response) => {
      const hides = url === '/hidden' ? { 'referrer-policy': 'no-referrer' } : {};
      response.writeHead(200, { 'content-type': 'text/html', ...hides });
      response.end('<!doctype html><title>evil</title>');
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    return server;
  }

  /** A person has the console open in the same browser, signed in. */
  async function signIn(page: Page): Promise<string> {
    await page.goto(`${daemon.tcp}/console`);
    const shown = await untilShown(page, 'document.querySelector(".code")?.textContent ?? null');
    const argv = ['console', shown, '--admin', '--state-dir', join(directory.path, 'state')];
    expect(await runProcess(argv)).toMatchObject({ code: 0 });
    const session = await untilShown(page, 'sessionStorage.getItem("latchkey-session")');
    return (JSON.parse(session) as { token: string }).token;
  }

  /** The value of a script in a page, as soon as there is one. */
  async function untilShown(page: Page, text: string): Promise<string> {
    const read = async (): Promise<string> => {
      const value = await page.evaluate<string | null>(text);
      if (value === null) throw new Error(`the page has no ${text}`);
      return value;
    };
    return await vi.waitFor(read, { timeout: patienceMs, interval: 50 });
  }

  let loads = 0;

  /** The path of the script, which is in no cache of the browser. */
  function scriptPath(): string {
    loads += 1;
    return `/console/${script}?${loads}`;
  }

  /** Everything that a page could try to change. */
  async function state(): Promise<unknown> {
    const paths = ['accounts', 'products', 'tokens', 'audit', 'console/sign-ins'];
    const answers = await Promise.all(paths.map((path) => http.get(`/admin/v1/${path}`, { headers: admin })));
    return answers.map(({ status, body }) => [status, body]);
  }

  /** Runs an action in a hostile page: the daemon refuses each request of the page, and nothing changes. */
  async function attack<Value>(host: string, action: () => Promise<Value>, code: string): Promise<Value> {
    await hostile.goto(`http://${host}:${port}`);
    const [before, first] = [await state(), daemon.lines.length];
    const got = await action();
    const refused = (): unknown[] =>
      daemon.lines.slice(first).flatMap((line) => (line.msg === 'refused' ? [line['code']] : []));
    await expect.poll(refused).toContain(code);
    expect(await state()).toEqual(before);
    return got;
  }

  const fetches = (url: string, init: object = {}): Promise<Got> =>
    hostile.evaluate<Got>(
      `fetch(${JSON.stringify(url)}, ${JSON.stringify(init)}).then(
        async (answer) => [answer.type, answer.status, await answer.text()], (error) => error.name)`,
    );

  describe.each(hosts)('of %s', (host) => {
    test('a hostile page cannot read the page, its files or the interface by fetch', async () => {
      for (const path of [() => '/console', scriptPath, () => '/admin/v1/accounts']) {
        const read = (init: object) =>
          attack(host, () => fetches(daemon.tcp + path(), init), 'origin_forbidden');
        expect(await read({})).toBe('TypeError');
        const opaque = await read({ mode: 'no-cors' });
        expect(['TypeError', ['opaque', 0, '']]).toContainEqual(opaque);
      }
    });

    test('a hostile page that hides its address cannot read the page or its files', async () => {
      for (const path of ['/console', scriptPath()]) {
        const init = { mode: 'no-cors', referrerPolicy: 'no-referrer' };
        const got = await attack(host, () => fetches(daemon.tcp + path, init), 'origin_forbidden');
        expect(['TypeError', ['opaque', 0, '']]).toContainEqual(got);
      }
    });

    test('a hostile page cannot begin a sign-in, and cannot get or end a session', async () => {
      for (const [method, path] of [
        ['POST', '/console/v1/sign-ins'],
        ['POST', '/console/v1/sessions'],
        ['DELETE', '/console/v1/sessions'],
      ] as const) {
        const plain = { method: 'POST', mode: 'no-cors', body: 'secret=x' };
        const url = daemon.tcp + path;
        const silent = await attack(host, () => fetches(url, plain), 'origin_forbidden');
        expect(['TypeError', ['opaque', 0, '']]).toContainEqual(silent);
        const headers = { 'content-type': 'application/json' };
        const json = { method, headers, body: '{"secret":"x"}' };
        expect(await attack(host, () => fetches(url, json), 'origin_forbidden')).toBe('TypeError');
      }
    });

    test('a hostile page can do nothing even with the token of a session', async () => {
      const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
      for (const init of [{ headers }, { method: 'POST', headers, body: '{"name":"evil"}' }]) {
        const got = await attack(
          host,
          () => fetches(`${daemon.tcp}/admin/v1/accounts`, init),
          'origin_forbidden',
        );
        expect(got).toBe('TypeError');
      }
    });

    test.each(['application/x-www-form-urlencoded', 'text/plain', 'multipart/form-data'])(
      'a hostile page can do nothing by a form of type %s',
      async (type) => {
        for (const path of ['/console/v1/sign-ins', '/console/v1/sessions', '/admin/v1/accounts']) {
          const submit = `{
            const form = document.createElement('form');
            form.method = 'POST';
            form.enctype = ${JSON.stringify(type)};
            form.action = ${JSON.stringify(daemon.tcp + path)};
            form.innerHTML = '<input name="name" value="evil">';
            document.body.append(form);
            form.submit();
          }`;
          const shown = await attack(
            host,
            async () => {
              await Promise.all([hostile.waitForEvent('framenavigated'), hostile.evaluate(submit)]);
              return await hostile.evaluate('document.body.innerText');
            },
            'origin_forbidden',
          );
          expect(shown).toContain('origin_forbidden');
        }
      },
    );

    test('a hostile page cannot load the console by a frame, a script, a stylesheet or a WebSocket', async () => {
      const load = (tag: string, attribute: string, path: string): string => `new Promise((resolve) => {
        const element = document.createElement(${JSON.stringify(tag)});
        element.onload = () => resolve('loaded');
        element.onerror = () => resolve('failed');
        element.referrerPolicy = 'no-referrer';
        if (element.tagName === 'LINK') element.rel = 'stylesheet';
        element.${attribute} = ${JSON.stringify(daemon.tcp + path)};
        document.body.append(element);
      })`;
      for (const [tag, attribute, path] of [
        ['script', 'src', scriptPath()],
        ['link', 'href', `/console/${script.replace(/^main.*/, 'style.css')}`],
        ['img', 'src', '/console'],
      ] as const) {
        const action = (): Promise<unknown> => hostile.evaluate(load(tag, attribute, path));
        expect(await attack(host, action, 'origin_forbidden')).toBe('failed');
      }
      await attack(host, () => hostile.evaluate(load('iframe', 'src', '/console')), 'origin_forbidden');
      expect(await hostile.evaluate('document.querySelector("iframe").contentDocument')).toBeNull();
      const socket = `new Promise((resolve) => {
        const socket = new WebSocket(${JSON.stringify(`${daemon.tcp.replace('http', 'ws')}/console`)});
        socket.onopen = () => resolve('open');
        socket.onerror = () => resolve('failed');
      })`;
      expect(await attack(host, () => hostile.evaluate(socket), 'origin_forbidden')).toBe('failed');
    });

    test('a hostile page that opens the console in a window has no hold on the window', async () => {
      const open = `window.opened = window.open(${JSON.stringify(`${daemon.tcp}/console`)}); undefined`;
      // The console does not open from a page that says where it is.
      await attack(host, () => hostile.evaluate(open), 'origin_forbidden');
      await hostile.goto(`http://${host}:${port}/hidden`);
      await hostile.evaluate(open);
      // The window is another tab of the person, who is signed in.
      const isSignedIn = async (): Promise<boolean> => {
        const shown = hostile.context().pages().at(-1);
        return (
          shown !== hostile && (await shown?.evaluate('document.querySelector(".console") !== null')) === true
        );
      };
      await expect.poll(isSignedIn).toBe(true);
      // The policy of the page cuts the window off from its opener, so that it looks closed.
      await expect.poll(() => hostile.evaluate('window.opened.closed')).toBe(true);
      expect(await hostile.evaluate('sessionStorage.length + localStorage.length')).toBe(0);
      const { body } = await http.get('/admin/v1/accounts', { headers: admin });
      expect(JSON.stringify(body)).not.toContain('evil');
    });
  });

  test('a page whose host name resolves to this machine gets no page, no sign-in and no session (DNS rebinding)', async () => {
    const rebound = daemon.tcp.replace('127.0.0.1', 'rebind.example');
    const before = await state();
    const shown = await hostile.goto(`${rebound}/console`);
    expect([shown?.status(), await shown?.text()]).toEqual([403, expect.stringContaining('host_forbidden')]);
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
    for (const [path, init] of [
      ['/console/v1/sign-ins', { method: 'POST', body: '{}' }],
      ['/admin/v1/accounts', { headers }],
      ['/admin/v1/accounts', { method: 'POST', headers, body: '{"name":"evil"}' }],
    ] as const) {
      // The page has the rebound origin now and may read the response: it contains nothing. The browser may also report a
      // network error, because the connection of a refused request is closed.
      const got = await fetches(rebound + path, init);
      const isRefused =
        got === 'TypeError' || (got[1] === 403 && got[2]?.includes('host_forbidden') === true);
      expect([path, got, isRefused]).toEqual([path, got, true]);
    }
    expect(await state()).toEqual(before);
  });

  test('the session that hostile pages cannot use works in its own page', async () => {
    const page = await browser.newPage();
    await page.goto(`${daemon.tcp}/console`);
    const init = {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body: '{"name":"Shop"}',
    };
    const status = await page.evaluate<number>(
      `fetch('/admin/v1/accounts', ${JSON.stringify(init)}).then((answer) => answer.status)`,
    );
    expect(status).toBe(201);
  });
});
