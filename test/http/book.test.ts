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
import { scopes } from '../../src/domain/access/scope.ts';
import { dialects } from '../../src/http/dialects/all.ts';
import { describeRoutes } from '../../src/http/openapi/document.ts';
import type { Route } from '../../src/http/route.ts';
import { routes, routesOf } from '../../src/http/routes/all.ts';
import { authoritySnapshot } from '../support/app/http-app.ts';

const source = join(import.meta.dirname, '../../src');
const book = readFileSync(join(source, 'http/README.md'), 'utf8');

/** What stands under a heading, up to the next one of its level. */
function section(heading: string): string {
  const [, text] = book.split(`\n## ${heading}\n`);
  if (text === undefined) throw new Error(`there is no heading ${heading}`);
  return text.split('\n## ', 1)[0] ?? '';
}

/** The rows of the tables in a text, without their heads, as cells without back quotes. */
function rows(text: string): string[][] {
  const lines = text.split('\n');
  return lines
    .filter((line, index) => line.startsWith('| ') && !lines[index + 1]?.startsWith('| -') && line[2] !== '-')
    .map((line) => line.split(' | ').map((cell) => cell.replaceAll(/[|`]/g, '').trim()));
}

function nameOf({ method, path }: Route): string {
  return `${method} ${path}`;
}

function accessOf({ access }: Route): readonly [credential: string, scope: string] {
  return access === 'anyone' ? ['anyone', ''] : [access.credential, access.scope];
}

test('every route is in the book with its access, and the book has no other', () => {
  const written = rows(section('Routes')).map(([path, access, scope, only]) => [path, access, scope, only]);
  const real = routes.map((route) => [
    nameOf(route),
    ...accessOf(route),
    route.authorityOnly === true ? 'authority' : '',
  ]);
  expect(new Set(written)).toEqual(new Set(real));
});

test('every route that only a dialect has is in the book', () => {
  const written = rows(section('Dialects')).map(([path, access, scope]) => [path, access, scope]);
  const everywhere = new Set(routes.map(nameOf));
  const real = routesOf(dialects.payhip)
    .filter((route) => !everywhere.has(nameOf(route)))
    .map((route) => [nameOf(route), ...accessOf(route)]);
  expect(real).not.toEqual([]);
  expect(new Set(written)).toEqual(new Set(real));
});

test('every metric is in the book, and the book has no other', async () => {
  using metrics = new Metrics({ role: 'agent', isSecure: true, hasDatabase: true });
  metrics.countUnrouted(400);
  const text = await metrics.expose(authoritySnapshot);
  const real = [...text.matchAll(/^# TYPE (\S+)/gm)].map(([, name]) => name);
  const written = rows(section('Health and status')).map(([name]) => name);
  expect(new Set(written)).toEqual(new Set(real));
});

test('every header that is read or sent is in the book', () => {
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

test('every scope is in the book', () => {
  const text = section('Credentials and scopes');
  expect(scopes.filter((scope) => !text.includes(`\`${scope}\``))).toEqual([]);
});

test('an operation of the outbox is in the book with all that is told of it', () => {
  const { components } = describeRoutes(routes, { version: '1.2.3', dialect: dialects.specification }) as {
    components: { schemas: { Operation: { properties: object } } };
  };
  const told = Object.keys(components.schemas.Operation.properties).join(', ');
  expect(section('Admin routes')).toContain(`\`{${told}}\``);
});
