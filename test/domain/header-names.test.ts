import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import {
  credentialHeaders,
  idempotencyKeyHeader,
  instanceHeader,
  provenanceHeaderNames,
  requestIdHeader,
} from '../../src/domain/header-names.ts';

const source = join(import.meta.dirname, '../../src');
const withoutComments = (text: string): string => text.replaceAll(/\/\*[^]*?\*\/|\/\/[^\n]*/g, '');

/** Text for people, which names headers as a book does, and the client, which takes nothing of the rest. */
const apart = /^(?:domain\/problem\/problem-causes\.ts|cli\/explanation\.ts|client\/.*)$/;

test('the name of a header is written in one place', () => {
  const tables = [credentialHeaders, provenanceHeaderNames].flatMap((table) => Object.values(table));
  const names = [...tables, idempotencyKeyHeader, instanceHeader, requestIdHeader];
  const written = readdirSync(source, { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.ts') && !apart.test(path))
    .flatMap((path) => {
      const text = withoutComments(readFileSync(join(source, path), 'utf8')).toLowerCase();
      return names.filter((name) => text.includes(name.toLowerCase())).map((name) => [name, path]);
    });
  const expected = names.map((name) => [name, 'domain/header-names.ts']);
  expect(written).toEqual(expected);
});
