import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { openWriting } from '../../src/store/sqlite/connection.ts';
import { openStore } from '../../src/store/sqlite/files/open.ts';
import type { Transaction } from '../../src/service/tables.ts';
import { buildCoupon } from '../support/builders/coupon-builders.ts';
import { latchkey } from '../support/process/command-line.ts';
import { buildOperation } from '../support/builders/operation-builders.ts';
import { account, buildLicense, product, buildToken } from '../support/builders/store-builders.ts';
import { temporaryDirectory } from '../support/temporary.ts';

/** Leaves a state directory behind as a daemon that was stopped does. */
function leave(directory: string, fill: (transaction: Transaction) => void): void {
  using store = openStore({ directory });
  using connection = openWriting(store.databasePath);
  fill(connection.transaction);
}

test('state show lists the unsent changes of a stopped agent, and --check fails', async () => {
  await using directory = temporaryDirectory();
  leave(directory.path, ({ settings, operations }) => {
    settings.set('role', 'agent');
    operations.add(buildOperation());
    operations.add(buildOperation());
    operations.add(buildOperation({ progress: { state: 'dead', cause: 'refused' } }));
    operations.add(buildOperation({ progress: { state: 'delivered', finishedAt: 1 } }));
  });
  const shown = await latchkey('state', 'show', '--state-dir', directory.path);
  expect(shown).toEqual({
    code: 0,
    out: `With ${directory.path} would be lost:\n  changes that the upstream has not accepted: 2 pending, 1 dead\n`,
    err: '',
  });
  expect(await latchkey('state', 'show', '--check', '--state-dir', directory.path)).toEqual({
    ...shown,
    code: 1,
  });
  const json = await latchkey('state', 'show', '--json', '--state-dir', directory.path);
  expect(JSON.parse(json.out)).toEqual({
    state_dir: directory.path,
    role: 'agent',
    unfinished: { pending: 2, in_flight: 0, uncertain: 0, conflicted: 0, dead: 1 },
    unconfirmed_uses: 0,
    products: 0,
    licenses: 0,
    purchases: 0,
    collections: 0,
    coupons: 0,
    redemptions: 0,
    accounts: 0,
    tokens: 0,
    leases: 0,
    replaced: [],
  });
});

test('state show lists each kind of record of an authority, and one record makes --check fail', async () => {
  const kept: readonly [string, (transaction: Transaction) => void][] = [
    [
      'collections: 1',
      ({ collections }) =>
        collections.add({ collectionId: 'c', accountId: 'default', name: 'All', productKeys: [] }),
    ],
    ['coupons: 1', ({ coupons }) => void coupons.add('default', buildCoupon())],
    ['accounts besides the first: 1', ({ accounts }) => accounts.add({ ...account, accountId: 'b' }, 'b')],
    ['tokens: 1', ({ tokens }) => tokens.add(buildToken(), 'token')],
  ];
  for (const [line, add] of kept) {
    await using directory = temporaryDirectory();
    leave(directory.path, (transaction) => {
      transaction.accounts.add(account, 'digest');
      add(transaction);
    });
    expect(await latchkey('state', 'show', '--check', '--state-dir', directory.path)).toMatchObject({
      code: 1,
      out: `With ${directory.path} would be lost:\n  ${line}\n`,
    });
  }
});

test('state show counts the tokens of an agent, without expired tokens and the admin token', async () => {
  await using directory = temporaryDirectory();
  leave(directory.path, ({ settings, tokens }) => {
    settings.set('role', 'agent');
    tokens.add(buildToken({ tokenId: 'admin.token' }), 'admin');
    tokens.add(buildToken({ tokenId: 'ended', expiresAt: Date.now() - 1 }), 'ended');
  });
  const check = () => latchkey('state', 'show', '--check', '--state-dir', directory.path);
  expect((await check()).code).toBe(0);
  const living = buildToken({ expiresAt: Date.now() + 60_000 });
  leave(directory.path, ({ tokens }) => tokens.add(living, 'lives'));
  expect(await check()).toMatchObject({
    code: 1,
    out: `With ${directory.path} would be lost:\n  tokens: 1\n`,
  });
});

test('state show lists the products of an authority, and databases replaced by a restore', async () => {
  await using directory = temporaryDirectory();
  leave(directory.path, ({ accounts, products, licenses }) => {
    accounts.add(account, 'digest');
    products.add(product, 'digest');
    licenses.add(buildLicense());
  });
  const aside = join(directory.path, 'latchkey.db.replaced-2');
  writeFileSync(aside, '');
  writeFileSync(`${aside}-wal`, '');
  const { code, out } = await latchkey('state', 'show', '--check', '--state-dir', directory.path);
  expect({ code, lines: out.split('\n').slice(1, -1) }).toEqual({
    code: 1,
    lines: ['  products: 1', '  license keys: 1', `  database replaced by a restore: ${aside}`],
  });
});

test('state show reports no loss for an empty or missing directory', async () => {
  await using directory = temporaryDirectory();
  const state = join(directory.path, 'state');
  for (const make of [() => undefined, () => mkdirSync(state), () => leave(state, () => undefined)]) {
    make();
    expect(await latchkey('state', 'show', '--check', '--state-dir', state)).toMatchObject({
      code: 0,
      out: `Nothing would be lost with ${state}.\n`,
    });
  }
});

test('state show does not call a directory empty if it cannot read it', async () => {
  await using directory = temporaryDirectory();
  writeFileSync(join(directory.path, 'latchkey.db'), 'SQLite is something else');
  const { code, err } = await latchkey('state', 'show', '--state-dir', directory.path);
  expect(code).toBe(1);
  expect(err).toContain('latchkey: cannot read ');
});
