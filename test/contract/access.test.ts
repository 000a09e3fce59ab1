import type { FastifyInstance } from 'fastify';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { apiKeyScopes, type Principal, scopes, type Scope } from '../../src/domain/access/principal.ts';
import type { Route } from '../../src/http/route.ts';
import { specification } from '../../src/http/dialects.ts';
import { routesOf } from '../../src/http/routes/all.ts';
import { apiKey, openApp, serverOf, type TestApp } from '../support/app/http-app.ts';
import { buildToken, product } from '../support/builders/store-builders.ts';

const routes = await routesOf(specification);

/**
 * The required scope of each route, by the first matching pattern (src/http/README.md, Credentials and
 * scopes).
 */
const documented: readonly (readonly [RegExp, Scope | 'anyone' | 'any'])[] = [
  [/^GET \/(?:livez|readyz|openapi\.json)$/, 'anyone'],
  [/^GET \/(?:statusz|metrics)$/, 'ops'],
  [/^GET \/api\/v2\/license\/verify$/, 'verify'],
  [/^PUT \/api\/v2\/license\/(?:usage|decrease)$/, 'use'],
  [/^PUT \/api\/v2\/license\/(?:enable|disable)$/, 'manage'],
  [/^GET \/api\/v2\/coupons(?:\/:id)?$/, 'coupons:read'],
  [/^POST \/api\/v2\/coupons$/, 'coupons:write'],
  [/^GET \/agent\/v1\/coupons(?:\/:id)?$/, 'coupons:read'],
  [/^POST \/agent\/v1\/quote$/, 'coupons:read'],
  [/^GET \/agent\/v1\/redemptions(?:\/:\w+)?$/, 'coupons:read'],
  [/^(?:POST|DELETE) \/agent\/v1\/redemptions(?:\/:\w+)?$/, 'coupons:write'],
  [/^(?:POST \/lease\/v1|GET \/lease\/v1\/keys)$/, 'anyone'],
  [/^POST \/hooks\/v1\/:name$/, 'anyone'],
  [/^GET \/agent\/v1\/lease$/, 'verify'],
  [/^(?:PUT \/agent\/v1\/lease|POST \/agent\/v1\/lease\/request)$/, 'use'],
  [/^(?:POST|DELETE) \/agent\/v1\/activations(?:\/:key)?$/, 'use'],
  [/^GET \/agent\/v1\/activations$/, 'ops'],
  [/^GET \/sync\/v1$/, 'any'],
  [/^POST \/sync\/v1\/changes$/, 'verify'],
  [/^(?:POST \/lease\/v1|GET \/lease\/v1\/keys)$/, 'anyone'],
  [/^GET \/agent\/v1\/lease$/, 'verify'],
  [/^GET \/agent\/v1\/activations$/, 'ops'],
  [/^(?:PUT|POST|DELETE) \/agent\/v1\/(?:lease|lease\/request|activations|activations\/:key)$/, 'use'],
  [/^(?:GET|POST) \/admin\/v1\/purchases\/(?:import|import\/preview|export)$/, 'admin'],
  [/^(?:GET|POST) \/admin\/v1\/purchases/, 'sell'],
  [/^(?:PUT|POST) \/admin\/v1\/licenses\/:key(?:\/renew)?$/, 'sell'],
  [/^POST \/console\/v1\/(?:sign-ins|sessions)$/, 'anyone'],
  [/^DELETE \/console\/v1\/sessions$/, 'admin'],
  [/^(?:GET|POST|PUT|DELETE) \/admin\/v1\//, 'admin'],
];

/** `any`: each valid credential, whatever its scopes. */
function neededFor(route: Route): Scope | 'anyone' | 'any' | undefined {
  return documented.find(([pattern]) => pattern.test(nameOf(route)))?.[1];
}

function nameOf({ method, path }: Route): string {
  return `${method} ${path}`;
}

test('every route has the access rule that the contract documents', () => {
  expect(routes.length).toBeGreaterThan(20);
  for (const route of routes) {
    const { access } = route as { access: Route['access'] | undefined };
    expect([nameOf(route), access === 'anyone' ? access : (access?.scope ?? 'any')]).toEqual([
      nameOf(route),
      neededFor(route),
    ]);
  }
});

const everyRoute = routes.map((route) => [nameOf(route), route] as const);
const secretOf = (scope: Scope): string => `lk_tok_of_${scope}`;
const productSecret = 'lk_prod_of_p';
const expiredToken = 'lk_tok_expired';

/** The headers in which a route accepts a credential. */
function headersOf({ access }: Route, secret: string): Record<string, string>[] {
  const bearer = { authorization: `Bearer ${secret}` };
  if (access === 'anyone') return [bearer];
  const named = { api_key: ['service-api-key'], product_secret: ['product-secret-key'] };
  const names = access.credential === 'any' ? Object.values(named).flat() : named[access.credential];
  return [bearer, ...names.map((name) => ({ [name]: secret }))];
}

function principalWith(scope: Scope): Principal {
  const tenant = { accountId: 'default', productKey: null };
  return { credential: 'socket:/x', scopes: [scope], tenant, isOperator: false };
}

type Call = { status: number; code: unknown };

async function call(server: FastifyInstance, route: Route, headers: object): Promise<Call> {
  const url = route.path.replaceAll(/:\w+/g, 'nothing');
  const answer = await server.inject({ method: route.method, url, headers: { ...headers } });
  const isJson = String(answer.headers['content-type']).includes('json');
  return { status: answer.statusCode, code: isJson ? answer.json<{ code?: unknown }>().code : null };
}

/** The result of the access check, independent of the route's own response. */
function atTheDoor({ status, code }: Call): 'open' | 'scope_missing' | 'credentials' {
  if (status === 403 && code === 'scope_missing') return 'scope_missing';
  if (status === 401) return 'credentials';
  expect(status).not.toBe(403);
  return 'open';
}

describe.each(['authority', 'agent'] as const)('on an %s', (role) => {
  let opened: TestApp;
  let server: FastifyInstance;
  let granted: (readonly [Scope, FastifyInstance])[];

  beforeAll(async () => {
    opened = await openApp({ role });
    const { digest } = opened.app;
    await opened.write(async ({ tokens, products }) => {
      await tokens.add(buildToken({ scopes, expiresAt: 1 }), digest(expiredToken));
      for (const scope of scopes) {
        await tokens.add(buildToken({ tokenId: `of ${scope}`, scopes: [scope] }), digest(secretOf(scope)));
      }
      await products.add(product, digest(productSecret));
    });
    server = serverOf(opened.app);
    granted = scopes
      .filter((scope) => scope !== 'ops' && scope !== 'admin')
      .map((scope) => [scope, serverOf(opened.app, { listener: 'socket', principal: principalWith(scope) })]);
  });
  afterAll(() => opened[Symbol.asyncDispose]());

  const expected = (needed: string | undefined, carried: readonly string[]): string =>
    needed === 'anyone' || needed === 'any' || carried.includes('admin') || carried.includes(needed ?? '')
      ? 'open'
      : 'scope_missing';

  test.each(everyRoute)('%s accepts only tokens with its scope or admin', async (_, route) => {
    for (const scope of scopes) {
      for (const headers of headersOf(route, secretOf(scope))) {
        const said = atTheDoor(await call(server, route, headers));
        expect([scope, Object.keys(headers), said]).toEqual([
          scope,
          Object.keys(headers),
          expected(neededFor(route), [scope]),
        ]);
      }
    }
  });

  test.each(everyRoute)(
    '%s accepts an API key and a product secret according to their scopes',
    async (_, route) => {
      const { access } = route;
      const kinds = [
        ['product_secret', { 'product-secret-key': productSecret }, ['verify', 'use', 'manage']],
        ['api_key', { 'service-api-key': apiKey }, apiKeyScopes],
      ] as const;
      for (const [kind, headers, carried] of kinds) {
        const said = atTheDoor(await call(server, route, headers));
        const isRead = access === 'anyone' || access.credential === 'any' || access.credential === kind;
        expect([kind, said]).toEqual([kind, isRead ? expected(neededFor(route), carried) : 'credentials']);
      }
    },
  );

  test.each(everyRoute)('%s refuses a missing and a wrong credential', async (_, route) => {
    const outcome = neededFor(route) === 'anyone' ? 'open' : 'credentials';
    expect(atTheDoor(await call(server, route, {}))).toBe(outcome);
    for (const headers of headersOf(route, 'wrong')) {
      expect(atTheDoor(await call(server, route, headers))).toBe(outcome);
    }
  });

  test.each(everyRoute)('%s refuses an expired token with the code token_expired', async (_, route) => {
    const outcome = neededFor(route) === 'anyone' ? 'open' : 'token_expired';
    for (const headers of headersOf(route, expiredToken)) {
      const { status, code } = await call(server, route, headers);
      expect(status === 401 ? code : 'open').toBe(outcome);
    }
  });

  test.each(everyRoute)('%s accepts the principal of a socket according to its scopes', async (_, route) => {
    for (const [scope, socket] of granted) {
      const said = atTheDoor(await call(socket, route, {}));
      expect([scope, said]).toEqual([scope, expected(neededFor(route), [scope])]);
    }
  });

  test('an agent answers routes of the catalogue with not_the_authority, but only for callers with the scope', async () => {
    for (const route of routes.filter(({ roles }) => roles?.join() === 'authority')) {
      const [headers = {}] = headersOf(route, secretOf('admin'));
      const { code } = await call(server, route, headers);
      expect([nameOf(route), code === 'not_the_authority']).toEqual([nameOf(route), role === 'agent']);
    }
  });
});

test.each([
  ['/api/v2/license/verify?license_key=K', 'the product secret key as product-secret-key'],
  ['/api/v2/coupons', 'the API key as service-api-key'],
  ['/statusz', 'a credential as service-api-key or product-secret-key'],
])('the response to a missing credential says what to send: %s', async (url, what) => {
  await using opened = await openApp();
  const answer = await serverOf(opened.app).inject(url);
  expect(answer.json()).toMatchObject({ status: 401, detail: `Send ${what}, or a token as Bearer.` });
});

test('an expired token gets the same challenge as an unknown token', async () => {
  await using opened = await openApp();
  const token = buildToken({ expiresAt: 1 });
  await opened.write(({ tokens }) => tokens.add(token, opened.app.digest(expiredToken)));
  const headers = { authorization: `Bearer ${expiredToken}` };
  const answer = await serverOf(opened.app).inject({ url: '/statusz', headers });
  expect(answer.json()).toMatchObject({ status: 401, code: 'token_expired' });
  expect(answer.headers['www-authenticate']).toContain('error="invalid_token"');
});

test('on a socket with a principal, only the credential of a request counts if it has one', async () => {
  await using opened = await openApp();
  const server = serverOf(opened.app, {
    listener: 'socket',
    principal: principalWith('coupons:read'),
  });
  const ask = async (headers: object): Promise<number> =>
    (await server.inject({ url: '/api/v2/coupons', headers: { ...headers } })).statusCode;
  expect(await ask({})).toBe(200);
  expect(await ask({ 'service-api-key': '' })).toBe(200);
  expect(await ask({ 'service-api-key': apiKey })).toBe(200);
  expect(await ask({ 'service-api-key': 'wrong' })).toBe(401);
});
