import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { latchkeyTroubles } from './latchkey/trouble.ts';
import type { LatchkeyTroubleName } from './latchkey/world.ts';
import { playFleet, type FleetCost } from './latchkey/fleet.ts';
import { simulateLatchkey } from './latchkey/play.ts';
import { simulatedStores, type SimulatedStoreName } from './stores.ts';
import { simulateActivations } from './activations/play.ts';
import { simulate } from './simulation.ts';
import { sabotages, type SabotageName } from './sabotage.ts';
import { troubles } from './trouble.ts';
import type { TroubleName } from './world.ts';

/** More seeds than this go to processes of their own: what dead agents still wait for is never freed. */
const seedsOfAProcess = 250;

/**
 * `npm run simulate -- --seeds 10000`: plays many seeds; prints those that fail, which replay by `--from N --seeds 1`.
 * With `--aimed` each seed makes two troubles meet, such as a restore and a listing; without, the troubles of a seed are
 * drawn. With `--store gumroad` or `polar` the upstream is that store (at-store.ts); with `--store lemonsqueezy` programs
 * activate license keys there (activations/play.ts). `--troubles people,wait` plays all seeds under these, `--sabotage NAME`
 * with a corrupted protocol. `--latchkey`: the upstream is a Latchkey that speaks `/sync/v1`, with troubles of its own. `--fleet 1000`: what an agent costs in fleets of
 * 10, 100 and 1,000 agents at one authority.
 */
const usage = `npm run simulate -- [--seeds N] [--from N] [--steps N] [--aimed] [--store NAME] [--latchkey]
  [--troubles NAME,NAME] [--sabotage NAME] [--fleet N]
See the comment in test/property/simulation/main.ts`;
const values = readArguments();
if (values.help) {
  process.stdout.write(`${usage}\n`);
  process.exit();
}
const [from, seeds, steps] = [values.from, values.seeds, values.steps].map(readCount) as [
  number,
  number,
  number,
];
const named = values.troubles?.split(',') ?? null;
const chosen = values.latchkey ? null : (named?.filter(isTrouble) ?? null);
const chosenLatchkey = values.latchkey ? (named?.filter(isLatchkeyTrouble) ?? null) : null;
const sabotage = values.sabotage === undefined ? null : sabotages[readSabotage(values.sabotage)];
/** It counts no uses, so it has a simulation of its own. */
const hasActivations = values.store === 'lemonsqueezy';
const store = values.store === undefined || hasActivations ? null : readStore(values.store);
if (values.fleet !== undefined) {
  await measureFleets(readCount(values.fleet));
  process.exit();
}
const failed = seeds > seedsOfAProcess ? await playApart() : await playHere();
if (process.send === undefined) {
  process.stdout.write(`${seeds - failed} of ${seeds} seeds held, ${steps} operations each\n`);
} else {
  process.send(failed);
}
process.exitCode = failed === 0 ? 0 : 1;

async function playSeed(seed: number): Promise<string | null> {
  if (hasActivations) return await simulateActivations({ seed, steps });
  return values.latchkey
    ? await simulateLatchkey({ seed, steps, troubles: chosenLatchkey })
    : await simulate({ seed, steps, troubles: chosen, sabotage, isAimed: values.aimed, store });
}

async function playHere(): Promise<number> {
  let count = 0;
  for (let seed = from; seed < from + seeds; seed += 1) {
    const violation = await playSeed(seed);
    if (violation !== null) {
      count += 1;
      process.stdout.write(`seed ${seed}: ${violation}\n`);
    }
  }
  return count;
}

/** Distributes ranges of seeds to one process per processor. */
async function playApart(): Promise<number> {
  const starts = Array.from(
    { length: Math.ceil(seeds / seedsOfAProcess) },
    (_, index) => from + index * seedsOfAProcess,
  );
  let count = 0;
  const work = async (): Promise<void> => {
    for (let start = starts.shift(); start !== undefined; start = starts.shift()) {
      const stretch = Math.min(seedsOfAProcess, from + seeds - start);
      const options = ['--from', String(start), '--seeds', String(stretch), '--steps', String(steps)];
      if (values.troubles !== undefined) options.push('--troubles', values.troubles);
      if (values.sabotage !== undefined) options.push('--sabotage', values.sabotage);
      if (values.aimed) options.push('--aimed');
      if (values.store !== undefined) options.push('--store', values.store);
      if (values.latchkey) options.push('--latchkey');
      const child = spawn(process.execPath, [fileURLToPath(import.meta.url), ...options], {
        stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
      });
      // None is known to have held of a process that ends before it tells.
      let failedOfChild = stretch;
      child.on('message', (told) => (failedOfChild = Number(told)));
      await once(child, 'close');
      count += failedOfChild;
    }
  };
  await Promise.all(Array.from({ length: availableParallelism() }, work));
  return count;
}

function readArguments() {
  try {
    return parseArgs({
      options: {
        help: { type: 'boolean', short: 'h', default: false },
        seeds: { type: 'string', default: '1000' },
        from: { type: 'string', default: '1' },
        steps: { type: 'string', default: '200' },
        troubles: { type: 'string' },
        sabotage: { type: 'string' },
        aimed: { type: 'boolean', default: false },
        store: { type: 'string' },
        latchkey: { type: 'boolean', default: false },
        fleet: { type: 'string' },
      },
    }).values;
  } catch (error) {
    return fail((error as Error).message);
  }
}

/** Ends the process with one clear error. */
function fail(message: string): never {
  process.stderr.write(`simulate: ${message}\nSee: npm run simulate -- --help\n`);
  process.exit(2);
}

function readCount(text: string): number {
  return /^[1-9]\d{0,8}$/.test(text) ? Number(text) : fail(`${text} is not a number from 1 to 999999999`);
}

function readSabotage(name: string): SabotageName {
  return Object.hasOwn(sabotages, name) ? (name as SabotageName) : fail(`there is no sabotage ${name}`);
}

function readStore(name: string): SimulatedStoreName {
  return Object.hasOwn(simulatedStores, name)
    ? (name as SimulatedStoreName)
    : fail(`there is no store ${name}`);
}

function isTrouble(name: string): name is TroubleName {
  if (name !== '' && !Object.hasOwn(troubles, name)) fail(`there is no trouble ${name}`);
  return name !== '';
}

function isLatchkeyTrouble(name: string): name is LatchkeyTroubleName {
  if (name !== '' && !Object.hasOwn(latchkeyTroubles, name)) fail(`there is no trouble ${name}`);
  return name !== '';
}

/** Plays fleets of 10, 100 and so on up to a size, each in a process of its own. */
async function measureFleets(largest: number): Promise<void> {
  if (process.send !== undefined) {
    process.send(await playFleet(largest));
    return;
  }
  process.stdout.write('agents   requests    CPU ms       KiB  (of one agent in an hour)\n');
  for (let agents = 10; agents <= largest; agents *= 10) {
    const child = spawn(process.execPath, [fileURLToPath(import.meta.url), '--fleet', String(agents)], {
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    });
    child.on('message', (cost: FleetCost) => {
      const { requests, cpuMs, memoryKiB, counted, due } = cost;
      const columns = [requests, cpuMs, memoryKiB].map((number) => number.toFixed(0).padStart(9));
      const exact = counted === due ? '' : ` (${counted} uses were counted, ${due} were due)`;
      process.stdout.write(`${String(agents).padStart(6)} ${columns.join(' ')}${exact}\n`);
    });
    await once(child, 'close');
  }
}
