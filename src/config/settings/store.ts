import { parseDatabaseUrl } from '../value/database-url.ts';
import type { SectionOf } from '../description.ts';

const postgresKeys = {
  url: {
    kind: 'secret',
    purpose:
      'Where the database is: `postgres://user:password@host:5432/database`, or `postgres://user@localhost/database?host=/run/postgresql` for a Unix socket. TLS is used and the certificate verified, unless the host is a socket, or is this machine and the URL ends in `?sslmode=disable`.',
  },
  listen_url: {
    kind: 'secret',
    default: null,
    purpose:
      'The URL of the same database past a pooler. It is needed if `url` leads through one that lends connections for single transactions (PgBouncer in transaction mode), because each copy listens there for changes that others make. If omitted, they listen at `url`.',
  },
  schema: {
    kind: 'text',
    default: 'latchkey',
    purpose: 'The schema of its tables, which the first start or `latchkey store move` creates.',
  },
  pool: {
    kind: 'count',
    default: 16,
    unit: 'connections',
    purpose:
      'The maximum number of connections of this process, besides one for listening; all copies together must stay below `max_connections`.',
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
      'The certificate (PEM) of the authority that signed the server’s; no other is trusted then. If omitted, those of the system and those that Node contains.',
  },
} as const;

const urlForm =
  'must be postgres://user@host:port/database, with sslmode=verify-full, or disable on this machine, as its only parameter (a Unix socket: ?host=/its/directory)';

const schemaName = /^[a-z_][a-z0-9_]{0,62}$/;

const postgres: SectionOf<typeof postgresKeys> & { readonly optional: true } = {
  kind: 'section',
  purpose:
    'A PostgreSQL database (15 or later) that any number of copies of an authority share. If omitted, the records are in `state_dir`, for one process alone.',
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
      text: 'must consist of at most 63 lower-case letters, digits and _, and not begin with pg_ or a digit',
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
