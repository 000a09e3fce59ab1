import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { consolePage } from '../../../../src/features/console/http/page.ts';
import { apiKey, serverOf } from '../../../support/app/http-app.ts';
import { fromPage, openConsole, operator, origin, type ConsoleApp } from '../console-app.ts';
import { certificate, privateKey } from '../../../support/network/certificate.ts';

let app: ConsoleApp;
let session: { authorization: string };
beforeAll(async () => {
  app = await openConsole();
  session = { authorization: `Bearer ${await app.signIn(true)}` };
});
afterAll(() => app[Symbol.asyncDispose]());

type Got = readonly [status: number, code: string | null];

async function send(
  method: 'GET' | 'POST' | 'DELETE',
  url: string,
  headers: object,
  server = app.server,
): Promise<Got> {
  const payload = method === 'POST' ? { payload: { name: 'Shop' } } : {};
  const answer = await server.inject({ method, url, headers: { ...headers }, ...payload });
  return [answer.statusCode, answer.statusCode < 400 ? null : answer.json<{ code: string }>().code];
}

describe('the gate and the console', () => {
  test('a session may send the origin of its own page', async () => {
    expect(await send('GET', '/admin/v1/audit', { ...fromPage, ...session })).toEqual([200, null]);
    expect(await send('POST', '/admin/v1/accounts', { ...fromPage, ...session, origin })).toEqual([
      201,
      null,
    ]);
  });

  test.each(['localhost:8787', '[::1]:8787', '127.0.0.1:9000', '127.9.9.9:1'])(
    'the origin of the page is the address in Host: %s',
    async (host) => {
      const headers = { ...fromPage, ...session, host };
      expect(await send('POST', '/admin/v1/accounts', { ...headers, origin: `http://${host}` })).toEqual([
        201,
        null,
      ]);
      for (const other of [`https://${host}`, 'http://127.0.0.1:1', `http://${host}/`, 'null', '']) {
        expect(await send('POST', '/admin/v1/accounts', { ...headers, origin: other })).toEqual([
          403,
          'origin_forbidden',
        ]);
      }
    },
  );

  test('a listener with TLS has an origin with https', async () => {
    const withTls = { servesPages: true, tls: { chain: certificate, key: privateKey } };
    const tls = serverOf(app.opened.app, withTls, [consolePage]);
    const headers = { ...fromPage, ...session };
    const secure = origin.replace('http', 'https');
    expect(await send('POST', '/admin/v1/accounts', { ...headers, origin: secure }, tls)).toEqual([
      201,
      null,
    ]);
    expect(await send('POST', '/admin/v1/accounts', { ...headers, origin }, tls)).toEqual([
      403,
      'origin_forbidden',
    ]);
    await tls.close();
  });

  test('a host that is allowed but not loopback has no console', async () => {
    const server = serverOf(app.opened.app, { servesPages: true, allowedHosts: ['shop.example'] }, [
      consolePage,
    ]);
    const host = 'shop.example:8787';
    const headers = { ...fromPage, ...session, host, origin: `http://${host}` };
    expect(await send('POST', '/admin/v1/accounts', headers, server)).toEqual([403, 'origin_forbidden']);
    await server.close();
  });

  test('no other credential is accepted with the origin of the page', async () => {
    const own = { ...fromPage, origin };
    for (const headers of [
      { ...own, ...operator },
      { ...own, 'service-api-key': apiKey },
      { ...own, ...session, 'service-api-key': apiKey },
      { ...own, ...session, 'product-secret-key': 'a-secret' },
      own,
    ]) {
      expect(await send('POST', '/admin/v1/accounts', headers)).toEqual([403, 'origin_forbidden']);
    }
    expect(await send('GET', '/livez', own)).toEqual([403, 'origin_forbidden']);
    expect(await send('POST', '/console/v1/sign-ins', { ...own, ...operator })).toEqual([
      403,
      'origin_forbidden',
    ]);
  });

  test('a session that has ended is refused by its token, with or without the origin', async () => {
    const headers = { ...fromPage, authorization: `Bearer lks_${'0'.repeat(64)}` };
    for (const more of [{}, { origin }]) {
      expect(await send('GET', '/admin/v1/audit', { ...headers, ...more })).toEqual([
        401,
        'credentials_invalid',
      ]);
    }
  });

  test.each(['cross-site', 'same-site', 'none', 'same-origin, same-origin'])(
    'a request of a session that a browser marks as %s is refused',
    async (site) => {
      const headers = { ...fromPage, ...session, 'sec-fetch-site': site };
      expect(await send('GET', '/admin/v1/audit', headers)).toEqual([403, 'origin_forbidden']);
      for (const [method, url] of [
        ['POST', '/console/v1/sign-ins'],
        ['POST', '/console/v1/sessions'],
        ['DELETE', '/console/v1/sessions'],
      ] as const) {
        const sent = { ...fromPage, 'sec-fetch-site': site, ...(method === 'DELETE' && session) };
        expect([url, ...(await send(method, url, sent))]).toEqual([url, 403, 'origin_forbidden']);
      }
    },
  );

  test('a Referer is refused even with the origin of the page', async () => {
    const headers = { ...fromPage, ...session, origin, referer: `${origin}/console` };
    expect(await send('GET', '/admin/v1/audit', headers)).toEqual([403, 'origin_forbidden']);
  });

  test('a listener without the console has no page and no sign-in, and admits no origin', async () => {
    for (const settings of [{}, { listener: 'socket' }] as const) {
      const server = serverOf(app.opened.app, settings, [consolePage]);
      expect(await send('GET', '/console', {}, server)).toEqual([404, 'route_not_found']);
      expect(await send('GET', '/console/main.js', {}, server)).toEqual([404, 'route_not_found']);
      expect(await send('POST', '/console/v1/sign-ins', fromPage, server)).toEqual([409, 'console_off']);
      expect(await send('POST', '/console/v1/sign-ins', { ...fromPage, origin }, server)).toEqual([
        403,
        'origin_forbidden',
      ]);
      expect(await send('POST', '/admin/v1/accounts', { ...fromPage, ...session, origin }, server)).toEqual([
        403,
        'origin_forbidden',
      ]);
      await server.close();
    }
  });

  test('a holder has no console, and says where one is', async () => {
    await using holder = await openConsole({ role: 'holder' }, false);
    expect(await send('GET', '/admin/v1/console/sign-ins', operator, holder.server)).toEqual([
      501,
      'not_offered_by_holder',
    ]);
  });

  test('a browser keeps no response to a session', async () => {
    const get = async (headers: object) =>
      (await app.server.inject({ url: '/admin/v1/audit', headers: { ...headers } })).headers['cache-control'];
    expect(await get({ ...fromPage, ...session })).toBe('no-store');
  });

  test('a process without a console says so to the command', async () => {
    await using off = await openConsole({}, false);
    for (const url of [
      '/admin/v1/console/sign-ins/ABC-DEF/confirm',
      '/admin/v1/console/sign-ins/ABC-DEF/refuse',
    ]) {
      expect(await send('POST', url, operator, off.server)).toEqual([409, 'console_off']);
    }
    expect(await send('GET', '/admin/v1/console/sign-ins', operator, off.server)).toEqual([
      409,
      'console_off',
    ]);
  });
});
