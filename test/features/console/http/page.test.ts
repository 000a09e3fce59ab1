import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { buildPage } from '../../../../src/packaging/console-page.ts';
import { fromPage, openConsole, origin, type ConsoleApp } from '../console-app.ts';

let app: ConsoleApp;
let files: ReadonlyMap<string, string>;
beforeAll(async () => {
  app = await openConsole();
  ({ files } = await buildPage('console'));
});
afterAll(() => app[Symbol.asyncDispose]());

const html = 'text/html; charset=utf-8';

describe('the page of the console', () => {
  test('the page has strict headers, and no script or style of its own', async () => {
    const { statusCode, headers, body } = await app.server.inject({ url: '/console' });
    expect([statusCode, body]).toEqual([200, files.get('index.html')]);
    expect(headers).toMatchObject({
      'content-type': html,
      'cache-control': 'no-cache',
      'content-security-policy':
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'",
      'x-content-type-options': 'nosniff',
      'referrer-policy': 'no-referrer',
      'cross-origin-opener-policy': 'same-origin',
      'cross-origin-resource-policy': 'same-origin',
      connection: 'close',
    });
    expect(body).not.toMatch(/<script>|<style|style=|https?:|importmap/);
  });

  test('each file that the page names is served with its content, and never changes', async () => {
    const page = files.get('index.html') ?? '';
    const names = [...page.matchAll(/"\/console\/([^"]+)"/g)].map(([, name = '']) => name);
    expect(names.map((name) => name.replace(/-[0-9a-f]{12}\./, '.')).sort()).toEqual([
      'main.js',
      'style.css',
    ]);
    for (const name of names) {
      // Chromium sends the Origin of the page with a module script.
      const answer = await app.server.inject({ url: `/console/${name}`, headers: { ...fromPage, origin } });
      expect([answer.statusCode, answer.body]).toEqual([200, files.get(name)]);
      expect(answer.headers['cache-control']).toBe('max-age=31536000, immutable');
      expect(answer.headers['content-type']).toMatch(/^text\/(?:javascript|css); charset=utf-8$/);
    }
  });

  test.each(['index.html', 'nothing.js', '..%2Fmain.js', 'main.tsx', '__proto__'])(
    'there is no file %s',
    async (name) => {
      const answer = await app.server.inject({ url: `/console/${name}` });
      expect([answer.statusCode, answer.json<{ code: string }>().code]).toEqual([404, 'route_not_found']);
    },
  );

  test('another site can link to the page, and can neither frame the page nor load its files', async () => {
    const script = [...files.keys()].find((name) => name.endsWith('.js')) ?? '';
    const status = async (url: string, site: string, dest: string): Promise<number> => {
      const headers = { 'sec-fetch-site': site, 'sec-fetch-dest': dest };
      return (await app.server.inject({ url, headers })).statusCode;
    };
    expect(await status('/console', 'cross-site', 'document')).toBe(200);
    expect(await status('/console', 'none', 'document')).toBe(200);
    expect(await status('/console', 'cross-site', 'iframe')).toBe(403);
    expect(await status('/console', 'cross-site', 'empty')).toBe(403);
    expect(await status(`/console/${script}`, 'cross-site', 'script')).toBe(403);
    expect(await status(`/console/${script}`, 'same-site', 'script')).toBe(403);
  });

  test('another method on the page is refused', async () => {
    for (const method of ['POST', 'PUT', 'DELETE', 'OPTIONS'] as const) {
      expect((await app.server.inject({ method, url: '/console' })).statusCode).toBe(404);
    }
  });
});
