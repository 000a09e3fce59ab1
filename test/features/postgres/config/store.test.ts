import { expect, test } from 'vitest';
import { parseLocation } from '../../../../src/config/load.ts';
import { configSources, configurationOf, errorsOf } from '../../../support/builders/config-builders.ts';

const agent = 'upstream: { base_url: "http://localhost" }\n';
const url = '"postgres://a@localhost/b"';
const ofSchema = 'store.postgres.schema: must consist of at most 63 lower-case letters';

test.each([
  [
    `${agent}store: { postgres: { url: ${url} } }`,
    'store: is only for an authority: remove it, since an agent keeps its data in state_dir',
  ],
  [
    'store: { postgres: { url: "mysql://a@localhost/b" } }',
    'store.postgres.url: must be postgres://user@host',
  ],
  [
    `store: { postgres: { url: ${url}, listen_url: "postgres://b.example/b" } }`,
    'store.postgres.listen_url: must be postgres://user@host',
  ],
  [`store: { postgres: { url: ${url}, schema: pg_a } }`, ofSchema],
  [`store: { postgres: { url: ${url}, schema: ${'s'.repeat(64)} } }`, ofSchema],
])('the configuration `%s` is refused: %s', (text, error) => {
  expect(errorsOf({ text })).toEqual([expect.stringContaining(error)]);
});

test('the data is in the state directory by default', () => {
  expect(configurationOf().store).toEqual({ postgres: null });
});

test('a schema has 63 characters at most', () => {
  const schema = 's'.repeat(63);
  expect(configurationOf({ text: `store: { postgres: { url: ${url}, schema: ${schema} } }` }).store).toEqual(
    expect.objectContaining({ postgres: expect.objectContaining({ schema }) }),
  );
});

test.each([
  ['url_file: away', 'store.postgres.url_file: cannot read'],
  ['url_file: away, url: "postgres://me@localhost/shop"', 'store.postgres.url_file: is given as well as url'],
])('an unreadable file with the database URL is the only error about the URL: %s', (keys, error) => {
  expect(errorsOf({ text: `store: { postgres: { ${keys} } }` })).toEqual([expect.stringContaining(error)]);
});

test('a file of certificates that cannot be read is an error of the configuration', () => {
  const text = 'store: { postgres: { url: "postgres://a@db.example/b", ca_file: ca.pem } }';
  expect(errorsOf({ text })).toEqual([expect.stringContaining('store.postgres.ca_file: cannot read ')]);
});

test('the commands find a daemon on a database, also without any key in the section', () => {
  const located = (text: string): unknown => parseLocation(configSources({ text }));
  expect(located(`store: { postgres: { url: ${url} } }`)).toMatchObject({
    location: { engine: { place: 'PostgreSQL (store.postgres)' }, hasUpstream: false },
  });
  expect(located('store:\n')).toMatchObject({ location: { engine: null } });
});
