import { expect, test } from 'vitest';
import { problems } from '../../../src/domain/problem/problem-table.ts';
import { type Dialect, specification } from '../../../src/http/dialects.ts';
import { dialects } from '../../support/stores/dialects.ts';
import { describeRoutes } from '../../../src/http/openapi/document.ts';
import { refusalsOf } from '../../../src/http/openapi/responses.ts';
import type { Route } from '../../../src/http/route.ts';
import { routesOf } from '../../../src/http/routes/all.ts';
import { noParameters } from '../../../src/wire/parameters.ts';
import { dereferenced } from '../../support/reference/dereferenced.ts';

const routes = await routesOf(specification);

type Schema = {
  $ref?: string;
  type?: string | string[];
  minimum?: number;
  properties?: Record<string, Schema>;
  required?: string[];
  items?: Schema;
};
type Content = Record<string, { schema: Schema }>;
type Operation = {
  operationId: string;
  description: string;
  tags: string[];
  security: Record<string, string[]>[];
  parameters?: { name: string; in: string; required?: boolean; description?: string; schema: object }[];
  requestBody?: { content: Content; required?: boolean };
  responses: Record<string, { description: string; content?: Content }>;
};
type Description = {
  info: { description: string };
  tags: { name: string; description: string }[];
  paths: Record<string, Record<string, Operation>>;
  components: { schemas: Record<string, Schema>; securitySchemes: object };
};

const written = describeRoutes(routes, {
  version: '1.2.3',
  dialect: dialects.specification,
}) as Description;
const description = dereferenced(written) as Description;
const { schemas } = description.components;

function operationOf({ method, path }: Pick<Route, 'method' | 'path'>): Operation {
  const operation = description.paths[path.replaceAll(/:(\w+)/g, '{$1}')]?.[method.toLowerCase()];
  if (operation === undefined) throw new Error(`${method} ${path} is not described`);
  return operation;
}

function parametersIn(place: string, { parameters = [] }: Operation): unknown[] {
  return parameters
    .filter((each) => each.in === place)
    .map(({ name, required }) => [name, required === true]);
}

/** The security schemes of the OpenAPI document for each kind of credential that a route accepts. */
const schemes = {
  api_key: ['apiKey', 'bearer'],
  product_secret: ['productSecret', 'bearer'],
  any: ['apiKey', 'productSecret', 'bearer'],
};
const named = routes.map((route) => [`${route.method} ${route.path}`, route] as const);

test('every route is in the document with a unique operation id, and nothing else is', () => {
  const operations = Object.values(description.paths).flatMap((path) => Object.values(path));
  expect(operations).toHaveLength(routes.length);
  expect(new Set(operations.map(({ operationId }) => operationId)).size).toBe(routes.length);
});

test('every JSON body and every object in it has a named schema', () => {
  const unnamed: string[] = [];
  const look = (node: unknown, path: string): void => {
    if (typeof node !== 'object' || node === null) return;
    const isNamed = /^\/components\/schemas\/[^/]+$/.test(path);
    // A condition is not a class of its own.
    const isCondition = path.includes('/dependentSchemas/');
    if (!isNamed && 'properties' in node && !path.endsWith('/properties') && !isCondition) unnamed.push(path);
    for (const [name, value] of Object.entries(node)) look(value, `${path}/${name}`);
  };
  look(written, '');
  expect(unnamed).toEqual([]);
});

test('every tag has a description', () => {
  expect(written.tags.filter(({ description: told }) => told === '')).toEqual([]);
  const explained = written.tags.map(({ name }) => name);
  expect(new Set(explained)).toEqual(new Set(routes.map(({ tag }) => tag)));
});

test.each(named)(
  '%s: the document lists the credentials that the server accepts, and the scope',
  (_, route) => {
    const { access } = route;
    const expected =
      access === 'anyone' ? [] : schemes[access.credential].map((scheme) => ({ [scheme]: [] }));
    const { security, description: told } = operationOf(route);
    expect(security).toEqual(expected);
    const scope = access === 'anyone' || access.scope === null ? null : access.scope;
    const credential = access === 'anyone' ? 'no credential' : 'any valid credential';
    expect(told).toContain(scope === null ? credential : `the scope \`${scope}\``);
    const limits = ['can open it to anyone', 'a single account is refused', 'An agent refuses it'];
    expect(limits.map((limit) => told.includes(limit))).toEqual([
      route.isOpen !== undefined,
      route.operatorOnly === true,
      route.roles?.join() === 'authority',
    ]);
  },
);

test('the security schemes name the headers of the credentials', () => {
  expect(description.components.securitySchemes).toMatchObject({
    apiKey: { type: 'apiKey', in: 'header', name: 'service-api-key' },
    productSecret: { type: 'apiKey', in: 'header', name: 'product-secret-key' },
    bearer: { type: 'http', scheme: 'bearer' },
  });
});

test.each(named)('%s: the document describes the path, the query and the headers', (_, route) => {
  const operation = operationOf(route);
  const inPath = [...route.path.matchAll(/:(\w+)/g)].map(([, name]) => [name, true]);
  expect(parametersIn('path', operation)).toEqual(inPath);
  expect(parametersIn('query', operation).map((each) => (each as string[])[0])).toEqual(
    Object.keys(route.query?.schema.shape ?? {}),
  );
  expect(parametersIn('header', operation)).toEqual(
    route.method === 'GET'
      ? route.prefersNewLease === true
        ? [['Prefer', false]]
        : []
      : route.takesEvent === true
        ? []
        : [
            ...(route.takesDocument === true ? [] : [['Idempotency-Key', false]]),
            ...(route.isVerdict === true || route.takesDocument === true ? [['Prefer', false]] : []),
          ],
  );
});

test('the body of an event of a store is a JSON object or a form, with the members of the store', () => {
  const { requestBody } = operationOf({ method: 'POST', path: '/hooks/v1/:name' });
  expect(Object.keys(requestBody?.content ?? {})).toEqual([
    'application/json',
    'application/x-www-form-urlencoded',
  ]);
  for (const { schema } of Object.values(requestBody?.content ?? {}))
    expect(schema).toMatchObject({ type: 'object', properties: {} });
});

test('the body of a request for a lease is a signed document', () => {
  const { requestBody } = operationOf({ method: 'POST', path: '/lease/v1' });
  expect(requestBody).toMatchObject({ required: true });
  expect(Object.keys(requestBody?.content ?? {})).toEqual(['application/jwt']);
});

test.each(
  named.filter(
    ([, { body, takesDocument, takesEvent }]) =>
      body !== undefined && takesDocument !== true && takesEvent !== true,
  ),
)('%s: an empty body is refused because of the members that the document requires', (_, route) => {
  const content = operationOf(route).requestBody?.content ?? {};
  const { 'text/csv': csv, ...parsed } = content;
  const required = Object.entries(parsed['application/json']?.schema.properties ?? {}).filter(([name]) =>
    parsed['application/json']?.schema.required?.includes(name),
  );
  // A form has no lists.
  const isForm = required.every(([, { type }]) => type !== 'array');
  expect(Object.keys(parsed)).toEqual([
    ...(isForm ? ['application/x-www-form-urlencoded'] : []),
    'application/json',
  ]);
  expect(csv !== undefined).toBe(route.readCsv !== undefined);
  const empty = route.body?.read(noParameters);
  const missing = empty?.ok === false ? empty.faults.filter(({ code }) => code === 'required') : [];
  // A coupon requires one of two discounts, which a list of names cannot express.
  const names = missing.map(({ parameter }) => parameter).filter((name) => name !== 'percent_off');
  for (const { schema } of Object.values(parsed)) expect(schema.required ?? []).toEqual(names);
});

test('the routes of the first version describe their parameters in the body and in the query', async () => {
  const { paths } = dereferenced(
    describeRoutes(await routesOf(dialects.payhip), { version: '1.2.3', dialect: dialects.payhip }),
  ) as Description;
  for (const change of ['usage', 'decrease', 'disable', 'enable']) {
    const operation = paths[`/api/v1/license/${change}`]?.['put'];
    expect(operation?.requestBody?.required ?? false).toBe(false);
    expect(operation && parametersIn('query', operation)).toEqual([
      ['product_link', false],
      ['license_key', false],
    ]);
  }
  expect(operationOf({ method: 'PUT', path: '/api/v2/license/usage' }).requestBody?.required).toBe(true);
});

test('the description says that errors have a code, or how clients get a code in the dialect of a store', async () => {
  const of = async (dialect: Dialect): Promise<string> =>
    (describeRoutes(await routesOf(dialect), { version: '1.2.3', dialect }) as Description).info.description;
  const told = 'Every error has a stable `code`; `latchkey explain CODE` explains it.';
  expect((await of(dialects.specification)).endsWith(told)).toBe(true);
  expect(await of(dialects.payhip)).toContain(
    `${told} Under \`/api\`, an error is only a \`message\`, as another store sends it, unless \`Accept\` asks for \`application/problem+json\`.`,
  );
});

test('errors are described in the form of the store under /api, and as problems elsewhere', async () => {
  const dialect = dialects.payhip;
  const { paths } = dereferenced(
    describeRoutes(await routesOf(dialect), { version: '1.2.3', dialect }),
  ) as Description;
  for (const [path, operations] of Object.entries(paths)) {
    const { mediaType } = path.startsWith('/api/') ? dialect.refusal : dialects.specification.refusal;
    for (const { responses } of Object.values(operations)) {
      expect([path, Object.keys(responses['4XX']?.content ?? {})]).toEqual([path, [mediaType]]);
    }
  }
});

test('the parameters of a coupon are described by the schemas that check them', () => {
  const { requestBody } = operationOf({ method: 'POST', path: '/api/v2/coupons' });
  expect(requestBody?.content['application/json']?.schema.properties).toMatchObject({
    coupon_type: { type: 'string', enum: ['single', 'multi', 'collection'] },
    percent_off: { type: ['number', 'null'], exclusiveMinimum: 0, maximum: 100 },
    amount_off: { type: ['integer', 'null'], minimum: 1 },
    end_date: { type: ['string', 'null'], format: 'date-time' },
  });
});

test('the parameters of a list are described with their limits and defaults', () => {
  expect(operationOf({ method: 'GET', path: '/api/v2/coupons' }).parameters).toMatchObject([
    { name: 'limit', in: 'query', schema: { type: 'integer', minimum: 1, maximum: 100, default: 10 } },
    { name: 'offset', in: 'query', schema: { type: 'integer', minimum: 0, maximum: 10_000, default: 0 } },
    { name: 'cursor', in: 'query', schema: { type: 'string', minLength: 1, maxLength: 6_000 } },
  ]);
});

test.each(
  named.filter(([, { path }]) => /^\/(?:api|admin|agent)\//.test(path) && !/\/(?:backup|export)$/.test(path)),
)('%s: successful responses are described as data alone, and errors as problems', (_, route) => {
  const { responses } = operationOf(route);
  for (const [status, { content = {} }] of Object.entries(responses)) {
    if (status === '204' || status === '304') continue;
    const members = Object.keys(content['application/json']?.schema.properties ?? {});
    const refusal = content['application/problem+json']?.schema.properties ?? {};
    expect([members, 'code' in refusal]).toEqual(status.startsWith('2') ? [['data'], false] : [[], true]);
  }
});

test('the route of a quote does not list a reused idempotency key, because its response is not stored', () => {
  const refusing = routes.filter((route) => refusalsOf(route).includes('idempotency_key_reused'));
  const paths = refusing.map(({ path }) => path);
  expect(paths).toContain('/agent/v1/redemptions');
  expect(paths).not.toContain('/agent/v1/quote');
});

test('an idempotency key is described as safe only for routes whose response is stored', () => {
  const safe = routes.filter((route) => {
    const { parameters = [] } = operationOf(route);
    const key = parameters.find(({ name }) => name === 'Idempotency-Key');
    return key?.description?.startsWith('Makes it safe to repeat the request') === true;
  });
  expect(safe).toEqual(routes.filter((route) => refusalsOf(route).includes('idempotency_key_reused')));
  expect(safe.map(({ path }) => path)).not.toContain('/admin/v1/tokens');
});

/** The error codes in the description of an operation. */
function codesOf({ responses }: Operation): string[] {
  const told = Object.values(responses).map((response) => response.description);
  return told.flatMap((text) => [...text.matchAll(/^- `(\w+)`: /gm)].map(([, code = '']) => code));
}

test('every problem is described at a route that can return it, except for problems without a route', () => {
  const told = new Set(routes.flatMap((route) => codesOf(operationOf(route))));
  const untold = Object.keys(problems).filter((code) => !told.has(code));
  // Only the first version of the API, in another dialect, returns the first code.
  expect(untold).toEqual(['coupon_code_not_found', 'route_not_found', 'method_not_allowed']);
});

test.each<[string, string, string[]]>([
  [
    'GET',
    '/livez',
    ['host_forbidden', 'origin_forbidden', 'loop_detected', 'headers_too_large', 'request_timeout'],
  ],
  ['GET', '/statusz', ['credentials_missing', 'credentials_invalid', 'token_expired', 'rate_limited']],
  ['GET', '/api/v2/license/verify', ['starting', 'draining', 'storage_failed', 'storage_unavailable']],
  ['GET', '/api/v2/license/verify', ['license_not_found', 'upstream_unreachable', 'verdict_expired']],
  ['PUT', '/api/v2/license/usage', ['idempotency_key_in_use', 'storage_full', 'outcome_unknown']],
  ['GET', '/api/v2/coupons', ['upstream_unreachable', 'coupons_not_configured']],
  ['POST', '/admin/v1/products', ['not_the_authority', 'scope_missing', 'body_too_large']],
  ['POST', '/admin/v1/accounts', ['operator_only']],
])('%s %s is described with the errors that it may return: %j', (method, path, codes) => {
  expect(codesOf(operationOf({ method: method as Route['method'], path }))).toEqual(
    expect.arrayContaining(codes),
  );
});

test('optional parameters may be empty in a form or a query, and null in JSON', () => {
  const { requestBody, parameters } = operationOf({ method: 'POST', path: '/api/v2/coupons' });
  const notesIn = (type: string): object | undefined =>
    requestBody?.content[type]?.schema.properties?.['notes'];
  expect(notesIn('application/json')).toMatchObject({ type: ['string', 'null'], minLength: 1 });
  expect(notesIn('application/x-www-form-urlencoded')).not.toHaveProperty('minLength');
  expect(parameters?.some((each) => 'allowEmptyValue' in each)).toBe(false);
  const list = operationOf({ method: 'GET', path: '/admin/v1/purchases' }).parameters ?? [];
  for (const parameter of list) expect(parameter).toHaveProperty('allowEmptyValue', true);
  const key = operationOf({ method: 'GET', path: '/api/v2/license/verify' }).parameters ?? [];
  expect(key.map((each) => 'allowEmptyValue' in each)).toEqual([false, true]);
});

test('the document contains no artifacts of this program', () => {
  const text = JSON.stringify(written.components.schemas);
  const alien = ['"readOnly"', '-9007199254740991', '"format":"date-time","pattern"'];
  expect(alien.filter((each) => text.includes(each))).toEqual([]);
});

test('the id of a coupon in a path has no limits: an unknown integer is not found', () => {
  const ids = named
    .filter(([, { path }]) => path.includes('/coupons/:id'))
    .flatMap(([, route]) => operationOf(route).parameters?.filter((each) => each.in === 'path') ?? []);
  expect(ids).not.toEqual([]);
  for (const { schema } of ids) expect(Object.keys(schema).toSorted()).toEqual(['description', 'type']);
});

test('only successful responses are described as a success', () => {
  const done = routes.flatMap((route) =>
    Object.entries(operationOf(route).responses).flatMap(([status, { description: told }]) =>
      told === 'Success.' ? [status] : [],
    ),
  );
  expect(new Set(done)).toEqual(new Set(['200', '201', '202', '204']));
});

test('errors of an upstream are described at the status of the upstream', () => {
  const { responses } = operationOf({ method: 'POST', path: '/api/v2/coupons' });
  const told = Object.keys(responses).filter((status) =>
    responses[status]?.description.includes('`upstream_refused`'),
  );
  expect(told).toEqual(['400', '409', '422', '4XX']);
});

test('a license and a coupon have the members of the specification', () => {
  const membersOf = (name: string): string[] => Object.keys(schemas[name]?.properties ?? {}).toSorted();
  // A license has the other members only if it has terms.
  expect(schemas['License']?.required?.toSorted().join(' ')).toBe(
    'buyer_email date enabled license_key product_link uses',
  );
  expect(membersOf('Coupon').join(' ')).toBe(
    'amount_off code collection_id coupon_type end_date id minimum_purchase_amount notes percent_off product_key start_date usage_limit',
  );
});

test('only the routes of devices and stores, the sign-in of the console and three others need no credential', () => {
  const open = routes.filter(({ access }) => access === 'anyone').map(({ path }) => path);
  expect(open.toSorted((one, other) => one.localeCompare(other))).toEqual([
    '/console/v1/sessions',
    '/console/v1/sign-ins',
    '/hooks/v1/:name',
    '/lease/v1',
    '/lease/v1/keys',
    '/livez',
    '/openapi.json',
    '/readyz',
  ]);
});
