import { once } from 'node:events';
import { createServer } from 'node:net';
import { spawnSync } from 'node:child_process';
import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { openWriting } from '../../src/store/sqlite/connection.ts';
import { openStore } from '../../src/store/sqlite/files/open.ts';
import { latchkey, type Outcome } from '../support/process/command-line.ts';
import { isWindows } from '../support/platform.ts';
import { canMount } from '../support/process/small-disk.ts';
import { freePort } from '../support/network/free-port.ts';
import { temporaryDirectory } from '../support/temporary.ts';
import { account, product } from '../support/builders/store-builders.ts';

const agent = { upstream: { base_url: 'http://127.0.0.1:1', timeout: '1s' }, products: [] };

async function examine(directory: string, configuration: object): Promise<Outcome> {
  const file = join(directory, 'config.yaml');
  const text = { state_dir: join(directory, 'state'), listen: { tcp: '127.0.0.1:0' }, ...configuration };
  writeFileSync(file, JSON.stringify(text), { mode: 0o600 });
  return await latchkey('doctor', '--config', file);
}

/** A state directory of a daemon that was stopped. */
function leave(directory: string, role: 'agent' | 'authority', isUsed: boolean): void {
  using store = openStore({ directory: join(directory, 'state') });
  using connection = openWriting(store.databasePath);
  const { settings, accounts, products } = connection.transaction;
  settings.set('role', role);
  if (!isUsed) return;
  accounts.add(account, 'digest');
  products.add(product, 'digest');
}

test('doctor reports an address only if a start could not use it', async () => {
  await using directory = temporaryDirectory();
  const port = await freePort();
  const other = createServer().listen(port, '127.0.0.1');
  await once(other, 'listening');
  const tcp = `127.0.0.1:${port}`;
  const taken = await examine(directory.path, { listen: { tcp, socket: false } });
  expect([taken.code, taken.out]).toEqual([
    1,
    expect.stringContaining(`fail  a start cannot listen on ${tcp}: address already in use`) as string,
  ]);
  const second = await examine(directory.path, { listen: { tcp: ['127.0.0.1:0', tcp], socket: false } });
  expect(second.out).toContain(`fail  a start cannot listen on ${tcp}: address already in use`);
  other.close();
  await once(other, 'close');
  expect(await examine(directory.path, { listen: { tcp, socket: false } })).toMatchObject({ code: 0 });
  const elsewhere = await examine(directory.path, { listen: { tcp: '192.0.2.1:8787', allow_remote: true } });
  expect(elsewhere.out).toContain('a start cannot listen on 192.0.2.1:8787: address not available');
});

test('doctor reports a file at the path of the state directory', async () => {
  await using directory = temporaryDirectory();
  const state = join(directory.path, 'state');
  writeFileSync(state, '');
  const { code, out } = await examine(directory.path, {});
  expect(code).toBe(1);
  expect(out).toContain(`cannot read ${state}/listen.json: not a directory. It was looked for on ${state} `);
  expect(out).toContain(`${state}: not a directory  →  choose another state_dir: a file is in its place`);
});

test('doctor reports an unknown group of a socket', async () => {
  await using directory = temporaryDirectory();
  const socket = { path: join(directory.path, 'shop.sock'), mode: '0660', group: 'nobody-has-this' };
  const { code, out } = await examine(directory.path, {
    listen: { tcp: false, sockets: [{ ...socket, grant: { scopes: ['verify'] } }] },
  });
  expect([code, out]).toEqual([1, expect.stringContaining('there is no group nobody-has-this') as string]);
});

test('doctor reports a store of the other role', async () => {
  await using directory = temporaryDirectory();
  const refused = "is an authority's, but the configuration has an upstream  →  remove the upstream";
  leave(directory.path, 'authority', false);
  expect((await examine(directory.path, agent)).out).not.toContain(refused);
  leave(directory.path, 'authority', true);
  expect(await examine(directory.path, agent)).toMatchObject({
    code: 1,
    out: expect.stringContaining(refused) as string,
  });
  expect(await examine(directory.path, {})).toMatchObject({ code: 0 });
  leave(directory.path, 'agent', false);
  expect(await examine(directory.path, {})).toMatchObject({
    code: 1,
    out: expect.stringContaining("is an agent's, but the configuration has no upstream") as string,
  });
});

// Windows has no modes.
test.skipIf(isWindows).each([
  ['the state directory', '', 0o500],
  ['the database', 'latchkey.db', 0o400],
  ['the lock', 'latchkey.lock', 0o400],
])('doctor reports that %s cannot be written', async (_, name, mode) => {
  await using directory = temporaryDirectory();
  leave(directory.path, 'authority', false);
  const path = join(directory.path, 'state', name).replace(/\/$/, '');
  chmodSync(path, mode);
  const { code, out } = await examine(directory.path, {});
  chmodSync(path, 0o700);
  expect([code, out]).toEqual([
    1,
    expect.stringContaining(
      `fail  ${path} cannot be written: its mode forbids that  →  chmod u+rwX ${path}\n`,
    ),
  ]);
});

// Only root can mount a file system.
test.skipIf(!canMount)('doctor reports a state directory on a file system that is read-only', async () => {
  await using directory = temporaryDirectory();
  leave(directory.path, 'authority', false);
  const state = join(directory.path, 'state');
  spawnSync('mount', ['--bind', state, state]);
  expect(spawnSync('mount', ['-o', 'remount,bind,ro', state]).status).toBe(0);
  try {
    const { code, out } = await examine(directory.path, {});
    expect([code, out]).toEqual([
      1,
      expect.stringContaining(
        `fail  ${state} cannot be written: read-only file system  →  mount its file system writable: changes are refused\n`,
      ),
    ]);
  } finally {
    spawnSync('umount', [state]);
  }
});

test('config check prints what is not safe in the configuration', async () => {
  await using directory = temporaryDirectory();
  const file = join(directory.path, 'config.yaml');
  const upstream = { base_url: 'https://store.invalid', api_key: 'x' };
  writeFileSync(file, JSON.stringify({ state_dir: directory.path, upstream, products: [] }), { mode: 0o600 });
  const { code, out } = await latchkey('config', 'check', '--config', file);
  expect([code, out]).toEqual([
    0,
    expect.stringMatching(/^warn {2}upstream\.api_key: is shorter than 8 characters, so it can be guessed/m),
  ]);
});
