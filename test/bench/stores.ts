import { cp, mkdtemp } from 'node:fs/promises';
import { join } from 'node:path';
import type { Bench } from './bench.ts';
import { LocalClient } from '../../src/daemon/local-client.ts';
import { systemRandom } from '../../src/daemon/system/machine.ts';
import { currentRun } from '../../src/service/lifecycle/run-count.ts';
import type { Transaction } from '../../src/service/tables.ts';
import { checkpoint, openWriting } from '../../src/store/sqlite/connection.ts';
import { openStore } from '../../src/store/sqlite/files/open.ts';
import { buildOperation } from '../support/builders/operation-builders.ts';
import { licenseKeyOf, productKey, secret } from './sample.ts';
import { startBare, startLatchkey } from './server.ts';
import { buildLicense } from '../support/builders/store-builders.ts';

/** The contents of a store. */
export type StoreContents = {
  readonly role: 'authority' | 'agent';
  /** The number of license keys, from number 0. */
  readonly licenses: number;
  /** The waiting uses of an agent, each of another key, from number 0. */
  readonly waiting?: number;
  /** Whether each license of an authority has a purchase, one per millisecond until `lastSaleAt`. */
  readonly areSold?: boolean;
};

/** The time of the last purchase of a store, in epoch ms. */
export const lastSaleAt: number = Date.UTC(2026, 0, 1);

const refreshMs = 6 * 3_600_000;

/** Copies a store, which is created once per run for the same contents. Gives the state directory of the copy. */
export async function copyOfStore(bench: Bench, contents: StoreContents): Promise<string> {
  const key = JSON.stringify(contents);
  const made = bench.stores.get(key) ?? makeStore(bench, contents);
  bench.stores.set(key, made);
  const from = await made;
  const directory = await mkdtemp(join(bench.directory, 'state-'));
  await cp(from, directory, { recursive: true });
  moveTo(directory, from);
  return directory;
}

/**
 * Makes a copy look like an original. Otherwise an agent treats the waiting changes of a copied store as uncertain, and
 * reads each key from an upstream at another address before it answers.
 */
function moveTo(directory: string, from: string): void {
  using store = openStore({ directory });
  using writing = openWriting(store.databasePath);
  const { settings } = writing.transaction;
  const place = settings.get('place');
  if (place !== null) settings.set('place', place.replace(from, directory));
  writing.database.exec("DELETE FROM setting WHERE name = 'upstream'");
}

/** The program creates an empty store with its product. Then the tables are filled in one transaction. */
async function makeStore(bench: Bench, contents: StoreContents): Promise<string> {
  const directory = await emptyStore(bench, contents);
  using store = openStore({ directory });
  using writing = openWriting(store.databasePath);
  // This store may be lost, so it does not wait for the disk.
  writing.database.exec('PRAGMA synchronous = OFF; PRAGMA cache_size = -262144; BEGIN');
  if (contents.role === 'authority') fillAuthority(writing.transaction, contents);
  else fillAgent(writing.transaction, contents);
  if (contents.areSold === true) {
    writing.database.exec(`INSERT INTO purchase (purchase_id, license_key, created_at)
      SELECT 'p-' || license_key, license_key, ${lastSaleAt} - row_number() OVER () FROM license`);
  }
  writing.database.exec('COMMIT');
  checkpoint(writing);
  return directory;
}

async function emptyStore(bench: Bench, { role, licenses }: StoreContents): Promise<string> {
  if (licenses > 0) return await copyOfStore(bench, { role, licenses: 0 });
  const directory = await mkdtemp(join(bench.directory, 'store-'));
  await takeIntoUse(bench, directory, role);
  return directory;
}

async function takeIntoUse(bench: Bench, state: string, role: StoreContents['role']): Promise<void> {
  if (role === 'agent') {
    await using upstream = await startBare(bench);
    await using agent = await startLatchkey(bench, { state, upstream: upstream.tcp });
    void agent;
    return;
  }
  await using authority = await startLatchkey(bench, { state });
  const admin = new LocalClient(`http://127.0.0.1:${authority.tcp.port}`, authority.admin);
  const product = { name: 'Measured product', product_key: productKey, secret };
  const { status, body } = await admin.postJson('/admin/v1/products', product);
  if (status >= 300) throw new Error(`the product was refused: ${JSON.stringify(body)}`);
}

function fillAuthority({ licenses }: Transaction, contents: StoreContents): void {
  const createdAt = Date.now();
  for (const [index, licenseKey] of sortedKeys(contents.licenses).entries()) {
    licenses.add(buildLicense({ licenseKey, productKey, buyerEmail: buyerOf(index), createdAt }));
  }
}

/** Every key was read just now, so the waiting uses can be sent without a read. */
function fillAgent(transaction: Transaction, { licenses, waiting = 0 }: StoreContents): void {
  const now = Date.now();
  const run = currentRun(transaction) + 1;
  const changed = new Set(Array.from({ length: waiting }, (_, number) => licenseKeyOf(number)));
  for (const [index, licenseKey] of sortedKeys(licenses).entries()) {
    const pending = changed.has(licenseKey) ? 1 : 0;
    transaction.snapshots.put({
      license: buildLicense({ licenseKey, productKey, buyerEmail: buyerOf(index), createdAt: now }),
      local: { uses: pending, enabled: true, pending },
      productId: productKey,
      confirmedAt: now,
      run,
      manyWriters: false,
      missingSince: null,
      gone: false,
      readFirst: false,
      askedAt: now,
      refreshAt: now + refreshMs,
    });
  }
  for (const subject of changed) addUse(transaction, subject, now);
}

function addUse({ operations }: Transaction, subject: string, now: number): void {
  const credential = `product:${productKey}`;
  operations.add(
    buildOperation({
      id: systemRandom.uuid(now),
      subject,
      productId: productKey,
      createdAt: now,
      credential,
      nextAt: now,
    }),
  );
}

const sorted = new Map<number, readonly string[]>();

/** Sorted in the order of the table, which is fastest to write. */
function sortedKeys(count: number): readonly string[] {
  const keys = sorted.get(count) ?? Array.from({ length: count }, (_, number) => licenseKeyOf(number)).sort();
  sorted.set(count, keys);
  return keys;
}

/** In the same order. */
function buyerOf(index: number): string {
  return `buyer-${String(index).padStart(7, '0')}@example.com`;
}
