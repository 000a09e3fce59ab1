import { chmodSync, readdirSync, readFileSync } from 'node:fs';
import { mkdtemp } from 'node:fs/promises';
import { join } from 'node:path';
import { LocalClient } from '../../src/daemon/local-client.ts';
import { Database } from '../../src/features/postgres/store/database.ts';
import { startPostgres, type PostgresServer } from '../features/postgres/support/postgres.ts';
import type { Bench } from './bench.ts';
import { licenseKeyOf, productKey, secret } from './sample.ts';
import { startLatchkey, type Latchkey } from './server.ts';

/** The number of license keys. */
export const licenses = 1_000;

const schema = 'latchkey';

/** A PostgreSQL with its default durability, with an authority and a table for the references. */
export interface MeasuredDatabase extends AsyncDisposable {
  readonly authority: Latchkey;
  readonly url: string;
  /** A table like the authority's. Its keys are the numbers from 1: pgbench has no others. */
  readonly referenceTable: string;
  /** The authority's table, with the keys of `licenseKeyOf`. */
  readonly licenseTable: string;
  /** The processor time of all its processes in ms. Null: this system has no /proc. */
  readonly processorMs: () => number | null;
}

/** Starts a PostgreSQL on the same disk as the other stores. */
export async function startDatabase(bench: Bench): Promise<MeasuredDatabase> {
  // PostgreSQL runs as another user, who must be able to enter the directory.
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

/** The processor time of a process and its children, including children that have ended. */
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
    // Fields after the program name: state, parent, …; from the 12th on user and system time, own and of ended children.
    const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
    const ticks = fields.slice(11, 15).reduce((sum, field) => sum + Number(field), 0);
    return { pid, parent: Number(fields[1]), ticks };
  } catch {
    return null;
  }
}
