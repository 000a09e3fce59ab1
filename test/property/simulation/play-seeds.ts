import { simulate } from './simulation.ts';

export type Seeds = { from: number; seeds: number; steps: number; isAimed: boolean; isGumroad?: boolean };

/** Plays the seeds, and returns one line for each that breaks the promise, with the command that replays the seed. */
export async function playSeeds({
  from,
  seeds,
  steps,
  isAimed,
  isGumroad = false,
}: Seeds): Promise<string[]> {
  const violations: string[] = [];
  for (let seed = from; seed < from + seeds; seed += 1) {
    const violation = await simulate({ seed, steps, isAimed, isGumroad });
    const replay = `npm run simulate -- ${isAimed ? '--aimed ' : ''}${isGumroad ? '--gumroad ' : ''}--from ${seed} --seeds 1`;
    if (violation !== null) violations.push(`${violation} (replay with: ${replay})`);
  }
  return violations;
}
