import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Daemon } from '../../../../src/daemon/daemon.ts';
import { startDaemon, type DaemonOptions } from '../../../../src/daemon/start.ts';
import { embeddedConfiguration } from '../../../../src/config/load.ts';
import type { PostgresServer } from './postgres.ts';
import { urlOf } from './postgres-url.ts';
import { silent } from '../../../support/silent-log.ts';
import { temporaryDirectory } from '../../../support/temporary.ts';

type Call = {
  method?: string;
  token?: string;
  headers?: Record<string, string>;
  body?: object;
  key?: string;
};

/** One node of an authority on PostgreSQL, as its callers see it. */
export interface AuthorityNode extends AsyncDisposable {
  readonly stateDir: string;
  readonly adminToken: string;
  /** Sends a request, by default with the admin token. A request with a body is a POST. */
  call(path: string, call?: Call): Promise<Response>;
  /** The content of `api.key`; null: there is no such file. */
  readonly apiKey: string | null;
  readonly daemon: Daemon;
}

/** Starts a node with its own state directory; `postgres` is merged into its `store.postgres`, `settings` into the rest. */
export async function startNode(
  server: Pick<PostgresServer, 'address'>,
  postgres: { schema: string } & Record<string, unknown>,
  { settings = {}, ...options }: Partial<DaemonOptions> & { settings?: object } = {},
): Promise<AuthorityNode> {
  await using starting = new AsyncDisposableStack();
  const stateDir = join(starting.use(temporaryDirectory()).path, 'state');
  const configuration = embeddedConfiguration({
    state_dir: stateDir,
    listen: { tcp: '127.0.0.1:0' },
    store: { postgres: { url: urlOf(server.address), pool: 4, ...postgres } },
    ...settings,
  });
  const daemon = await startDaemon(configuration, { log: silent, ...options });
  starting.defer(() => daemon.stop());
  const owned = starting.move();
  const read = (name: string): string => readFileSync(join(stateDir, name), 'utf8').trim();
  const adminToken = read('admin.token');
  return {
    stateDir,
    adminToken,
    daemon,
    get apiKey() {
      return existsSync(join(stateDir, 'api.key')) ? read('api.key') : null;
    },
    async call(path, { token, headers, body, key, method } = {}) {
      const credential = headers ?? { authorization: `Bearer ${token ?? adminToken}` };
      return await fetch(`${daemon.addresses.tcp}${path}`, {
        method: method ?? (body === undefined ? 'GET' : 'POST'),
        headers: {
          ...credential,
          ...(key !== undefined && { 'idempotency-key': key }),
          ...(body !== undefined && { 'content-type': 'application/json' }),
        },
        ...(body !== undefined && { body: JSON.stringify(body) }),
      });
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

/** Creates a product and sells it once; returns the license key. */
export async function sellOne(node: AuthorityNode): Promise<string> {
  await node.call('/admin/v1/products', { body: { name: 'Press', product_key: 'press' } });
  const sold = await node.call('/admin/v1/purchases', {
    body: { product_key: 'press', buyer_email: 'a@example.com' },
  });
  const answered = (await sold.json()) as { data: { license: { license_key: string } } };
  return answered.data.license.license_key;
}
