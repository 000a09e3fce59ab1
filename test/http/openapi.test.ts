import { expect, test } from 'vitest';
import { describeRoutes } from '../../src/http/openapi.ts';
import { routes } from '../../src/http/routes/all.ts';

type Operation = {
  operationId: string;
  security: object[];
  parameters?: { name: string; in: string; required?: boolean; schema: object }[];
  requestBody?: { content: Record<string, { schema: { properties: object; required?: string[] } }> };
  responses: Record<string, object>;
};
type Description = { openapi: string; paths: Record<string, Record<string, Operation>>; components: object };

const description = describeRoutes(routes, '1.2.3') as Description;
const operations = Object.values(description.paths).flatMap((path) => Object.values(path));

test('every route of the table is described, under a name of its own', () => {
  expect(operations).toHaveLength(routes.length);
  expect(new Set(operations.map(({ operationId }) => operationId)).size).toBe(routes.length);
});

test('a route that anyone may call is one of three', () => {
  const open = routes.filter(({ access }) => access === 'anyone').map(({ path }) => path);
  expect(open.sort()).toEqual(['/livez', '/openapi.json', '/readyz']);
  expect(operations.filter(({ security }) => security.length === 0)).toHaveLength(open.length);
});

test('the creation of a coupon is described by the schemas that check it', () => {
  const create = description.paths['/api/v2/coupons']?.['post'];
  const schema = create?.requestBody?.content['application/x-www-form-urlencoded']?.schema;
  expect(schema).toEqual(create?.requestBody?.content['application/json']?.schema);
  expect(schema?.required).toEqual(['coupon_type', 'code']);
  expect(schema?.properties).toMatchObject({
    coupon_type: { type: 'string', enum: ['single', 'multi', 'collection'] },
    percent_off: { type: 'number', exclusiveMinimum: 0, maximum: 100 },
    amount_off: { type: 'integer', minimum: 1 },
    end_date: { type: 'string', format: 'date-time' },
  });
  expect(Object.keys(create?.responses ?? {})).toEqual(['201', '4XX', '5XX']);
});

test('the parameters of a list are described with their bounds and defaults', () => {
  expect(description.paths['/api/v2/coupons']?.['get']?.parameters).toMatchObject([
    { name: 'limit', in: 'query', schema: { type: 'integer', minimum: 1, maximum: 100, default: 10 } },
    { name: 'offset', in: 'query', schema: { type: 'integer', minimum: 0, default: 0 } },
  ]);
});

test('a path parameter is described', () => {
  expect(description.paths['/api/v2/coupons/{id}']?.['get']?.parameters).toMatchObject([
    { name: 'id', in: 'path', required: true },
  ]);
});
