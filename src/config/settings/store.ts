import { parseDatabaseUrl } from '../value/database-url.ts';
import type { SectionOf } from '../description.ts';

const postgresKeys = {
  url: {
    kind: 'secret',
    purpose:
      'Where the database is: `postgres://user:password@host:5432/database`, or `postgres://user@localhost/database?host=/run/postgresql` for a Unix socket. TLS is spoken, and the certificate checked, unless the host is a socket, or this machine and the URL ends in `?sslmode=disable`.',
  },
  listen_url: {
    kind: 'secret',
    default: null,
    purpose:
      'Where the same database is without a pooler, to be given where `url` leads through one that lends connections for single transactions (PgBouncer in transaction mode): copies listen there for what others change. Left out, `url` leads to the database itself.',
  },
  schema: {
    kind: 'text',
    default: 'latchkey',
    purpose: 'The schema of its tables, which the first start or `latchkey store move` makes.',
  },
  pool: {
    kind: 'count',
    default: 16,
    unit: 'connections',
    purpose:
      'The most connections of this process, which has one more to listen; all copies together must stay below `max_connections`.',
  },
  statement_timeout: {
    kind: 'wait',
    default: '5s',
    purpose: 'How long a statement may take before it is given up.',
  },
  ca_file: {
    kind: 'path',
    default: null,
    purpose:
      'The certificate (PEM) of whoever signs that of the server; without one, those that Node trusts.',
  },
} as const;

const urlForm =
  'must be postgres://user@host:port/database, with sslmode=verify-full, or disable on this machine, as its only parameter (a Unix socket: ?host=/its/directory)';

const schemaName = /^[a-z_][a-z0-9_]{0,62}$/;

const postgres: SectionOf<typeof postgresKeys> & { readonly optional: true } = {
  kind: 'section',
  purpose:
    'A PostgreSQL database (15 or later) that any number of copies of an authority share. Left out, the records are in `state_dir`, and of one process.',
  optional: true,
  keys: postgresKeys,
  rules: [
    { about: ['url'], text: urlForm, holds: ({ url }) => parseDatabaseUrl(url.reveal()) !== null },
    {
      about: ['listen_url'],
      text: urlForm,
      holds: ({ listen_url }) => listen_url === null || parseDatabaseUrl(listen_url.reveal()) !== null,
    },
    {
      about: ['schema'],
      text: 'must be of lower-case letters, digits and _, at most 63, and not begin with pg_ or a digit',
      holds: ({ schema }) => schemaName.test(schema) && !schema.startsWith('pg_'),
    },
  ],
};

const storeKeys = { postgres: postgres as typeof postgres } as const;

export const store: SectionOf<typeof storeKeys> = {
  kind: 'section',
  purpose: 'Where an authority keeps its records.',
  reload: 'restart',
  keys: storeKeys,
  rules: [],
};
