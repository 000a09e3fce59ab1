import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { postgresProgram } from '../../features/postgres/support/postgres.ts';
import { output } from '../process.ts';

/** Transactions with one UPDATE of a random key, by several clients with a connection each. */
export type Updates = {
  readonly url: string;
  readonly table: string;
  readonly keys: number;
  readonly clients: number;
  readonly seconds: number;
};

/** The number of transactions, in total and per second. */
export type Transactions = { readonly count: number; readonly perSecond: number };

/** Its time includes connecting the clients, which may take long; its rate does not. */
const connectSeconds = [1, 4, 16];

const processed = /actually processed: (\d+)/;

/** The result of PostgreSQL's own load generator with prepared statements. */
export async function runUpdates({ url, table, keys, clients, seconds }: Updates): Promise<Transactions> {
  const directory = mkdtempSync(join(tmpdir(), 'latchkey-pgbench-'));
  try {
    const script = join(directory, 'update.sql');
    writeFileSync(
      script,
      `\\set key random(1, ${keys})
BEGIN;
UPDATE ${table} SET uses = uses + 1 WHERE license_key = :key RETURNING uses;
COMMIT;
`,
    );
    const options = ['--no-vacuum', '--protocol=prepared', `--client=${clients}`, `--file=${script}`];
    let text = '';
    for (const connecting of connectSeconds) {
      const time = `--time=${Math.max(1, seconds) + connecting}`;
      text = await output([postgresProgram('pgbench'), ...options, time, url]);
      if (numberIn(text, processed) > 0) break;
    }
    return { count: numberIn(text, processed), perSecond: numberIn(text, /^tps = ([\d.]+)/m) };
  } finally {
    rmSync(directory, { recursive: true });
  }
}

function numberIn(text: string, pattern: RegExp): number {
  const found = pattern.exec(text)?.[1];
  if (found === undefined) throw new Error(`pgbench printed: ${text}`);
  return Number(found);
}
