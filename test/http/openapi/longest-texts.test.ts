import type { FastifyInstance } from 'fastify';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { adminToken, openApp, serverOf, type TestApp } from '../../support/app/http-app.ts';
import { dereferenced } from '../../support/reference/dereferenced.ts';
import { dialects } from '../../support/stores/dialects.ts';
import { describeRoutes } from '../../../src/http/openapi/document.ts';
import { routesOf } from '../../../src/http/routes/all.ts';

type Schema = {
  type?: string | string[];
  maxLength?: number;
  pattern?: string;
  properties?: Record<string, Schema>;
  items?: Schema;
};
type Operation = {
  parameters?: { name: string; in: string; schema: Schema }[];
  requestBody?: { content: Record<string, { schema: Schema }> };
};
type Body = { method: 'POST' | 'PUT'; url: string; type: string; schema: Schema };

/** A character that takes 12 bytes both in a form (`%F0%9F%94%91`) and as escaped JSON (`\ud83d\udd11`). */
const character = '🔑';

/** The maximum number of bytes for a character of a text. */
function bytesOf(pattern = ''): number {
  return new RegExp(pattern, 'u').test(character) ? 12 : 1;
}

const settings = { version: '1.2.3', dialect: dialects.payhip };
const { paths } = dereferenced(describeRoutes(await routesOf(dialects.payhip), settings)) as {
  paths: Record<string, Record<string, Operation>>;
};
const operations = Object.entries(paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, operation]) => ({ method, path, operation })),
);
const bodies = operations.flatMap(({ method, path, operation }): Body[] =>
  Object.entries(operation.requestBody?.content ?? {}).map(([type, { schema }]) => {
    return {
      method: method.toUpperCase() as Body['method'],
      url: path.replaceAll(/\{\w+\}/g, '1'),
      type,
      schema,
    };
  }),
);
const queries = operations.flatMap(({ method, path, operation: { parameters = [] } }) =>
  parameters
    .filter((parameter) => parameter.in === 'query')
    .flatMap(({ name, schema: { maxLength, pattern } }) =>
      maxLength === undefined ? [] : [{ method, path, name, longestBytes: maxLength * bytesOf(pattern) }],
    ),
);

/** A value in which each text has its maximum length; lists have one item. */
function longest({ type, maxLength, properties, items }: Schema): unknown {
  if (properties !== undefined)
    return Object.fromEntries(Object.entries(properties).map(([name, schema]) => [name, longest(schema)]));
  if (items !== undefined) return [longest(items)];
  return [type].flat().includes('string') ? character.repeat(maxLength ?? 1) : 1;
}

function written(type: string, value: unknown): string {
  if (type === 'application/x-www-form-urlencoded')
    return new URLSearchParams(value as Record<string, string>).toString();
  const escaped = (unit: string): string => `\\u${unit.charCodeAt(0).toString(16)}`;
  return JSON.stringify(value).replaceAll(/[\ud800-\udfff]/g, escaped);
}

let opened: TestApp;
let server: FastifyInstance;
// One for all tests: no body is so large that it is refused, whatever was stored before.
beforeAll(async () => {
  opened = await openApp();
  server = serverOf(opened.app);
});
afterAll(() => opened[Symbol.asyncDispose]());

test.each(bodies.filter(({ type }) => type !== 'text/csv' && type !== 'application/jwt'))(
  'a body in which all texts have their maximum length is not too large: $method $url, $type',
  async ({ method, url, type, schema }) => {
    const headers = { authorization: `Bearer ${adminToken}`, 'content-type': type };
    const answer = await server.inject({ method, url, headers, payload: written(type, longest(schema)) });
    expect(answer.json()).not.toMatchObject({ status: 413 });
  },
);

test('the OpenAPI description has bodies as forms and JSON, and texts in queries', () => {
  const types = new Set(bodies.map(({ type }) => type));
  expect([...types].sort()).toEqual([
    'application/json',
    'application/jwt',
    'application/x-www-form-urlencoded',
    'text/csv',
  ]);
  expect(queries.length).toBeGreaterThan(20);
});

const headerBytes = 8 * 1024;

test.each(queries)(
  'a query with a text of its maximum length is not too long: $method $path, $name',
  ({ path, name, longestBytes }) => {
    const target = `${path}?${name}=`.length + longestBytes;
    // The rest is for the other headers.
    expect(target).toBeLessThan(headerBytes - 1024);
  },
);
