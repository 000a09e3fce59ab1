import { copyFileSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { connect } from 'node:tls';
import { once } from 'node:events';
import { expect, test } from 'vitest';
import { runProcess } from '../support/process/command-line.ts';
import { freePort } from '../support/network/free-port.ts';
import { chapterOf, commandsIn, readExample } from '../support/reference/guides.ts';
import { OperatedMachine } from '../support/process/operated-machine.ts';
import { startPlainUpstream } from '../support/harness/plain-upstream.ts';
import { temporaryDirectory } from '../support/temporary.ts';

const upgrade = readExample('guides/upgrade.md');
const rotate = chapterOf(readExample('guides/maintain.md'), 'Rotate each secret');
const licenseKey = 'AAAAA-BBBBB-CCCCC-DDDDD';
const product = { productKey: 'RGsF', secret: 'the-product-secret' };

/** The status of a verify with a credential; the daemon looks up a key that it does not know. */
async function verify(machine: OperatedMachine, secret: string, key: string = licenseKey): Promise<number> {
  const answer = await fetch(`${machine.daemon.tcp}/api/v2/license/verify?license_key=${key}`, {
    headers: { 'product-secret-key': secret },
  });
  await answer.text();
  return answer.status;
}

async function admin(machine: OperatedMachine, path: string, body?: object): Promise<Response> {
  const token = readFileSync(join(machine.root, 'state', 'admin.token'), 'utf8').trim();
  return await fetch(`${machine.daemon.tcp}${path}`, {
    ...(body !== undefined && { method: 'POST', body: JSON.stringify(body) }),
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
  });
}

/** An authority with one product and one license key. */
async function startStore(root: string, port: number): Promise<OperatedMachine> {
  const store = new OperatedMachine(root, { listen: { tcp: `127.0.0.1:${port}`, socket: false } });
  await store.start();
  const { productKey: product_key, secret } = product;
  expect((await admin(store, '/admin/v1/products', { name: 'Editor', product_key, secret })).status).toBe(
    201,
  );
  const purchase = { product_key, buyer_email: 'b@example.com', license_key: licenseKey };
  expect((await admin(store, '/admin/v1/purchases', purchase)).status).toBe(201);
  return store;
}

/** The machine of an agent in front of a store; the secret is in a file. */
function agentMachine(root: string, base_url: string): OperatedMachine {
  return new OperatedMachine(root, {
    listen: { tcp: '127.0.0.1:0' },
    upstream: { base_url, probe: '1s' },
    products: [{ key: product.productKey, secret_file: join(root, 'rgsf.secret') }],
    sync: { reconcile_after: '1s', backoff: { first: '100ms', max: '1s' } },
  });
}

async function startAgent(root: string, base_url: string): Promise<OperatedMachine> {
  const agent = agentMachine(root, base_url);
  writeFileSync(join(root, 'rgsf.secret'), product.secret, { mode: 0o600 });
  await agent.start();
  return agent;
}

test('the operator guide rotates a product secret without a gap, at the authority and in an agent', async () => {
  await using directory = temporaryDirectory();
  await using store = await startStore(join(directory.path, 'store'), await freePort());
  await using agent = await startAgent(join(directory.path, 'agent'), store.daemon.tcp);
  expect(await verify(agent, product.secret)).toBe(200);
  const [first = '', ...afterwards] = commandsIn(chapterOf(rotate, 'A product secret'));
  await store.run(first, { KEY: product.productKey });
  const { secret } = store.answers.at(-1) as { secret: string };
  for (const each of [product.secret, secret]) expect(await verify(store, each)).toBe(200);

  writeFileSync(join(agent.root, 'rgsf.secret'), secret);
  for (const line of afterwards) await agent.run(line);
  expect(await verify(agent, secret)).toBe(200);
  expect(await verify(agent, product.secret)).toBe(401);
});

test('an agent whose secret was rotated at once continues when it has the new secret', async () => {
  await using directory = temporaryDirectory();
  await using store = await startStore(join(directory.path, 'store'), await freePort());
  await using agent = await startAgent(join(directory.path, 'agent'), store.daemon.tcp);
  await store.run('latchkey product rotate RGsF');
  const { secret } = store.answers.at(-1) as { secret: string };
  expect(await verify(agent, product.secret)).toBe(503);
  writeFileSync(join(agent.root, 'rgsf.secret'), secret);
  await agent.follow(chapterOf(rotate, 'The credentials of the upstream'));
  await expect.poll(() => verify(agent, secret)).toBe(200);
});

test('the operator guide rotates API keys, tokens and the admin token', async () => {
  await using directory = temporaryDirectory();
  await using store = await startStore(join(directory.path, 'store'), await freePort());
  const coupons = async (key: string): Promise<number> =>
    (await fetch(`${store.daemon.tcp}/api/v2/coupons`, { headers: { 'service-api-key': key } })).status;
  const before = readFileSync(join(store.root, 'state', 'api.key'), 'utf8').trim();
  await store.follow(chapterOf(rotate, 'An API key'), { ACCOUNT_ID: 'default' });
  const after = readFileSync(join(store.root, 'state', 'api.key'), 'utf8').trim();
  expect(after).not.toBe(before);
  expect([await coupons(before), await coupons(after)]).toEqual([200, 200]);

  await store.run('latchkey token issue --scope verify');
  const old = store.answers.at(-1) as { token_id: string; token: string };
  await store.follow(chapterOf(rotate, 'A token'), { TOKEN_ID: old.token_id, KEY: product.productKey });
  const { token } = store.answers.at(-2) as { token: string };
  expect([await verify(store, old.token), await verify(store, token)]).toEqual([401, 200]);

  const file = join(store.root, 'state', 'admin.token');
  const old_ = readFileSync(file, 'utf8').trim();
  await store.follow(chapterOf(rotate, 'The admin token'));
  expect(readFileSync(file, 'utf8').trim()).not.toBe(old_);
  const answer = await fetch(`${store.daemon.tcp}/admin/v1/tokens`, {
    headers: { authorization: `Bearer ${old_}` },
  });
  expect([answer.status, (await admin(store, '/admin/v1/tokens')).status]).toEqual([401, 200]);
});

test('the operator guide replaces a TLS certificate under a running process', async () => {
  await using directory = temporaryDirectory();
  const tls = join(directory.path, 'tls');
  await runProcess(['certificate', 'make', '--host', 'api.example.com', '--out', tls]);
  const files = { cert_file: join(tls, 'cert.pem'), key_file: join(tls, 'key.pem') };
  const port = await freePort();
  await using machine = new OperatedMachine(directory.path, {
    listen: { tcp: `127.0.0.1:${port}`, tls: files, allowed_hosts: ['api.example.com'] },
  });
  await machine.start();
  const shown = async (): Promise<string> => {
    const socket = connect({ host: '127.0.0.1', port, rejectUnauthorized: false });
    await once(socket, 'secureConnect');
    const { fingerprint256 } = socket.getPeerCertificate();
    socket.destroy();
    return fingerprint256;
  };
  const before = await shown();
  await machine.follow(chapterOf(rotate, 'A TLS certificate'));
  expect(await shown()).not.toBe(before);
});

test('an agent with unsent changes moves to another machine as the guide says, and the changes arrive once', async () => {
  await using directory = temporaryDirectory();
  await using store = await startPlainUpstream({
    apiKey: 'api-key',
    products: [product],
    licenses: [{ licenseKey, productKey: product.productKey, buyerEmail: 'b@example.com' }],
  });
  const [old, other] = ['old', 'new'].map((name) => join(directory.path, name)) as [string, string];
  const [leave = [], arrive = []] = moves();
  await using from = await startAgent(old, store.url);
  expect(await verify(from, product.secret)).toBe(200);
  await store.stop();
  const used = await fetch(`${from.daemon.tcp}/api/v2/license/usage`, {
    method: 'PUT',
    headers: { 'product-secret-key': product.secret, 'content-type': 'application/x-www-form-urlencoded' },
    body: `license_key=${licenseKey}`,
  });
  expect(used.status).toBe(200);
  for (const line of leave) await from.run(line);

  await using to = agentMachine(other, store.url);
  for (const name of ['latchkey-move.tar.gz', 'rgsf.secret'])
    copyFileSync(join(old, name), join(other, name));
  await store.start();
  for (const line of arrive) await to.run(line);
  await store.until(() => store.countsOf(licenseKey).usages === 1);
  expect(await verify(to, product.secret)).toBe(200);
  expect(store.countsOf(licenseKey).usages).toBe(1);
});

/** The guide's steps on the old machine and on the new machine. */
function moves(): string[][] {
  const commands = commandsIn(chapterOf(upgrade, 'Move to another machine'));
  const unpack = commands.findIndex((line) => line.includes(' -xzf '));
  return [commands.slice(0, unpack), commands.slice(unpack)];
}

test('the operator guide restores a backup', async () => {
  await using directory = temporaryDirectory();
  await using store = await startStore(join(directory.path, 'store'), await freePort());
  const commands = commandsIn(chapterOf(upgrade, 'Restore a backup'));
  const name = commands[1]?.split('/').at(-1) ?? '';
  await store.run(`latchkey backup ./${name}`);
  await store.run('latchkey purchase refund AAAAA-BBBBB-CCCCC-DDDDD');
  for (const line of commands) await store.run(line);
  await store.run(`latchkey license show ${licenseKey}`);
  expect(store.answers.at(-1)).toMatchObject({ license: { enabled: true } });
});
