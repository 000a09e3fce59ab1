import { chmodSync, readdirSync, readFileSync } from 'node:fs';
import { mkdtemp } from 'node:fs/promises';
import { join } from 'node:path';
import { LocalClient } from '../../src/daemon/sandbox/client.ts';
import { Database } from '../../src/store/postgres/database.ts';
import { startPostgres, type PostgresServer } from '../support/postgres/postgres.ts';
import type { Bench } from './bench.ts';
import { licenseKeyOf } from './license-keys.ts';
import { productKey, secret } from './sample.ts';
import { startLatchkey, type Latchkey } from './server.ts';

/** How many license keys there are. */
export const licenses = 1_000;

const schema = 'latchkey';

/** A PostgreSQL as durable as it comes, with an authority on it, and a table for references. */
export interface MeasuredDatabase extends AsyncDisposable {
  readonly authority: Latchkey;
  readonly url: string;
  /** As the authority's; its keys are the numbers from 1, because pgbench has no others. */
  readonly referenceTable: string;
  /** The authority's own, with the keys of `licenseKeyOf`. */
  readonly licenseTable: string;
  /** The processor time that all its processes have had so far, in ms; null where /proc is not there. */
  readonly processorMs: () => number | null;
}

/** Starts one on the disk that the other stores are measured on. */
export async function startDatabase(bench: Bench): Promise<MeasuredDatabase> {
  // It runs as a user of its own, who has to get there.
  chmodSync(bench.directory, 0o711);
  await using starting = new AsyncDisposableStack();
  const server = starting.use(await startPostgres({ below: bench.directory, sharedBuffers: '128MB' }));
  const { port, user, password, database } = server.address;
  const url = `postgres://${user}:${password}@127.0.0.1:${port}/${database}?sslmode=disable`;
  const state = await mkdtemp(join(bench.directory, 'state-'));
  const settings = { store: { postgres: { url, schema } } };
  const authority = starting.use(await startLatchkey(bench, { state, settings }));
  await addProduct(authority);
  const licenseTable = `${schema}.license`;
  const referenceTable = 'reference.license';
  await fill(server, { licenseTable, referenceTable });
  const owned = starting.move();
  return {
    authority,
    url,
    licenseTable,
    referenceTable,
    processorMs: () => processorMs(server.pid()),
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

async function addProduct({ tcp, admin }: Latchkey): Promise<void> {
  const client = new LocalClient(`http://127.0.0.1:${tcp.port}`, admin);
  const product = { name: 'Measured product', product_key: productKey, secret };
  const { status, body } = await client.postJson('/admin/v1/products', product);
  if (status >= 300) throw new Error(`the product was refused: ${JSON.stringify(body)}`);
}

async function fill(
  server: PostgresServer,
  { licenseTable, referenceTable }: Pick<MeasuredDatabase, 'licenseTable' | 'referenceTable'>,
): Promise<void> {
  await using database = new Database(server.settings({ pool: 1 }));
  const keys = Array.from({ length: licenses }, (_, number) => licenseKeyOf(number));
  const columns = 'license_key, product_key, buyer_email, uses, enabled, created_at';
  await database.query(
    `INSERT INTO ${licenseTable} (${columns})
     SELECT key, $2, 'buyer@example.com', 0, true, 1767225600000 FROM unnest($1::text[]) AS key`,
    [keys, productKey],
  );
  await database.query('CREATE SCHEMA reference');
  await database.query(`CREATE TABLE ${referenceTable} (LIKE ${licenseTable} INCLUDING ALL)`);
  await database.query(
    `INSERT INTO ${referenceTable} (${columns})
     SELECT key::text, $2, 'buyer@example.com', 0, true, 1767225600000 FROM generate_series(1, $1) AS key`,
    [licenses, productKey],
  );
  await database.query('VACUUM ANALYZE');
}

/** Of a process, and of its children, also of those that have ended. */
function processorMs(parent: number): number | null {
  try {
    const stats = readdirSync('/proc')
      .filter((name) => /^\d+$/.test(name))
      .map((pid) => statOf(Number(pid)));
    const ofServer = stats.filter((stat) => stat !== null && (stat.pid === parent || stat.parent === parent));
    return ofServer.reduce((sum, stat) => sum + (stat?.ticks ?? 0), 0) * msPerTick;
  } catch {
    return null;
  }
}

const msPerTick = 10;

function statOf(pid: number): { pid: number; parent: number; ticks: number } | null {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'latin1');
    // After the name of the program: state, parent, … and from the 12th on, user and system time, own and of those that have ended.
    const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
    const ticks = fields.slice(11, 15).reduce((sum, field) => sum + Number(field), 0);
    return { pid, parent: Number(fields[1]), ticks };
  } catch {
    return null;
  }
}
