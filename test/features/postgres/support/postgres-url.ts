import type { DatabaseAddress } from '../../../../src/features/postgres/store/client.ts';

/** The URL of a database for a configuration; `changes` is merged into its address. */
export function urlOf(address: DatabaseAddress, changes: Partial<DatabaseAddress> = {}): string {
  const { host, port, user, password, database } = { ...address, ...changes };
  const isSocket = host.startsWith('/');
  const name = isSocket ? 'localhost' : host;
  const how = isSocket ? `host=${encodeURIComponent(host)}` : 'sslmode=disable';
  return `postgres://${user}:${password}@${name}:${port}/${database}?${how}`;
}
