import { expect, test } from 'vitest';
import { playRounds } from './rows.ts';

const rounds = 40;
const usesPerRound = 50;

test(
  `the rows of both sides do not grow while ${rounds * usesPerRound} uses are delivered`,
  { timeout: 1_800_000 },
  async () => {
    const { rows, counted } = await playRounds(rounds, usesPerRound);
    expect(counted).toBe(rounds * usesPerRound);
    // After the time for which outcomes and finished operations are kept, as many are removed as are added.
    expect(rows.at(-1)).toEqual(rows[20]);
    expect(rows.at(-1)).toMatchObject({ sync_agent: 1, follow: 1 });
  },
);
