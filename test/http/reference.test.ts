import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { Metrics } from '../../src/daemon/metrics.ts';
import {
  credentialHeaders,
  idempotencyKeyHeader,
  instanceHeader,
  provenanceHeaderNames,
  requestIdHeader,
} from '../../src/domain/header-names.ts';
import { scopes } from '../../src/domain/access/principal.ts';
import { dialects } from '../../src/http/dialects.ts';
import { describeRoutes } from '../../src/http/openapi/document.ts';
import type { Route } from '../../src/http/route.ts';
import { routes, routesOf } from '../../src/http/routes/all.ts';
import { authoritySnapshot } from '../support/app/http-app.ts';

const source = join(import.meta.dirname, '../../src');
const book = readFileSync(join(source, 'http/README.md'), 'utf8');

/** The text under a heading, up to the next heading of the same level. */
function section(heading: string): string {
  const [, text] = book.split(`\n## ${heading}\n`);
  if (text === undefined) throw new Error(`there is no heading ${heading}`);
  return text.split('\n## ', 1)[0] ?? '';
}

/** The items of the lists in a text. */
function items(text: string): string[] {
  return text.split('\n').filter((line) => line.startsWith('- '));
}

type Access = readonly [credential: string, scope: string];

/** The routes in the lists of a section; `access` applies to items without (credential, scope). */
function routesIn(heading: string, prefix = '', access: Access = ['', '']): string[][] {
  return items(section(heading)).flatMap((item) => {
    const [, credential = access[0], scope = access[1]] = /\/\S*` \((\w+)(?:, ([\w:]+))?\)/.exec(item) ?? [];
    const paths = [...item.matchAll(/`([A-Z]+) (\/\S*)`/g)];
    return paths.map(([, method = '', path = '']) => [`${method} ${prefix}${path}`, credential, scope]);
  });
}

function nameOf({ method, path }: Route): string {
  return `${method} ${path}`;
}

function accessOf({ access }: Route): Access {
  return access === 'anyone' ? ['anyone', ''] : [access.credential, access.scope ?? ''];
}

test('the HTTP reference lists every route with its access, and no other route', () => {
  const written = [
    ...routesIn('License and coupon routes'),
    ...routesIn('Leases'),
    ...routesIn('Events of stores'),
    ...routesIn('Other Latchkeys'),
    ...routesIn('Coupons at checkout'),
    ...routesIn('Health and status'),
    ...routesIn('The console'),
    ...routesIn('Admin routes', '/admin/v1', ['any', 'admin']),
  ];
  const real = routes.map((route) => [nameOf(route), ...accessOf(route)]);
  expect(new Set(written)).toEqual(new Set(real));
});

test('the HTTP reference lists the admin routes of an authority separately from the routes of both roles', () => {
  const [, text = ''] = section('Admin routes').split('\n### On an authority only\n');
  const [authority = ''] = text.split('\n### ', 1);
  const written = [...authority.matchAll(/`([A-Z]+) (\/\S*)`/g)].map(
    ([, method, path]) => `${method} /admin/v1${path}`,
  );
  const real = routes
    .filter(({ path, authorityOnly }) => path.startsWith('/admin/v1/') && authorityOnly === true)
    .map(nameOf);
  expect(new Set(written)).toEqual(new Set(real));
});

test('the HTTP reference lists every route that exists only in a dialect', () => {
  const written = routesIn('Dialects');
  const everywhere = new Set(routes.map(nameOf));
  const real = routesOf(dialects.payhip)
    .filter((route) => !everywhere.has(nameOf(route)))
    .map((route) => [nameOf(route), ...accessOf(route)]);
  expect(real).not.toEqual([]);
  expect(new Set(written)).toEqual(new Set(real));
});

test('the HTTP reference lists every metric, and no other metric', async () => {
  using metrics = new Metrics({ role: 'agent', isSecure: true, hasDatabase: true });
  metrics.countUnrouted(400);
  using ofHolder = new Metrics({ role: 'holder', isSecure: false, hasDatabase: false });
  const text = `${await metrics.expose(authoritySnapshot)}\n${await ofHolder.expose(authoritySnapshot)}`;
  const real = [...text.matchAll(/^# TYPE (\S+)/gm)].map(([, name]) => name);
  const [, list = ''] = section('Health and status').split('\nMetrics (');
  const written = items(list).flatMap((item) => [...item.matchAll(/`([a-z_]+)`/g)]);
  expect(new Set(written.map(([, name]) => name))).toEqual(new Set(real));
});

test('the HTTP reference names every header that is read or sent', () => {
  const own = [
    ...Object.values(credentialHeaders),
    idempotencyKeyHeader,
    instanceHeader,
    requestIdHeader,
    ...Object.values(provenanceHeaderNames),
  ];
  const files = readdirSync(join(source, 'http'), { recursive: true, encoding: 'utf8' });
  const sent = files
    .filter((path) => path.endsWith('.ts'))
    .flatMap((path) => [
      ...readFileSync(join(source, 'http', path), 'utf8').matchAll(
        /header\('([A-Za-z-]+)'|'([A-Z][a-z]*(?:-[A-Z][a-z]+)+)'|['[]((?:Age|Allow|Link|Location))\b/g,
      ),
    ])
    .map((match) => match.slice(1).find((name) => name !== undefined) ?? '');
  expect(sent).toEqual(expect.arrayContaining(['Retry-After', 'X-Total-Count', 'Age', 'Connection']));
  const all = [...new Set([...own, ...sent])];
  expect(all.filter((name) => !book.includes(`\`${name}`))).toEqual([]);
});

test('the HTTP reference names every scope', () => {
  const text = section('Credentials and scopes');
  expect(scopes.filter((scope) => !text.includes(`\`${scope}\``))).toEqual([]);
});

test('the HTTP reference names every member of an outbox operation', () => {
  const { components } = describeRoutes(routes, { version: '1.2.3', dialect: dialects.specification }) as {
    components: { schemas: { ListedOperation: { properties: object } } };
  };
  const members = Object.keys(components.schemas.ListedOperation.properties).join(', ');
  expect(section('Admin routes')).toContain(`\`{${members}}\``);
});
