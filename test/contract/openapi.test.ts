import { Readable } from 'node:stream';
import { createConfig, lintFromString } from '@redocly/openapi-core';
import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { done } from '../../src/domain/problem/problem.ts';
import type { App } from '../../src/http/app.ts';
import { dialects } from '../support/stores/dialects.ts';
import { routesOf } from '../../src/http/routes/all.ts';
import { dereferenced } from '../support/reference/dereferenced.ts';
import { adminToken } from '../support/app/http-app.ts';
import { serveApp } from '../support/app/http-served.ts';
import { httpClient, type HttpResponse, type HttpClient } from '../support/network/raw-http.ts';
import { valuesOf, type Schema } from '../support/builders/schema-arbitrary.ts';

type Parameter = { name: string; in: 'path' | 'query' | 'header'; schema: Schema };
type Response = { description: string; headers?: object; content?: object };
type Operation = {
  operationId: string;
  parameters?: readonly Parameter[];
  requestBody?: { content: Readonly<Record<string, { schema: Schema }>> };
  responses: Readonly<Record<string, Response>>;
};
type Description = { paths: Record<string, Record<string, Operation>> };

const admin = { authorization: `Bearer ${adminToken}` };

/** Texts for parameters: some exist in the store, and some do not. */
const words = ['default', 'nothing', 'EDITOR', 'TOOLS', 'KEY-1', 'KEY-2', 'SPRING', '1', '2'];

/** `written`: the description as served; `description`: the same without references. */
type Shop = AsyncDisposable & {
  readonly http: HttpClient;
  readonly written: object;
  readonly description: Description;
};

const dialectNames = ['specification', 'payhip'] as const;

/** An authority with an object of every kind. */
async function openShop(dialect: (typeof dialectNames)[number]): Promise<Shop> {
  const opened = new AsyncDisposableStack();
  const backup: App['backup'] = () =>
    Promise.resolve(done({ sizeBytes: 4, content: Readable.from(['copy']) }));
  const served = opened.use(await serveApp({ dialect: dialects[dialect], backup }));
  const http = opened.use(httpClient(served.listeners.tcp));
  const post = (path: string, json: object): Promise<HttpResponse> =>
    http.post(path, { headers: admin, json });
  await post('/admin/v1/products', { name: 'Editor', product_key: 'EDITOR' });
  await post('/admin/v1/collections', { name: 'Tools', collection_id: 'TOOLS', product_keys: ['EDITOR'] });
  for (const key of ['KEY-1', 'KEY-2']) {
    const purchase = { product_key: 'EDITOR', buyer_email: 'b@example.com', license_key: key };
    const made = (await post('/admin/v1/purchases', purchase)).body as { data: { purchase_id: string } };
    words.push(made.data.purchase_id);
  }
  await post('/api/v2/coupons', { coupon_type: 'multi', amount_off: 5, code: 'SPRING' });
  const cart = { code: 'SPRING', items: [{ product_key: 'EDITOR', amount: 1000 }] };
  for (const order of ['1', '2']) await post('/agent/v1/redemptions', { order, ...cart });
  // A token that requests may revoke; without the admin token all later requests would fail.
  const token = (await post('/admin/v1/tokens', { scopes: ['verify'] })).body as {
    data: { token_id: string };
  };
  words.push(token.data.token_id);
  const written = (await http.get('/openapi.json')).body as object;
  const description = dereferenced(written) as Description;
  return { http, written, description, [Symbol.asyncDispose]: () => opened.disposeAsync() };
}

test.each(dialectNames)(
  'the OpenAPI description in the dialect %s passes the strict rules of a linter',
  async (dialect) => {
    await using shop = await openShop(dialect);
    const config = await createConfig({ extends: ['recommended-strict'] });
    const problems = await lintFromString({ source: JSON.stringify(shop.written), config });
    expect(problems.map(({ ruleId, message }) => `${ruleId}: ${message}`)).toEqual([]);
  },
);

test('the linter finds errors in an invalid OpenAPI description', async () => {
  await using shop = await openShop('specification');
  const config = await createConfig({ extends: ['recommended-strict'] });
  const source = JSON.stringify(shop.written)
    .replace('"operationId":"getLiveness",', '')
    .replace('"4XX"', '"999"');
  expect((await lintFromString({ source, config })).length).toBeGreaterThan(0);
});

type Request = {
  operation: Operation;
  method: 'get' | 'put' | 'post' | 'delete';
  path: string;
  headers: Record<string, string>;
  form?: Record<string, string>;
  json?: unknown;
};

/** Headers of HTTP itself, which no OpenAPI description lists. */
const headersOfHttp = [
  'cache-control',
  'connection',
  'content-length',
  'content-type',
  'date',
  'keep-alive',
  'transfer-encoding',
  'vary',
];

/** The described response of an operation for a status. */
function responseOf({ responses }: Operation, status: number): Response {
  const described = responses[status] ?? responses[`${String(status).charAt(0)}XX`];
  if (described === undefined) throw new Error(`${status} is not described`);
  return described;
}

/** A value that follows the description, or sometimes any other value or none. */
function given(schema: Schema): fc.Arbitrary<unknown> {
  const other = fc.oneof(fc.jsonValue({ maxDepth: 2 }), fc.string({ unit: 'binary', maxLength: 40 }));
  return fc.oneof(
    { weight: 6, arbitrary: valuesOf(schema, words) },
    { weight: 1, arbitrary: other },
    { weight: 1, arbitrary: fc.constant(undefined) },
  );
}

function textOf(value: unknown): string {
  const text = typeof value === 'string' ? value : (JSON.stringify(value) ?? '');
  return text.toWellFormed();
}

/** The defined values as parameters. */
function pairsOf(values: Readonly<Record<string, unknown>>): Record<string, string> {
  const sent = Object.entries(values).filter(([, value]) => value !== undefined);
  return Object.fromEntries(sent.map(([name, value]) => [name, textOf(value)]));
}

function requestsOf(
  template: string,
  method: Request['method'],
  operation: Operation,
): fc.Arbitrary<Request> {
  const named = (where: Parameter['in']): fc.Arbitrary<Record<string, unknown>> => {
    const parameters = (operation.parameters ?? []).filter((each) => each.in === where);
    return fc.record(Object.fromEntries(parameters.map((each) => [each.name, given(each.schema)])));
  };
  const schema = operation.requestBody?.content['application/json']?.schema;
  const members = Object.entries(schema?.properties ?? {}).map(([name, its]) => [name, given(its)] as const);
  return fc
    .record({
      inPath: named('path'),
      query: named('query'),
      key: fc.option(fc.string({ maxLength: 5 })),
      body: fc.oneof(fc.record(Object.fromEntries(members)), valuesOf(schema ?? {}, words)),
      isForm: fc.boolean(),
    })
    .map(({ inPath, query, key, body, isForm }) => {
      const path = template.replaceAll(
        /\{(\w+)\}/g,
        (_, name: string) => encodeURIComponent(textOf(inPath[name] ?? 'nothing')).slice(0, 200) || 'nothing',
      );
      const search = new URLSearchParams(pairsOf(query)).toString();
      const headers = key === null ? admin : { ...admin, 'idempotency-key': JSON.stringify(key) };
      const isObject = typeof body === 'object' && body !== null && !Array.isArray(body);
      return {
        operation,
        method,
        path: search === '' ? path : `${path}?${search}`,
        headers: /^[\x20-\x7e]*$/.test(key ?? '') ? headers : admin,
        ...(schema !== undefined && (isForm && isObject ? { form: pairsOf({ ...body }) } : { json: body })),
      };
    });
}

/** Routes that are the same in every dialect are only tested in one. */
const sentIn = [
  { dialect: 'specification', under: '/' },
  { dialect: 'payhip', under: '/api/' },
] as const;

test.each(sentIn)(
  'requests that follow the OpenAPI description, or nearly do, get the described responses and no 500: $dialect',
  async ({ dialect, under }) => {
    await using shop = await openShop(dialect);
    const { http, description } = shop;
    const routes = (await routesOf(dialects[dialect])).filter(({ path }) => path.startsWith(under));
    const paths = Object.entries(description.paths).filter(([path]) => path.startsWith(under));
    const all = paths.flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, operation]) =>
        requestsOf(path, method as Request['method'], operation),
      ),
    );
    expect(all).toHaveLength(routes.length);
    const accepted = new Set<string>();
    const answered = fc.asyncProperty(fc.oneof(...all), async ({ operation, method, path, ...request }) => {
      const answer = await http[method](path, request);
      if (answer.status < 300) accepted.add(operation.operationId);
      expect(answer.status).toBeLessThan(500);
      const described = responseOf(operation, answer.status);
      const type = answer.headers['content-type']?.split(';', 1)[0];
      expect(Object.keys(described.content ?? {})).toEqual(type === undefined ? [] : [type]);
      const { code } = answer.body as { code?: string };
      expect(described.description).toContain(code === undefined ? '' : `\`${code}\``);
      const told = Object.keys(described.headers ?? {}).map((name) => name.toLowerCase());
      expect([...told, ...headersOfHttp]).toEqual(expect.arrayContaining(Object.keys(answer.headers)));
    });
    await fc.assert(answered, { numRuns: 75 * routes.length });
    // Enough when requests get past the first checks of many routes; chance decides how soon.
    const isEnough = (): boolean => accepted.size > routes.length / 3;
    for (let round = 0; round < 100 && !isEnough(); round += 1) await fc.assert(answered, { numRuns: 200 });
    expect(isEnough()).toBe(true);
  },
);
