import { describe, expect, test } from 'vitest';
import { fromPage, openConsole, operator, origin, type ConsoleApp } from '../console-app.ts';

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;

async function statusWith({ server }: ConsoleApp, token: string, url = '/admin/v1/audit'): Promise<number> {
  const headers = { ...fromPage, authorization: `Bearer ${token}` };
  return (await server.inject({ url, headers })).statusCode;
}

async function waitingCodes({ server }: ConsoleApp): Promise<string[]> {
  const answer = await server.inject({ url: '/admin/v1/console/sign-ins', headers: operator });
  const { sign_ins: waiting } = answer.json<{ data: { sign_ins: { code: string }[] } }>().data;
  return waiting.map(({ code }) => code);
}

describe('the sign-in of the console', () => {
  test('a page gets a session after its code was confirmed, and only once', async () => {
    await using app = await openConsole();
    const { code, secret, expires_at: end } = await app.begin();
    expect(code).toMatch(/^[A-HJ-NP-Z2-9]{3}-[A-HJ-NP-Z2-9]{3}$/);
    expect(end).toBe('2026-02-22T11:05:00+00:00');
    expect(await waitingCodes(app)).toEqual([code]);
    expect(await app.exchange(secret)).toEqual({ status: 200, session: null });
    expect(await app.confirm(code)).toBe(204);
    expect(await waitingCodes(app)).toEqual([]);
    const { status, session } = await app.exchange(secret);
    expect([status, session]).toEqual([
      200,
      {
        token: expect.stringMatching(/^lks_[0-9a-f]{64}$/),
        admin: false,
        expires_at: '2026-02-22T23:00:00+00:00',
      },
    ]);
    expect(await statusWith(app, session?.token ?? '')).toBe(200);
    expect((await app.exchange(secret)).status).toBe(404);
    expect(await app.confirm(code)).toBe(404);
  });

  test('the command lists the page with its address and its browser', async () => {
    await using app = await openConsole();
    const headers = { ...fromPage, origin, 'user-agent': `Browser ${'x'.repeat(300)}` };
    await app.server.inject({ method: 'POST', url: '/console/v1/sign-ins', headers });
    const answer = await app.server.inject({ url: '/admin/v1/console/sign-ins', headers: operator });
    expect(answer.json()).toEqual({
      data: {
        url: `${origin}/console`,
        sign_ins: [
          {
            code: expect.any(String),
            created_at: '2026-02-22T11:00:00+00:00',
            user_agent: `Browser ${'x'.repeat(192)}`,
          },
        ],
      },
    });
  });

  test('a code may be typed in lower case and without its dash', async () => {
    await using app = await openConsole();
    const { code, secret } = await app.begin();
    expect(await app.confirm(code.toLowerCase().replace('-', ''))).toBe(204);
    expect((await app.exchange(secret)).session).not.toBeNull();
  });

  test('a sign-in ends after 5 minutes without a confirmation', async () => {
    await using app = await openConsole();
    const { code, secret } = await app.begin();
    app.advance(5 * minuteMs - 1);
    expect((await app.exchange(secret)).status).toBe(200);
    app.advance(1);
    expect((await app.exchange(secret)).status).toBe(404);
    expect(await app.confirm(code)).toBe(404);
  });

  test('a confirmed page has 60 seconds to get its session', async () => {
    await using app = await openConsole();
    const [early, late] = [await app.begin(), await app.begin()];
    expect([await app.confirm(early.code), await app.confirm(late.code)]).toEqual([204, 204]);
    app.advance(minuteMs - 1);
    expect((await app.exchange(early.secret)).status).toBe(200);
    app.advance(1);
    expect((await app.exchange(late.secret)).status).toBe(404);
  });

  test('a refused page gets no session', async () => {
    await using app = await openConsole();
    const { code, secret } = await app.begin();
    const url = `/admin/v1/console/sign-ins/${code}/refuse`;
    expect((await app.server.inject({ method: 'POST', url, headers: operator })).statusCode).toBe(204);
    expect((await app.exchange(secret)).status).toBe(404);
    expect(await app.confirm(code)).toBe(404);
  });

  test('a wrong secret gets no session', async () => {
    await using app = await openConsole();
    const { code } = await app.begin();
    await app.confirm(code);
    expect((await app.exchange('lks_in_wrong')).status).toBe(404);
  });

  test('the ninth waiting page is refused until a code has expired', async () => {
    await using app = await openConsole();
    const first = await app.begin();
    app.advance(minuteMs);
    for (let page = 2; page <= 8; page += 1) await app.begin();
    const begin = () =>
      app.server.inject({
        method: 'POST',
        url: '/console/v1/sign-ins',
        headers: { ...fromPage, origin },
      });
    const refused = await begin();
    expect([refused.statusCode, refused.headers['retry-after']]).toEqual([429, '240']);
    expect(await waitingCodes(app)).toHaveLength(8);
    app.advance(4 * minuteMs);
    expect((await begin()).statusCode).toBe(201);
    expect((await app.exchange(first.secret)).status).toBe(404);
  });
});

describe('a session of the console', () => {
  test('a session ends after 12 hours', async () => {
    await using app = await openConsole();
    const token = await app.signIn();
    app.advance(12 * hourMs - 1);
    expect(await statusWith(app, token)).toBe(200);
    app.advance(1);
    expect(await statusWith(app, token)).toBe(401);
  });

  test('the page ends its session', async () => {
    await using app = await openConsole();
    const [token, other] = [await app.signIn(), await app.signIn()];
    const headers = { ...fromPage, origin, authorization: `Bearer ${token}` };
    const end = () => app.server.inject({ method: 'DELETE', url: '/console/v1/sessions', headers });
    expect((await end()).statusCode).toBe(204);
    expect(await statusWith(app, token)).toBe(401);
    expect(await statusWith(app, other)).toBe(200);
    expect((await end()).statusCode).toBe(401);
  });

  test('the seventeenth session ends the oldest', async () => {
    await using app = await openConsole();
    const tokens: string[] = [];
    for (let page = 0; page < 17; page += 1) tokens.push(await app.signIn());
    const [first = '', second = ''] = tokens;
    expect([await statusWith(app, first), await statusWith(app, second)]).toEqual([401, 200]);
  });

  test('sign-in, refusal and sign-out are audit entries, without a secret', async () => {
    await using app = await openConsole();
    const looks = await app.begin();
    await app.confirm(looks.code);
    const { session } = await app.exchange(looks.secret);
    const changes = await app.begin();
    await app.confirm(changes.code, true);
    const refused = await app.begin();
    await app.server.inject({
      method: 'POST',
      url: `/admin/v1/console/sign-ins/${refused.code}/refuse`,
      headers: operator,
    });
    const headers = { ...fromPage, origin, authorization: `Bearer ${session?.token}` };
    await app.server.inject({ method: 'DELETE', url: '/console/v1/sessions', headers });
    expect(await app.opened.record()).toEqual([
      `token:admin | console.sign_in | ${looks.code} | may only read`,
      `token:admin | console.sign_in | ${changes.code} | may change things`,
      `token:admin | console.refuse | ${refused.code} | `,
      `console:${looks.code} | console.sign_out | ${looks.code} | `,
    ]);
  });

  test('what a session changes is an audit entry of the session', async () => {
    await using app = await openConsole();
    const { code, secret } = await app.begin();
    await app.confirm(code, true);
    const { session } = await app.exchange(secret);
    const headers = { ...fromPage, origin, authorization: `Bearer ${session?.token}` };
    const payload = { name: 'Shop' };
    await app.server.inject({ method: 'POST', url: '/admin/v1/accounts', headers, payload });
    expect((await app.opened.record()).at(-1)).toMatch(new RegExp(`^console:${code} \\| account.add \\| `));
  });

  test('a sign-in works although the store accepts no audit entry', async () => {
    await using app = await openConsole({
      writer: {
        write: () => Promise.reject(new Error('the disk is full')),
        storage: 'full',
        isStuck: false,
        lost: new Promise(() => undefined),
      } as never,
    });
    expect(await statusWith(app, await app.signIn())).toBe(200);
  });

  test('a session cannot confirm, refuse or list pages, even if it may change things', async () => {
    await using app = await openConsole();
    const token = await app.signIn(true);
    const { code } = await app.begin();
    const headers = { ...fromPage, origin, authorization: `Bearer ${token}` };
    for (const [method, path] of [
      ['GET', ''],
      ['POST', `/${code}/confirm`],
      ['POST', `/${code}/refuse`],
    ] as const) {
      const answer = await app.server.inject({ method, url: `/admin/v1/console/sign-ins${path}`, headers });
      expect([answer.statusCode, answer.json<{ code: string }>().code]).toEqual([403, 'scope_missing']);
    }
    expect(await waitingCodes(app)).toEqual([code]);
  });
});
