import { expect, test } from 'vitest';
import { examples, type Example } from '../../../src/wire/examples.ts';
import { describeRoutes } from '../../../src/http/openapi/document.ts';
import { specification } from '../../../src/http/dialects.ts';
import { dialects } from '../../support/stores/dialects.ts';
import { routesOf } from '../../../src/http/routes/all.ts';
import { adminToken, openApp, serverOf } from '../../support/app/http-app.ts';

const routes = await routesOf(specification);

/** Values that differ in each run, with their patterns. */
const madeAnew = [
  /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00$/,
  /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/,
  /^lk_tok_[0-9a-f]+$/,
].map((pattern) => ({ pattern, like: expect.stringMatching(pattern) as unknown }));

/** The response of an example, with matchers for the values that differ in each run. */
function answerLike(node: unknown): unknown {
  if (Array.isArray(node)) return node.map(answerLike);
  if (typeof node === 'object' && node !== null) {
    return Object.fromEntries(Object.entries(node).map(([name, value]) => [name, answerLike(value)]));
  }
  const found = madeAnew.find(({ pattern }) => typeof node === 'string' && pattern.test(node));
  return found === undefined ? node : found.like;
}

function urlOf(path: string, { path: named = {}, query = {} }: Example): string {
  const filled = path.replaceAll(/:(\w+)/g, (_, name: string) => encodeURIComponent(String(named[name])));
  const pairs = Object.entries(query).map(([name, value]): [string, string] => [name, String(value)]);
  return pairs.length === 0 ? filled : `${filled}?${new URLSearchParams(pairs).toString()}`;
}

test('each example, sent after the previous examples, gets its documented response', async () => {
  await using opened = await openApp();
  await using server = serverOf(opened.app);
  for (const [operationId, example] of Object.entries(examples)) {
    const { method, path } = routes.find((route) => route.operationId === operationId) ?? {};
    if (method === undefined || path === undefined) throw new Error(`there is no ${operationId}`);
    const { body } = example;
    const answer = await server.inject({
      method,
      url: urlOf(path, example),
      headers: { authorization: `Bearer ${adminToken}` },
      ...(body !== undefined && { payload: body }),
    });
    expect([operationId, answer.statusCode, answer.json()]).toEqual([
      operationId,
      example.status,
      answerLike(example.response),
    ]);
  }
});

test('the OpenAPI description shows the request and the response of each example', () => {
  const text = JSON.stringify(describeRoutes(routes, { version: '1.2.3', dialect: specification }));
  for (const { body, response } of Object.values(examples)) {
    expect(text).toContain(`"example":${JSON.stringify(response)}`);
    expect(text).toContain(body === undefined ? '' : `"example":${JSON.stringify(body)}`);
  }
});

type Described = {
  paths: Record<
    string,
    Record<string, { operationId: string; parameters: { name: string; example?: unknown }[] }>
  >;
};

test('each parameter of an example is shown next to its description', () => {
  const { paths } = describeRoutes(routes, { version: '1.2.3', dialect: specification }) as Described;
  const operations = Object.values(paths).flatMap((path) => Object.values(path));
  for (const [operationId, { path = {}, query = {} }] of Object.entries(examples)) {
    const { parameters = [] } = operations.find((each) => each.operationId === operationId) ?? {};
    const shown = parameters.filter(({ example }) => example !== undefined);
    expect(Object.fromEntries(shown.map(({ name, example }) => [name, example]))).toEqual({
      ...path,
      ...query,
    });
  }
});

test('a server in the dialect of a store shows no example of the specification under /api', async () => {
  const dialect = dialects.payhip;
  const { paths } = describeRoutes(await routesOf(dialect), { version: '1.2.3', dialect }) as Described;
  const shown = Object.keys(paths).filter((path) => JSON.stringify(paths[path]).includes('"example":'));
  expect(shown.filter((path) => path.startsWith('/api/'))).toEqual([]);
  expect(shown).toContain('/admin/v1/products');
});
