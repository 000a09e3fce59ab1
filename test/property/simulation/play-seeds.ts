import type { SimulatedStoreName } from './stores.ts';
import { simulate } from './simulation.ts';

export type Seeds = {
  from: number;
  seeds: number;
  steps: number;
  isAimed: boolean;
  store?: SimulatedStoreName;
};

/** Plays the seeds, and returns one line for each that breaks the promise, with the command that replays the seed. */
export async function playSeeds({ from, seeds, steps, isAimed, store }: Seeds): Promise<string[]> {
  const violations: string[] = [];
  for (let seed = from; seed < from + seeds; seed += 1) {
    const violation = await simulate({ seed, steps, isAimed, store: store ?? null });
    const replay = `npm run simulate -- ${isAimed ? '--aimed ' : ''}${store === undefined ? '' : `--store ${store} `}--from ${seed} --seeds 1`;
    if (violation !== null) violations.push(`${violation} (replay with: ${replay})`);
  }
  return violations;
}
