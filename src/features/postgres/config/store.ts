import { z } from 'zod';
import type { FeatureSection } from '../../../config/core-sections.ts';
import { readCertificates } from '../../../config/file/certificates.ts';
import { rule, section } from '../../../config/section.ts';
import { count, optional, path, secret, secretFile, text, wait } from '../../../config/setting-types.ts';
import { hostOf, isLoopback } from '../../../config/value/address.ts';

const urlForm =
  'must be postgres://user@host:port/database with one parameter at most: sslmode=verify-full, sslmode=disable (on this machine only), or host=/directory for a Unix socket';

const schemaName = /^[a-z_][a-z0-9_]{0,62}$/;

const postgres = section(
  z
    .strictObject({
      url: secret.meta({
        description:
          'Where the database is: `postgres://user:password@host:5432/database`, or `postgres://user@localhost/database?host=/run/postgresql` for a Unix socket. TLS is used and the certificate verified, unless the host is a socket, or is this machine and the URL ends in `?sslmode=disable`.',
      }),
      url_file: secretFile('url'),
      listen_url: optional(secret).meta({
        description:
          'The URL of the same database past a pooler. It is needed if `url` leads through one that lends connections for single transactions (PgBouncer in transaction mode), because each node listens there for the changes of other nodes. If omitted, nodes listen at `url`.',
      }),
      listen_url_file: secretFile('listen_url'),
      schema: text.prefault('latchkey').meta({
        description: 'The schema of the tables. The first start or `latchkey store move` creates it.',
      }),
      pool: count.prefault(16).meta({
        description:
          'The maximum number of connections of this process, besides one for listening; all nodes together must stay below `max_connections`.',
        unit: 'connections',
      }),
      statement_timeout: wait
        .prefault('5s')
        .meta({ description: 'How long a statement may take before it is cancelled.' }),
      ca_file: optional(path).meta({
        description:
          'The certificate (PEM) of the authority that signed the certificate of the server; no other authority is trusted then. If omitted, the authorities of the system and of Node are trusted.',
      }),
    })
    .refine(({ url }) => parseDatabaseUrl(url.reveal()) !== null, rule(['url'], urlForm))
    .refine(
      ({ listen_url }) => listen_url === null || parseDatabaseUrl(listen_url.reveal()) !== null,
      rule(['listen_url'], urlForm),
    )
    .refine(
      ({ schema }) => schemaName.test(schema) && !schema.startsWith('pg_'),
      rule(
        ['schema'],
        'must consist of at most 63 lower-case letters, digits and _, and not begin with pg_ or a digit',
      ),
    ),
);

const store = section(
  z.strictObject({
    postgres: optional(postgres).meta({
      description:
        'A PostgreSQL database (15 or later) that any number of nodes of an authority share. If omitted, the data is in `state_dir`, for a single process.',
    }),
  }),
).meta({ description: 'Where an authority keeps its data.', reload: 'restart' });

export type StoreSettings = z.output<typeof store>;

declare module '../../../config/core-sections.ts' {
  interface SectionsOfFeatures {
    readonly store: StoreSettings;
  }
}

export const storeSection: FeatureSection = {
  name: 'store',
  before: 'listen',
  type: store.prefault({}),
  rules: [
    {
      keeps: (input) => input.store.postgres === null || input.upstream === null,
      or: rule(
        ['store', 'upstream'],
        'is only for an authority: remove it, since an agent keeps its data in state_dir',
      ),
    },
  ],
  check({ store: { postgres: configured } }, readFile) {
    const caFile = configured?.caFile ?? null;
    const read = caFile === null ? null : readCertificates(caFile, readFile);
    return read === null || read.ok ? [] : [{ at: ['store', 'postgres', 'ca_file'], text: read.text }];
  },
};

type DatabaseLocation = {
  /** A name or an address, or the directory of a Unix socket. */
  host: string;
  port: number;
  user: string;
  password: string;
  database: string;
  /** Whether the connection uses TLS and verifies the certificate and the name of the server. */
  isSecure: boolean;
};

const usualPort = 5432;

/**
 * Reads a URL such as `postgres://user:password@host:5432/database?sslmode=verify-full`, or `postgres://user@localhost/database?host=/run/postgresql`
 * for a Unix socket; null if the URL is not valid. The connection uses TLS with the certificate verified, unless the URL says
 * `sslmode=disable` and the host is this machine, or the host is a socket. The environment is ignored.
 */
export function parseDatabaseUrl(written: string): DatabaseLocation | null {
  const url = URL.parse(written);
  if (url === null || !['postgres:', 'postgresql:'].includes(url.protocol)) return null;
  const { host: socket = null, sslmode = 'verify-full', ...others } = Object.fromEntries(url.searchParams);
  if (Object.keys(others).length > 0) return null;
  const parts = partsOf(url);
  const host = socket ?? hostOf(url);
  const isSocket = host.startsWith('/');
  if (host === '' || parts === null || parts.user === '' || parts.database === '') return null;
  if (!isSocket && sslmode !== 'verify-full' && (sslmode !== 'disable' || !isLoopback(host))) return null;
  const port = url.port === '' ? usualPort : Number(url.port);
  return { ...parts, host, port, isSecure: !isSocket && sslmode === 'verify-full' };
}

function partsOf(url: URL): Pick<DatabaseLocation, 'user' | 'password' | 'database'> | null {
  try {
    return {
      user: decodeURIComponent(url.username),
      password: decodeURIComponent(url.password),
      database: decodeURIComponent(url.pathname.slice(1)),
    };
  } catch {
    return null;
  }
}
