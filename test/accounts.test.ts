import type { FastifyInstance } from 'fastify';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { scopes, productTokenScopes, type Scope } from '../src/domain/access/principal.ts';
import { specification } from '../src/http/dialects.ts';
import { dialects } from './support/stores/dialects.ts';
import type { Route } from '../src/http/route.ts';
import { routesOf } from '../src/http/routes/all.ts';
import { adminToken, openApp, serverOf, type TestApp } from './support/app/http-app.ts';
import { buildActivation } from './features/leases/support/activation-builders.ts';

const routes = await routesOf(specification);

/*
 * Two sellers have the same coupon code, and products with the same names and prices. Every route is called
 * with every scope of one seller, and names the other seller's objects in every possible place.
 */

/** The objects of one seller, by the parameter names that requests use for them. */
type Belongings = Readonly<Record<string, string>>;
type Seller = { readonly credentials: ReadonlyMap<string, object>; readonly belongings: Belongings };

const operator = { authorization: `Bearer ${adminToken}` };

/** The calls of the store since the array was last emptied. */
const calls: string[] = [];
let opened: TestApp;
let server: FastifyInstance;
let ann: Seller;
let bob: Seller;
beforeAll(async () => {
  opened = await openApp({}, (name) => calls.push(name));
  server = serverOf(opened.app);
  ann = await openShop('ann');
  bob = await openShop('bob');
});
afterAll(() => opened[Symbol.asyncDispose]());

type Data = Record<string, string>;

async function make(path: string, payload: object, headers: object = operator): Promise<Data> {
  const answer = await server.inject({ method: 'POST', url: path, headers: { ...headers }, payload });
  expect([path, answer.statusCode]).toEqual([path, 201]);
  return answer.json<{ data: Data }>().data;
}

async function openShop(seller: string): Promise<Seller> {
  const admin = (noun: string, payload: object): Promise<Data> => make(`/admin/v1/${noun}`, payload);
  const account = await admin('accounts', { name: `Shop of ${seller}` });
  const account_id = String(account['account_id']);
  const apiKey = { 'service-api-key': String(account['api_key']) };
  const product = await admin('products', { name: 'Editor', account_id, product_key: `editor-${seller}` });
  const product_key = String(product['product_key']);
  const collection = { name: 'All', account_id, collection_id: `all-${seller}`, product_keys: [product_key] };
  await admin('collections', collection);
  const buyer_email = `buyer-of-${seller}@example.com`;
  const license_key = `KEY-OF-${seller}`;
  const purchase = await admin('purchases', { product_key, buyer_email, license_key });
  const activation_id = `seat-of-${seller}`;
  const seat = {
    activationId: activation_id,
    licenseKey: license_key,
    productKey: product_key,
    deviceName: `laptop of ${seller}`,
  };
  await opened.write(({ activations }) => activations.put(buildActivation(seat)));
  const coupon = { coupon_type: 'multi', percent_off: 20, code: 'SPRING', notes: `notes of ${seller}` };
  const { id } = await make('/api/v2/coupons', coupon, apiKey);
  const credentials = new Map<string, object>([
    ['the API key', apiKey],
    ['the product secret', { 'product-secret-key': String(product['secret']) }],
  ]);
  let token_id = '';
  for (const [given, of] of tokensOf(product_key)) {
    const label = `token of ${seller}`;
    const token = await admin('tokens', { scopes: [given], account_id, product_key: of, label });
    token_id = String(token['token_id']);
    const holder = `a token for ${given} of ${of === undefined ? 'the account' : 'the product'}`;
    credentials.set(holder, { authorization: `Bearer ${token['token']}` });
  }
  const purchase_id = String(purchase['purchase_id']);
  return {
    credentials,
    belongings: {
      account_id,
      product_key,
      collection_id: `all-${seller}`,
      buyer_email,
      license_key,
      purchase_id,
      coupon_id: String(id),
      token_id,
      activation_id,
    },
  };
}

/** Every scope for the account, and every scope that a product token may have for the product. */
function tokensOf(productKey: string): (readonly [Scope, string | undefined])[] {
  return [
    ...scopes.map((scope) => [scope, undefined] as const),
    ...productTokenScopes.map((scope) => [scope, productKey] as const),
  ];
}

const nobodys: Belongings = {
  account_id: '01890000-0000-7000-8000-000000000000',
  product_key: 'editor-zoe',
  collection_id: 'all-zoe',
  buyer_email: 'buyer-of-zoe@example.com',
  license_key: 'KEY-OF-zoe',
  purchase_id: '01890000-0000-7000-8000-000000000001',
  coupon_id: '999999999',
  token_id: '01890000-0000-7000-8000-000000000002',
  activation_id: 'seat-of-zoe',
};

/** Ids of the whole authority: a seller only learns that another seller's id is taken. */
const chosen: ReadonlySet<string> = new Set([
  'POST /admin/v1/products product_key',
  'POST /admin/v1/collections collection_id',
  'POST /admin/v1/purchases license_key',
  'POST /admin/v1/licenses/:key/rekey license_key',
  // What is forgotten is not found again.
  'POST /admin/v1/customers/forget nothing',
]);

const nameOf = ({ method, path }: Route): string => `${method} ${path}`;

/** A request with the other seller's object in one place, and the caller's own objects elsewhere. */
type Naming = { place: string; url: string; payload?: object };

/** Further members that a body needs. */
const filling: Readonly<Record<string, unknown>> = {
  name: 'Another',
  scopes: ['verify'],
  recurring: false,
  archived: false,
  coupon_type: 'multi',
  percent_off: 5,
  code: 'AUTUMN',
  order: 'order-1',
};

/** Every way in which a request to a route can name these objects. */
function namingsOf(route: Route, named: Belongings, own: Belongings): Naming[] {
  const withId = (id: string): string => route.path.replaceAll(/:\w+/g, encodeURIComponent(id));
  const ownId = withId(own[idOf(route)] ?? 'none');
  const fields = Object.keys(route.body?.schema.shape ?? {});
  const body = fieldsOf(fields, own);
  const namings: Naming[] = route.path.includes(':')
    ? Object.keys(named).map((kind) => ({
        place: `path ${kind}`,
        url: withId(named[kind] ?? ''),
        payload: body,
      }))
    : [{ place: 'nothing', url: ownId, payload: body }];
  for (const name of Object.keys(route.query?.schema.shape ?? {})) {
    for (const value of valuesFor(name, named)) {
      const query = new URLSearchParams({ ...ownQuery(route, own), [name]: String(value) });
      namings.push({ place: `query ${name}`, url: `${ownId}?${query.toString()}` });
    }
  }
  // An e-mail address belongs to no seller: a buyer may buy from both.
  for (const name of fields.filter((each) => each !== 'buyer_email')) {
    for (const value of valuesFor(name, named)) {
      namings.push({ place: name, url: ownId, payload: { ...body, [name]: value } });
    }
  }
  return namings;
}

/** The parameter name of the object in the path. */
function idOf({ path }: Route): string {
  const noun = /\/(\w+)s\/:/.exec(path)?.[1] ?? '';
  return { product: 'product_key', license: 'license_key' }[noun] ?? `${noun}_id`;
}

function ownQuery(route: Route, own: Belongings): Record<string, string> {
  return 'license_key' in (route.query?.schema.shape ?? {}) ? { license_key: own['license_key'] ?? '' } : {};
}

function fieldsOf(fields: readonly string[], own: Belongings): Record<string, unknown> {
  const values = fields.map((name) => [name, filling[name] ?? ownValue(name, own)] as const);
  return Object.fromEntries(values.filter(([, value]) => value !== undefined));
}

function ownValue(name: string, own: Belongings): unknown {
  if (name === 'product_keys') return [own['product_key']];
  if (name === 'items') return [{ product_key: own['product_key'], amount: 100 }];
  return name === 'buyer_email' || name === 'product_key' ? own[name] : undefined;
}

/** The other seller's values for a parameter: the value of that name, or every value if there is none. */
function valuesFor(name: string, named: Belongings): unknown[] {
  if (name === 'product_keys') return [[named['product_key']]];
  if (name === 'items') return [[{ product_key: named['product_key'], amount: 100 }]];
  return name in named ? [named[name]] : [];
}

async function ask(route: Route, headers: object, { url, payload }: Naming): Promise<[number, string]> {
  const sent = payload !== undefined && Object.keys(payload).length > 0 && route.method !== 'GET';
  const request = { method: route.method, url, headers: { ...headers }, ...(sent && { payload }) };
  const { statusCode, body } = await server.inject(request);
  return [statusCode, body];
}

/** The response to a request, and its store calls in order. */
async function watch(
  route: Route,
  headers: object,
  naming: Naming,
): Promise<[response: [number, string], calls: readonly string[]]> {
  calls.length = 0;
  const response = await ask(route, headers, naming);
  return [response, calls.splice(0)];
}

/** The store calls of a request, in order. */
async function callsOf(route: Route, headers: object, naming: Naming): Promise<readonly string[]> {
  return (await watch(route, headers, naming))[1];
}

/** A response without the values that differ from request to request. */
function comparable([status, body]: [number, string], named: Belongings): string {
  const words = Object.entries(named).filter(([, value]) => value.length > 3);
  const same = words.reduce((text, [kind, value]) => text.replaceAll(value, kind), body);
  return `${status} ${same
    .replaceAll(/"request_id":"[^"]*"/g, '')
    .replaceAll(/lk_\w+|[0-9a-f]{8}-[0-9a-f-]{27}|"[0-9a-f]{12}"|[A-Z2-9]{5}(-[A-Z2-9]{5}){3}/g, '*')
    .replaceAll(/"id":\d+|"\w*uptime_s":\d+|\d{4}-\d\d-\d\dT[\d:+]+/g, '*')}`;
}

/** Everything that Bob can read about his own shop. */
async function viewOf({ credentials }: Seller): Promise<string[]> {
  const headers = credentials.get('a token for admin of the account') ?? {};
  const lists = routes.filter(({ method, path }) => method === 'GET' && path.startsWith('/admin/'));
  const coupons = routes.filter(({ method, path }) => method === 'GET' && path === '/api/v2/coupons');
  const seen = [];
  for (const route of [...lists, ...coupons].filter(({ path }) => !path.includes(':'))) {
    seen.push(comparable(await ask(route, headers, { place: '', url: `${route.path}?limit=100` }), {}));
  }
  return seen;
}

const everyRoute = routes.map((route) => [nameOf(route), route] as const);

test.each(everyRoute)(
  '%s neither shows nor changes anything of another seller, with any scope, and reads as much as for an object that does not exist',
  async (_, route) => {
    const before = await viewOf(bob);
    expect(before.join(' ')).toContain(bob.belongings['license_key']);
    for (const [holder, headers] of ann.credentials) {
      const foreign = namingsOf(route, bob.belongings, ann.belongings);
      const unknown = namingsOf(route, nobodys, ann.belongings);
      for (const [index, naming] of foreign.entries()) {
        const where = `${holder}: ${nameOf(route)} ${naming.place}`;
        const [answer, done] = await watch(route, headers, naming);
        const told = Object.values(bob.belongings).filter(
          (word) => word.length > 3 && answer[1].includes(word) && !JSON.stringify(naming).includes(word),
        );
        expect([where, told]).toEqual([where, []]);
        expect(answer[1]).not.toContain('notes of bob');
        if (chosen.has(`${nameOf(route)} ${naming.place}`)) continue;
        const [twin, doneForTwin] = await watch(route, headers, unknown[index] ?? naming);
        expect([where, comparable(answer, bob.belongings)]).toEqual([where, comparable(twin, nobodys)]);
        expect([where, done]).toEqual([where, doneForTwin]);
      }
    }
    expect(await viewOf(bob)).toEqual(before);
  },
);

test.each(['licenses', 'purchases'])(
  'a list of %s reads no row if the product does not belong to the account',
  async (noun) => {
    const headers = ann.credentials.get('a token for admin of the account') ?? {};
    const { account_id = '' } = ann.belongings;
    const { product_key = '' } = bob.belongings;
    const query = new URLSearchParams({ product_key }).toString();
    const route = routes.find(({ method, path }) => method === 'GET' && path === `/admin/v1/${noun}`);
    if (route === undefined) throw new Error(`there is no list of ${noun}`);
    const url = `/admin/v1/${noun}?${query}`;
    expect(await callsOf(route, headers, { place: '', url })).not.toContain(`reader.${noun}.list`);
    const ofAccount = `${url}&${new URLSearchParams({ account_id }).toString()}`;
    expect(await callsOf(route, operator, { place: '', url: ofAccount })).not.toContain(
      `reader.${noun}.list`,
    );
    const answer = await server.inject({ url, headers: { ...headers } });
    expect([answer.headers['x-total-count'], answer.json()]).toEqual(['0', { data: { [noun]: [] } }]);
  },
);

test('two sellers may use the same coupon code', async () => {
  for (const { credentials } of [ann, bob]) {
    const headers = { ...credentials.get('the API key') };
    const payload = { coupon_type: 'multi', amount_off: 5, code: 'Winter' };
    const create = async (): Promise<number> =>
      (await server.inject({ method: 'POST', url: '/api/v2/coupons', headers, payload })).statusCode;
    expect([await create(), await create()]).toEqual([201, 409]);
  }
});

test('a seller cannot use the routes of the whole process', async () => {
  const headers = ann.credentials.get('a token for admin of the account') ?? {};
  const code = async (route: Route): Promise<unknown> => {
    const [, body] = await ask(route, headers, { place: '', url: route.path.replaceAll(/:\w+/g, 'x') });
    return (JSON.parse(body) as { code: unknown }).code;
  };
  const ofTheProcess = routes.filter(({ operatorOnly }) => operatorOnly === true);
  expect(ofTheProcess.map(nameOf)).toEqual(
    expect.arrayContaining(['POST /admin/v1/accounts', 'GET /admin/v1/backup', 'POST /admin/v1/sync/now']),
  );
  for (const route of ofTheProcess) {
    expect([nameOf(route), await code(route)]).toEqual([nameOf(route), 'operator_only']);
  }
  const status = routes.find(({ path }) => path === '/statusz');
  expect(status && (await code(status))).toBe('scope_missing');
});

test('the token of a seller cannot issue a token for more', async () => {
  const headers = ann.credentials.get('a token for admin of the account') ?? {};
  const issue = async (payload: object): Promise<unknown> => {
    const url = '/admin/v1/tokens';
    const answer = await server.inject({ method: 'POST', url, headers: { ...headers }, payload });
    const { errors, data } = answer.json<{ errors?: { parameter: string; code: string }[]; data?: Data }>();
    return errors?.map(({ parameter, code }) => `${parameter} ${code}`) ?? data?.['account_id'];
  };
  const own = ann.belongings['account_id'];
  expect(await issue({ scopes: ['admin'] })).toBe(own);
  expect(await issue({ scopes: ['verify'] })).toBe(own);
  expect(await issue({ scopes: ['verify'], account_id: own })).toBe(own);
  expect(await issue({ scopes: ['admin'], account_id: bob.belongings['account_id'] })).toEqual([
    'account_id account_not_found',
  ]);
  expect(await issue({ scopes: ['admin'], account_id: 'default' })).toEqual(['account_id account_not_found']);
  expect(await issue({ scopes: ['verify'], product_key: bob.belongings['product_key'] })).toEqual([
    'product_key product_not_found',
  ]);
  expect(await issue({ scopes: ['ops'] })).toEqual(['scopes excluded']);
});

test('a token of the operator belongs to no account by default', async () => {
  const issued = await make('/admin/v1/tokens', { scopes: ['admin'] });
  expect(issued['account_id']).toBeNull();
  const headers = { authorization: `Bearer ${issued['token']}` };
  const accounts = await server.inject({ url: '/admin/v1/accounts?limit=100', headers });
  expect(accounts.body).toContain('Shop of ann');
  expect(accounts.body).toContain('Shop of bob');
});

test('the same requests of the operator succeed', async () => {
  const told = new Set<string>();
  // A license with another key is not found under the key that the other tests name.
  const asked = everyRoute.filter(([, { path }]) => path.startsWith('/admin/') && !path.endsWith('/rekey'));
  for (const [name, route] of asked) {
    for (const naming of namingsOf(route, bob.belongings, bob.belongings)) {
      const [status, body] = await ask(route, operator, naming);
      if (status < 300 && Object.values(bob.belongings).some((word) => body.includes(word))) told.add(name);
    }
  }
  expect(told.size).toBeGreaterThan(8);
});

const lists = everyRoute.filter(
  ([, { method, path, operatorOnly }]) =>
    method === 'GET' && path.startsWith('/admin/') && !path.includes(':') && operatorOnly !== true,
);

test.each(lists.filter(([, { query }]) => 'offset' in (query?.schema.shape ?? {})))(
  '%s counts exactly what it lists for a seller, and everything for the operator',
  async (_, { path }) => {
    const totalFor = async (headers: object = {}): Promise<number> => {
      const answer = await server.inject({ url: `${path}?limit=100`, headers: { ...headers } });
      const total = Number(answer.headers['x-total-count']);
      const [listed] = Object.values(answer.json<{ data: Record<string, unknown[]> }>().data);
      expect(listed).toHaveLength(total);
      return total;
    };
    const own = await totalFor(ann.credentials.get('a token for admin of the account'));
    expect(own).toBeLessThan(await totalFor(operator));
  },
);

test.each(
  lists.flatMap(([name, route]) =>
    ['account_id', 'product_key']
      .filter((each) => each in (route.query?.schema.shape ?? {}))
      .map((each) => [name, each, route] as const),
  ),
)('%s lists the objects of one seller for the operator, filtered by %s', async (_, named, route) => {
  const query = { ...ownQuery(route, bob.belongings), [named]: bob.belongings[named] ?? '' };
  const url = `${route.path}?${new URLSearchParams(query).toString()}`;
  const { statusCode, body } = await server.inject({ url, headers: operator });
  expect(statusCode).toBe(200);
  expect(body).toMatch(/bob/);
  expect(body).not.toMatch(/ann|default/);
});

test.each(['licenses', 'purchases'])(
  "an export of %s of one seller does not accept another seller's product",
  async (noun) => {
    const { account_id = '' } = ann.belongings;
    const { product_key = '' } = bob.belongings;
    const url = `/admin/v1/${noun}/export?${new URLSearchParams({ account_id, product_key }).toString()}`;
    expect((await server.inject({ url, headers: operator })).statusCode).toBe(422);
  },
);

test('the operator can read and change a license key of any seller', async () => {
  const both = serverOf({ ...opened.app, dialect: dialects.payhip });
  const statusOf = async (method: 'GET' | 'PUT', url: string): Promise<number> =>
    (await both.inject({ method, url, headers: operator })).statusCode;
  for (const [product, licenseKey, found] of [
    ['editor-ann', 'KEY-OF-ann', 200],
    ['editor-bob', 'KEY-OF-bob', 200],
    ['editor-zoe', 'KEY-OF-zoe', 400],
  ] as const) {
    const named = `license_key=${licenseKey}`;
    for (const [version, asked] of [
      ['v1', `${named}&product_link=${product}`],
      ['v2', named],
    ]) {
      for (const change of ['usage', 'decrease', 'disable', 'enable']) {
        const url = `/api/${version}/license/${change}?${asked}`;
        expect([url, await statusOf('PUT', url)]).toEqual([url, found]);
      }
      const url = `/api/${version}/license/verify?${asked}`;
      expect([url, await statusOf('GET', url)]).toEqual([url, found]);
    }
    const history = `/admin/v1/licenses/${licenseKey}/history`;
    expect(await statusOf('GET', history)).toBe(found === 200 ? 200 : 404);
  }
  await both.close();
});
