import type { Configuration } from '../../../config/configuration.ts';
import { readCertificates } from '../../../config/file/certificates.ts';
import { readNamedFile } from '../../../config/file/named-file.ts';
import { parseDatabaseUrl } from '../config/store.ts';
import type { DatabaseAddress } from '../store/client.ts';
import type { DatabaseSettings } from '../store/database.ts';
import { type LazyTrust, trustOnly, trustSystemAnd } from '../../../daemon/system/trust.ts';

/** The part of a configuration that names a database. */
export type PostgresSettings = NonNullable<Configuration['store']['postgres']>;

/** The settings of the store on PostgreSQL. Throws if `ca_file` cannot be read. */
export function databaseSettings(postgres: PostgresSettings): DatabaseSettings {
  const { listenUrl, schema, pool, statementTimeoutMs } = postgres;
  const address = addressOf(postgres);
  const isBehindPooler = listenUrl !== null;
  return { address, schema, pool, statementTimeoutMs, isBehindPooler, afterTurn: setImmediate };
}

/** The address in `url`, perhaps of a pooler. */
export function addressOf(postgres: PostgresSettings): DatabaseAddress {
  return addressAt(postgres.url, postgres);
}

/** The address of the database itself, without a pooler. */
export function directAddressOf(postgres: PostgresSettings): DatabaseAddress {
  return addressAt(postgres.listenUrl ?? postgres.url, postgres);
}

function addressAt(url: PostgresSettings['url'], { caFile }: PostgresSettings): DatabaseAddress {
  const location = parseDatabaseUrl(url.reveal());
  if (location === null) throw new Error('the configuration has a database URL that cannot be read');
  const { isSecure, ...at } = location;
  return { ...at, tls: isSecure ? { trust: caFile === null ? trustSystem : trustFile(caFile) } : null };
}

const trustSystem = trustSystemAnd();

function trustFile(path: string): LazyTrust {
  const read = readCertificates(path, readNamedFile);
  if (!read.ok) throw new Error(read.text);
  return trustOnly(read.pem);
}
