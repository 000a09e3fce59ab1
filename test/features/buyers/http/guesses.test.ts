import { setImmediate } from 'node:timers/promises';
import { afterAll, expect, test } from 'vitest';
import { defaultLeaseTerms, defaultProductTerms } from '../../../../src/domain/catalogue.ts';
import { buyersPage } from '../../../../src/features/buyers/http/page.ts';
import { Proxies } from '../../../../src/http/entry/client-address.ts';
import { openApp, serverOf, type TestApp } from '../../../support/app/http-app.ts';

const opened = new AsyncDisposableStack();
afterAll(() => opened.disposeAsync());

type Guessed = {
  app: TestApp;
  /** The calls of the store. */
  calls: string[];
  send: (path: string, fields: Record<string, string>) => Promise<number>;
  guess: (number: number) => Promise<number>;
};

/** A server with the page, whose clock stands still, so that no limit refills. */
async function openGuessed(): Promise<Guessed> {
  const calls: string[] = [];
  const app = opened.use(await openApp({}, (name) => calls.push(name)));
  await app.write(({ settings }) => settings.set('log_key', 'secret'));
  const settings = { title: null, supportUrl: null, accent: '#1d4ed8', askEmail: true };
  const page = buyersPage(settings, () => 0);
  const listener = { public: { proxies: new Proxies([]), issuerHost: () => null } };
  const server = opened.adopt(serverOf(app.app, listener, [page]), (each) => each.close());
  const send = async (url: string, fields: Record<string, string>): Promise<number> => {
    const headers = { 'content-type': 'application/x-www-form-urlencoded' };
    const payload = new URLSearchParams(fields).toString();
    return (await server.inject({ method: 'POST', url, headers, payload })).statusCode;
  };
  const guess = async (number: number): Promise<number> =>
    await send('/license', { license_key: `GUESS-${number}`, email: 'eve@example.com' });
  return { app, calls, send, guess };
}

test('a guess over a limit reads nothing from the store', async () => {
  const { calls, guess } = await openGuessed();
  for (let number = 0; number < 40; number += 1) expect(await guess(number)).toBe(404);
  expect(calls).toContain('reader.licenses.get');
  calls.length = 0;
  for (let number = 40; number < 1_000; number += 1) expect(await guess(number)).toBe(429);
  expect(calls).toEqual([]);
});

test.each([
  ['/license', { license_key: 'A\0', email: 'a\0@example.com' }, 404],
  ['/license/seat', { license_key: 'A\0', token: '\0' }, 403],
] as const)(
  'a guess at %s with a character that a database refuses is a guess',
  async (path, fields, status) => {
    const { send } = await openGuessed();
    expect(await send(path, fields)).toBe(status);
  },
);

test('of many guesses at once, each waits for a turn of the event loop, so that a verify waits for one guess only', async () => {
  const { calls, guess } = await openGuessed();
  const answered: number[] = [];
  for (let number = 0; number < 80; number += 1) void guess(number).then((status) => answered.push(status));
  const turns: { read: number; refused: number }[] = [];
  while (answered.length < 80) {
    const [reads, refusals] = [countOf(calls, 'reader.licenses.get'), countOf(answered, 429)];
    await setImmediate();
    turns.push({
      read: countOf(calls, 'reader.licenses.get') - reads,
      refused: countOf(answered, 429) - refusals,
    });
  }
  expect([countOf(calls, 'reader.licenses.get'), countOf(answered, 429)]).toEqual([40, 40]);
  expect(turns.filter(({ read, refused }) => read + refused > 1)).toEqual([]);
});

const licenseKey = 'AAAAA-BBBBB-CCCCC-DDDDD';

test('a form without a valid token reads no devices, so its time does not tell how many a license has', async () => {
  const { app, calls, send } = await openGuessed();
  await app.write(async ({ products, licenses }) => {
    const product = { productKey: 'editor', accountId: 'default', name: 'Editor', recurring: false };
    const terms = { leaseTerms: defaultLeaseTerms, licenseTerms: defaultProductTerms };
    await products.add({ ...product, createdAt: 0, archivedAt: null, ...terms }, 'digest');
    const state = { uses: 0, enabled: true, createdAt: 0 };
    await licenses.add({ licenseKey, productKey: 'editor', buyerEmail: 'ada@example.com', ...state });
  });
  calls.length = 0;
  const token = `9999999999999.${'A'.repeat(43)}`;
  expect(await send('/license/seat', { license_key: licenseKey, token })).toBe(403);
  expect(calls).toContain('reader.licenses.get');
  expect(calls.filter((call) => call.includes('activations'))).toEqual([]);
});

function countOf<Value>(values: readonly Value[], counted: Value): number {
  return values.filter((value) => value === counted).length;
}
