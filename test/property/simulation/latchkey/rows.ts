import type { Machine } from '../machine.ts';
import { LatchkeyWorld } from './world.ts';

/** A round takes a minute, and what is older than this is removed after each round. */
const roundMs = 60_000;
const keptRounds = 10;
/** For how long an authority keeps its answers to agents. */
const answersKeptMs = 30 * 24 * 3_600_000;

const authorityTables = ['sync_agent', 'idempotency', 'sync_follow', 'license_change', 'setting'];
const agentTables = ['outbox', 'follow', 'license_snapshot', 'setting'];

export type Rows = Record<string, number>;

/** Delivers uses round after round, and counts the rows of both sides at the end of each round. `counted`: by the authority. */
export async function playRounds(
  rounds: number,
  usesPerRound: number,
): Promise<{ rows: Rows[]; counted: number }> {
  using world = new LatchkeyWorld({ seed: 1, troubles: [], sabotage: null });
  world.faults.crashes = 0;
  await world.begin();
  const [site] = world.sites;
  if (site === undefined) throw new Error('there is no agent');
  const keys = [...world.keys];
  const rows: Rows[] = [];
  const clock = world.time.clock();
  const began = clock.now() - world.time.monotonic;
  for (let round = 0; round < rounds; round += 1) {
    for (let use = 0; use < usesPerRound; use += 1) site.change(keys[use % keys.length]?.[0] ?? '', 'usage');
    await world.pass(roundMs);
    const now = began + world.time.monotonic;
    await world.authority.prune(now - keptRounds * roundMs + answersKeptMs);
    await site.prune(now, keptRounds * roundMs);
    rows.push({ ...count(world.authority.machine, authorityTables), ...count(site.machine, agentTables) });
  }
  const counted = keys.reduce((sum, [key, before]) => sum + world.authority.license(key).uses - before, 0);
  return { rows, counted };
}

function count({ database }: Machine, tables: readonly string[]): Rows {
  const numbers = tables.map((table) => {
    const row = database.prepare(`SELECT count(*) AS count FROM ${table}`).get();
    return [table, Number(row?.['count'])] as const;
  });
  return Object.fromEntries(numbers);
}
