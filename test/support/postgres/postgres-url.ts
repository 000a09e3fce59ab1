import type { DatabaseAddress } from '../../../src/store/postgres/client.ts';

/** The URL by which a configuration names a database; `changes` is laid over its address. */
export function urlOf(address: DatabaseAddress, changes: Partial<DatabaseAddress> = {}): string {
  const { host, port, user, password, database } = { ...address, ...changes };
  const isSocket = host.startsWith('/');
  const name = isSocket ? 'localhost' : host;
  const how = isSocket ? `host=${encodeURIComponent(host)}` : 'sslmode=disable';
  return `postgres://${user}:${password}@${name}:${port}/${database}?${how}`;
}
