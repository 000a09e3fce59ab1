import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { Daemon } from '../../src/daemon/daemon.ts';
import { startDaemon } from '../../src/daemon/start.ts';
import { embeddedConfiguration } from '../../src/config/load.ts';
import { groupNumber } from '../../src/daemon/system/process.ts';
import type { Log } from '../../src/service/ports.ts';
import { httpClient } from '../support/network/raw-http.ts';
import { temporaryDirectory } from '../support/temporary.ts';

const isRoot = process.getuid?.() === 0;
const nowhere = (): void => undefined;
const silent: Log = { debug: nowhere, info: nowhere, warn: nowhere, error: nowhere };

/** A daemon in this process that listens on its own socket and on `sockets`. */
async function daemonOn(
  directory: string,
  sockets: readonly object[],
  log: Log = silent,
): Promise<Daemon & AsyncDisposable> {
  const listen = { tcp: false, socket: join(directory, 'latchkey.sock'), sockets };
  const daemon = await startDaemon(embeddedConfiguration({ state_dir: join(directory, 'state'), listen }), {
    log,
  });
  return Object.assign(daemon, { [Symbol.asyncDispose]: () => daemon.stop() });
}

function tokenIn(directory: string): string {
  return readFileSync(join(directory, 'state', 'admin.token'), 'utf8').trim();
}

function bearer(token: string): { authorization: string } {
  return { authorization: `Bearer ${token}` };
}

test('A socket with a grant serves its callers without a credential, within the scopes of the grant.', async () => {
  await using directory = temporaryDirectory();
  const till = join(directory.path, 'till.sock');
  const plain = join(directory.path, 'plain.sock');
  const sockets = [
    { path: till, mode: '0666', grant: { scopes: ['verify', 'use'] } },
    { path: plain, mode: '0660' },
  ];
  await using _daemon = await daemonOn(directory.path, sockets);
  expect([statSync(till).mode & 0o777, statSync(plain).mode & 0o777]).toEqual([0o666, 0o660]);
  await using granted = httpClient({ socket: till });
  await using ungranted = httpClient({ socket: plain });
  const verify = '/api/v2/license/verify?license_key=NONE';
  expect((await granted.get(verify)).status).toBe(404);
  expect((await ungranted.get(verify)).status).toBe(401);
  for (const path of ['/statusz', '/admin/v1/tokens', '/api/v2/coupons']) {
    expect([path, (await granted.get(path)).status]).toEqual([path, 403]);
    expect([path, (await ungranted.get(path)).status]).toEqual([path, 401]);
  }
  const headers = bearer(tokenIn(directory.path));
  for (const http of [granted, ungranted]) {
    const { status, body } = await http.get('/statusz', { headers });
    expect([status, body]).toMatchObject([200, { listeners: { sockets: [till, plain] } }]);
  }
});

test('The log names the sockets at the start.', async () => {
  await using directory = temporaryDirectory();
  const path = join(directory.path, 'till.sock');
  const ready: object[] = [];
  const info: Log['info'] = (fields, message) => void (message === 'ready' && ready.push(fields));
  await using daemon = await daemonOn(directory.path, [{ path }], { ...silent, info });
  expect(ready).toMatchObject([{ socket: daemon.addresses.socket, sockets: [path] }]);
});

test('A grant for a product covers the keys of that product alone.', async () => {
  await using directory = temporaryDirectory();
  const path = join(directory.path, 'till.sock');
  const sockets = [{ path, grant: { scopes: ['verify'], product: 'ours' } }];
  await using daemon = await daemonOn(directory.path, sockets);
  const headers = bearer(tokenIn(directory.path));
  await using admin = httpClient({ socket: daemon.addresses.socket ?? '' });
  await using granted = httpClient({ socket: path });
  for (const product of ['ours', 'theirs']) {
    const json = { name: product, product_key: product };
    await admin.post('/admin/v1/products', { headers, json });
    const purchase = { product_key: product, buyer_email: 'b@example.com', license_key: `KEY-${product}` };
    await admin.post('/admin/v1/purchases', { headers, json: purchase });
  }
  const verify = async (key: string): Promise<number> =>
    (await granted.get(`/api/v2/license/verify?license_key=${key}`)).status;
  expect([await verify('KEY-ours'), await verify('KEY-theirs')]).toEqual([200, 404]);
});

test.runIf(isRoot)('A socket gets its group before its mode allows the group.', async () => {
  await using directory = temporaryDirectory();
  const paths = ['named.sock', 'numbered.sock'].map((name) => join(directory.path, name));
  const sockets = paths.map((path, index) => ({ path, mode: '0660', group: ['daemon', '4242'][index] }));
  await using _daemon = await daemonOn(directory.path, sockets);
  const found = paths.map((path) => statSync(path));
  expect(found.map(({ gid, uid, mode }) => [gid, uid, mode & 0o777])).toEqual([
    [groupNumber('daemon'), 0, 0o660],
    [4242, 0, 0o660],
  ]);
});

test('A missing group ends the start, which leaves nothing open.', async () => {
  await using directory = temporaryDirectory();
  const path = join(directory.path, 'till.sock');
  const sockets = [{ path, mode: '0660', group: 'no-such-group' }];
  await expect(daemonOn(directory.path, sockets)).rejects.toThrow(
    'there is no group no-such-group in /etc/group: give its number instead',
  );
  expect(readdirSync(directory.path)).toEqual(['state']);
});

test.each(['ops', 'admin'])('%s cannot be granted to a socket', (scope) => {
  const sockets = [{ path: '/run/till.sock', grant: { scopes: [scope] } }];
  expect(() => embeddedConfiguration({ listen: { sockets } })).toThrow('listen.sockets[0].grant.scopes');
});

test('After a start, a replaced admin.token is accepted and the old token is refused.', async () => {
  await using directory = temporaryDirectory();
  const ask = async (token: string): Promise<number> => {
    await using _daemon = await daemonOn(directory.path, []);
    await using http = httpClient({ socket: join(directory.path, 'latchkey.sock') });
    return (await http.get('/statusz', { headers: bearer(token) })).status;
  };
  await ask('none');
  const first = tokenIn(directory.path);
  expect(await ask(first)).toBe(200);
  const file = join(directory.path, 'state', 'admin.token');
  expect(statSync(file).mode & 0o777).toBe(0o600);
  writeFileSync(file, 'lk_tok_of_the_operator\n');
  expect([await ask('lk_tok_of_the_operator'), await ask(first)]).toEqual([200, 401]);
});
