import { globSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import {
  credentialHeaders,
  idempotencyKeyHeader,
  instanceHeader,
  provenanceHeaderNames,
  requestIdHeader,
} from '../../src/domain/header-names.ts';
import { scopes } from '../../src/domain/access/principal.ts';
import { chapterOf } from '../support/reference/guides.ts';

const source = join(import.meta.dirname, '../../src');
const book = readFileSync(join(source, 'http/README.md'), 'utf8');
/** The pages that a header may be explained on. */
const pages = globSync('**/README.md', { cwd: source }).map((path) =>
  readFileSync(join(source, path), 'utf8'),
);

test('the references name every header that is read or sent', () => {
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
  expect(all.filter((name) => !pages.some((page) => page.includes(`\`${name}`)))).toEqual([]);
});

test('the HTTP guide names every scope', () => {
  const text = chapterOf(book, 'Credentials and scopes');
  expect(scopes.filter((scope) => !text.includes(`\`${scope}\``))).toEqual([]);
});
