import type { FastifyInstance } from 'fastify';
import { expect, test } from 'vitest';
import { adminToken, apiKey, openApp, serverOf, type TestApp } from '../../../support/app/http-app.ts';
import { buildTerms } from '../../../support/builders/coupon-builders.ts';
import { buildOperation } from '../../../support/builders/operation-builders.ts';
import { buildLicense, product, buildToken } from '../../../support/builders/store-builders.ts';

const admin = { authorization: `Bearer ${adminToken}` };

/**
 * A list, how to add a row, and how to identify a row in a response. Rows are sorted by their numbers, up or
 * down.
 */
type List = {
  path: string;
  member: string;
  headers?: object;
  role?: 'agent';
  add: (opened: TestApp, number: number) => Promise<unknown>;
  name: (item: Record<string, never>) => unknown;
  /** In a list that is sorted by time, new rows have greater numbers. */
  isAppended?: true;
};

const at = Date.UTC(2026, 0, 1);
const key = (number: number): string => `é-${String(number).padStart(3, '0')}`;
const cart = { code: 'SPRING', currency: null, lines: [] };
const quote = { code: 'SPRING', couponId: 1, redeemable: true, reasons: [] };
const money = { subtotal: 0, eligibleSubtotal: 0, discount: 0, total: 0, lines: [] };

const lists: readonly List[] = [
  {
    path: '/admin/v1/accounts?',
    member: 'accounts',
    add: ({ write }, number) =>
      write(({ accounts }) =>
        accounts.add({ accountId: key(number), name: 'A', createdAt: at }, `digest ${number}`),
      ),
    name: ({ account_id }) => account_id,
  },
  {
    path: '/admin/v1/products?archived=false&',
    member: 'products',
    add: ({ write }, number) =>
      write(({ products }) => products.add({ ...product, productKey: key(number) }, `digest ${number}`)),
    name: ({ product_key }) => product_key,
  },
  {
    path: '/admin/v1/collections?',
    member: 'collections',
    add: ({ write }, number) =>
      write(({ collections }) =>
        collections.add({ collectionId: key(number), accountId: 'default', name: 'C', productKeys: [] }),
      ),
    name: ({ collection_id }) => collection_id,
  },
  {
    path: '/admin/v1/tokens?',
    member: 'tokens',
    add: ({ write }, number) =>
      write(({ tokens }) => tokens.add(buildToken({ tokenId: key(number) }), `digest ${number}`)),
    name: ({ token_id }) => token_id,
  },
  ...['', 'product_key=press&', 'enabled=false&', 'buyer_email=A@example.com&'].map((filter): List => ({
    path: `/admin/v1/licenses?${filter}`,
    member: 'licenses',
    add: ({ write }, number) => write(({ licenses }) => licenses.add(licenseOf(number))),
    name: ({ license_key }) => license_key,
  })),
  ...['', 'product_key=press&', 'until=2026-01-01T00:00:00Z&', 'refunded=false&'].map((filter): List => ({
    path: `/admin/v1/purchases?${filter}`,
    member: 'purchases',
    add: ({ write }, number) =>
      write(async ({ licenses, purchases }) => {
        await licenses.add(licenseOf(number));
        // Many rows have the same time, as after an import without a time of day.
        const createdAt = at - Math.floor(number / 10);
        await purchases.add({
          purchaseId: key(number),
          licenseKey: key(number),
          createdAt,
          refundedAt: null,
        });
      }),
    name: ({ purchase_id }) => purchase_id,
  })),
  ...['/api/v2/coupons?', '/agent/v1/coupons?state=active&', '/agent/v1/coupons?'].map((path): List => ({
    path,
    member: 'coupons',
    headers: { 'service-api-key': apiKey },
    add: ({ write }, number) =>
      write(({ coupons }) => coupons.add('default', buildTerms({ code: key(number) }), number)),
    name: ({ id }) => id,
  })),
  {
    path: '/agent/v1/redemptions?coupon_id=1&',
    member: 'redemptions',
    headers: { 'service-api-key': apiKey },
    add: ({ write }, number) =>
      write(({ redemptions }) =>
        redemptions.add('default', {
          order: key(number),
          couponId: 1,
          cart,
          quote: { ...quote, ...money },
          redeemedAt: at,
        }),
      ),
    name: ({ order }) => order,
    isAppended: true,
  },
  ...['', 'actor=token:a&', 'subject=s&', 'until=2027-01-01T00:00:00Z&'].map((filter): List => ({
    path: `/admin/v1/audit?${filter}`,
    member: 'acts',
    add: ({ write }, number) =>
      write(({ audit }) =>
        audit.add({
          at: at + Math.floor(number / 10),
          actor: 'token:a',
          act: 'a.b',
          subject: 's',
          detail: `${number}`,
        }),
      ),
    name: ({ detail }) => detail,
    isAppended: true,
  })),
  {
    path: '/admin/v1/licenses/KEY/history?',
    member: 'changes',
    add: ({ write }, number) =>
      write(async ({ licenses, history }) => {
        await licenses.add(buildLicense({ licenseKey: 'KEY' }));
        const state = { uses: number, enabled: true };
        const change = { change: 'usage', credential: `${number}`, before: state, after: state } as const;
        await history.add({ licenseKey: 'KEY', at: at + number, ...change });
      }),
    name: ({ credential }) => credential,
    isAppended: true,
  },
  ...['', 'state=pending&', 'license_key=KEY-1&'].map((filter): List => ({
    path: `/admin/v1/outbox?${filter}`,
    member: 'operations',
    role: 'agent',
    add: async (opened, number) =>
      opened
        .agentTables()
        .operations.add(buildOperation({ id: key(number), subject: 'KEY-1', queue: undefined } as never)),
    name: ({ id }) => id,
    isAppended: true,
  })),
];

function licenseOf(number: number) {
  return buildLicense({ licenseKey: key(number), enabled: false });
}

async function openShop({ role, add, isAppended }: List): Promise<TestApp> {
  const opened = await openApp(role === undefined ? {} : { role });
  if (role === undefined) {
    await opened.write(({ products }) => products.add(product, 'press'));
    await opened.write(({ coupons }) => coupons.add('default', buildTerms({ code: 'SPRING' }), 1));
  }
  const numbers = [50, 20, 70, 10, 60, 40, 30];
  for (const number of isAppended ? numbers.toSorted((one, other) => one - other) : numbers)
    await add(opened, number);
  return opened;
}

type Page = { names: unknown[]; next: string | null; total: number };

async function ask(
  server: FastifyInstance,
  { member, headers = admin, name }: List,
  url: string,
): Promise<Page> {
  const answer = await server.inject({ url, headers: { ...headers } });
  expect([url, answer.statusCode, answer.statusCode === 200 || answer.body]).toEqual([url, 200, true]);
  const items = answer.json<{ data: Record<string, Record<string, never>[]> }>().data[member] ?? [];
  const [, next = null] = /^<([^>]*)>; rel="next"$/.exec(String(answer.headers['link'])) ?? [];
  return { names: items.map(name), next, total: Number(answer.headers['x-total-count']) };
}

test.each(lists.map((list) => [list.path, list] as const))(
  'the pages of %s show each row once and in order, including rows that are added in between',
  async (path, list) => {
    await using opened = await openShop(list);
    const server = serverOf(opened.app);
    const { names: whole, total, next: none } = await ask(server, list, `${path}limit=100`);
    expect([whole.length, none]).toEqual([total, null]);
    const seen: unknown[] = [];
    let url: string | null = `${path}limit=2`;
    while (url !== null) {
      expect(url).not.toContain('offset=');
      const page: Page = await ask(server, list, url);
      if (seen.length === 0) for (const number of [15, 55, 99]) await list.add(opened, number);
      seen.push(...page.names);
      ({ next: url } = page);
    }
    expect(new Set(seen).size).toBe(seen.length);
    expect(seen.filter((name) => whole.includes(name))).toEqual(whole);
    const { names: afterwards } = await ask(server, list, `${path}limit=100`);
    expect(seen).toEqual(afterwards.filter((name) => seen.includes(name)));
  },
);

test.each(lists.map((list) => [list.path, list] as const))(
  'a page of %s by offset is the same as by cursor',
  async (path, list) => {
    await using opened = await openShop(list);
    const server = serverOf(opened.app);
    const first = await ask(server, list, `${path}limit=3`);
    const second = await ask(server, list, `${path}limit=3&offset=3`);
    expect(await ask(server, list, first.next ?? '')).toEqual(second);
    expect(await ask(server, list, `${path}limit=3&offset=10000`)).toEqual({
      names: [],
      next: null,
      total: first.total,
    });
  },
);

test('the cursors of both engines are the same', async () => {
  const cursors: string[] = [];
  for (const list of lists.filter(({ member }) => ['licenses', 'purchases', 'coupons'].includes(member))) {
    await using opened = await openShop(list);
    const { next } = await ask(serverOf(opened.app), list, `${list.path}limit=2`);
    const cursor = new URL(next ?? '', 'http://localhost').searchParams.get('cursor') ?? '';
    cursors.push(Buffer.from(cursor, 'base64url').toString());
  }
  expect([...new Set(cursors)]).toEqual(
    ['["licenses","é-020"]', `["purchases",${at - 2},"é-020"]`, '["coupons",10]', '["coupons",10]'].filter(
      (cursor, index, all) => all.indexOf(cursor) === index,
    ),
  );
});

const faults = async (query: string, path = '/admin/v1/purchases'): Promise<unknown[]> => {
  await using opened = await openApp();
  const answer = await serverOf(opened.app).inject({ url: `${path}?${query}`, headers: admin });
  const { errors = [] } = answer.json<{ errors?: { parameter: string; code: string; detail: string }[] }>();
  return [answer.statusCode, ...errors.map(({ code, detail }) => `${code}: ${detail}`)];
};

const cursorOf = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url');
const invalid = 'invalid_cursor: cursor must be the one in the Link of a page of this list.';

test.each([
  ['not base64', '%%'],
  ['not JSON', 'AAAA'],
  ['not a list', cursorOf({ at: 1 })],
  ['from another list', cursorOf(['licenses', 'KEY'])],
  ['too short', cursorOf(['purchases', 1])],
  ['too long', cursorOf(['purchases', 1, 'x', 'x'])],
  ['of other types', cursorOf(['purchases', '1', 'x'])],
  ['a fraction', cursorOf(['purchases', 1.5, 'x'])],
  ['a number that is not exact', cursorOf(['purchases', 2 ** 60, 'x'])],
  ['with a character that no key can have', cursorOf(['purchases', 1, 'x\0'])],
  ['with an unpaired surrogate', cursorOf(['purchases', 1, '\u{d800}'])],
  ['longer than any valid cursor', cursorOf(['purchases', 1, 'x'.repeat(6_000)])],
])('a cursor that is %s is refused', async (_, cursor) => {
  expect(await faults(`cursor=${encodeURIComponent(cursor)}`)).toEqual([422, invalid]);
});

test('a cursor of another list is refused, even if its rows are sorted by the same type', async () => {
  const cursor = cursorOf(['licenses', 'KEY']);
  expect(await faults(`cursor=${cursor}`, '/admin/v1/licenses')).toEqual([200]);
  expect(await faults(`cursor=${cursor}`, '/admin/v1/products')).toEqual([422, invalid]);
});

test('an offset above the limit is refused, and the error says how to continue', async () => {
  const detail = 'out_of_range: offset must be at most 10000: follow the Link of each page instead.';
  expect(await faults('offset=10001')).toEqual([422, detail]);
  expect(await faults('offset=10000')).toEqual([200]);
});

test('a cursor of one tenant shows nothing of another tenant', async () => {
  await using opened = await openApp();
  const server = serverOf(opened.app);
  const post = async (path: string, payload: object): Promise<Record<string, string>> =>
    (await server.inject({ method: 'POST', url: `/admin/v1/${path}`, headers: admin, payload })).json<{
      data: Record<string, string>;
    }>().data;
  const { account_id } = await post('accounts', { name: 'Other' });
  await opened.write(({ products }) => products.add(product, 'press'));
  await opened.write(({ licenses }) => licenses.add(licenseOf(1)));
  const { token } = await post('tokens', { scopes: ['admin'], account_id });
  const url = `/admin/v1/licenses?cursor=${cursorOf(['licenses', ' '])}`;
  const answer = await server.inject({ url, headers: { authorization: `Bearer ${token}` } });
  expect([answer.statusCode, answer.json()]).toEqual([200, { data: { licenses: [] } }]);
});
