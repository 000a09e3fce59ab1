import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { TestContext } from 'vitest';
import { type StandIn, standInFaults } from '../../../src/features/sandbox/stores/stand-in.ts';
import type { Configuration } from '../harness/agent-harness.ts';
import { concludeAt, type ExistingProgram, type ProgramCommand } from '../reference/existing-programs.ts';
import { temporaryDirectory } from '../temporary.ts';
import type { StoreHarness } from './store-harness.ts';

/**
 * A store for the programs that were written for it, and the keys that they ask for. A program says `VALID` or `INVALID`;
 * without an answer, `KEEP` or `TRY LATER`.
 */
export interface StorePrograms {
  /** The variables that configure a program, besides `LICENSE_API` and `LICENSE_FILE`. */
  readonly environment: Readonly<Record<string, string>>;
  /** Keys by their states. No call asks for `unseen` before an outage, and the store does not know `unknown`. */
  readonly keys: Readonly<Record<'good' | 'unseen' | 'unknown', string>> & Readonly<Record<string, string>>;
  /** The states of `keys` that are good. */
  readonly good: readonly string[];
  /** Starts a stand-in for the store. */
  readonly open: () => Promise<StandIn>;
  /** Starts an agent of such a stand-in. */
  readonly start: (configuration?: Configuration) => Promise<StoreHarness>;
}

/** One installation of a program: its command, and the file of its activation. */
export class Installation implements AsyncDisposable {
  readonly #command: ProgramCommand;
  readonly #environment: StorePrograms['environment'];
  readonly #home = temporaryDirectory();

  constructor(command: ProgramCommand, environment: StorePrograms['environment']) {
    this.#command = command;
    this.#environment = environment;
  }

  get #activation(): string {
    return join(this.#home.path, 'activation');
  }

  set isActivated(value: boolean) {
    if (value) writeFileSync(this.#activation, 'key');
    else rmSync(this.#activation, { force: true });
  }

  /** What it concludes about a key, and whether it is activated then. */
  async conclude(api: string, key: string, count: 'count' | 'look' = 'look'): Promise<string> {
    const settings = { ...this.#environment, LICENSE_API: api, LICENSE_FILE: this.#activation };
    const conclusion = await concludeAt([...this.#command, key, count], settings);
    return `${conclusion}${existsSync(this.#activation) ? ', activated' : ''}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#home[Symbol.asyncDispose]();
  }
}

/** What a program says that has got no answer: it keeps its activation, if it has one. */
export const keeps = 'KEEP, activated';

/** Builds and installs a program; the test is skipped if that is impossible here. */
export async function install(
  { environment }: StorePrograms,
  program: ExistingProgram,
  { context, directory }: { context: TestContext; directory: string },
): Promise<Installation> {
  const missing = await program.missing();
  context.skip(missing !== null, missing ?? '');
  const own = join(directory, program.file);
  mkdirSync(own, { recursive: true });
  return new Installation(await program.build(own), environment);
}

type Conclusions = Readonly<Record<string, string | undefined>>;

/**
 * What a program concludes at an agent, about each key, and what it must conclude: what it concludes at the store, and
 * without an answer, no verdict.
 */
export async function concludeEverywhere(
  { keys, good, open, start }: StorePrograms,
  software: Installation,
): Promise<Record<'found' | 'meant', Readonly<Record<string, Conclusions>>>> {
  const concludeAll = async (api: string): Promise<Conclusions> => {
    const all: Record<string, string> = {};
    for (const [state, key] of Object.entries(keys).filter(([each]) => each !== 'unseen')) {
      software.isActivated = true;
      all[state] = await software.conclude(api, key);
    }
    return all;
  };
  await using reference = await open();
  await using harness = await start({ freshness: { refresh: '1h' } });
  const meant = await concludeAll(reference.url);
  const online = await concludeAll(harness.agent.process.tcp);
  await harness.network.become({ kind: 'refuse' });
  const { unknown, ...away } = await concludeAll(harness.agent.process.tcp);
  software.isActivated = true;
  const unseen = await software.conclude(harness.agent.process.tcp, keys.unseen);
  software.isActivated = false;
  const neverActivated = await software.conclude(harness.agent.process.tcp, keys.unseen);
  const freshness = { fresh: '1ms', stale: '2ms', grace: '3ms', refresh: '1h' };
  const agent = await harness.restart({ freshness });
  const { unknown: _, ...known } = meant;
  return {
    found: {
      online,
      // That the store does not know a key is forgotten sooner than the rest.
      away: { ...away, unknown: unknown === keeps ? meant['unknown'] : unknown, unseen, neverActivated },
      afterGrace: await concludeAll(agent.process.tcp),
    },
    meant: {
      online: meant,
      away: { ...meant, unseen: keeps, neverActivated: 'TRY LATER' },
      afterGrace: { ...known, ...Object.fromEntries([...good, 'unknown'].map((state) => [state, keeps])) },
    },
  };
}

/** What a program concludes about a key that nothing is known of, by what goes wrong. */
export async function concludeAmidFaults(
  { keys, start }: StorePrograms,
  software: Installation,
): Promise<Record<string, string>> {
  await using harness = await start({ upstream: { timeout: '1s' } });
  const found: Record<string, string> = {};
  for (const fault of standInFaults) {
    harness.store.fault = () => fault;
    software.isActivated = true;
    found[fault] = await software.conclude(harness.agent.process.tcp, keys.unseen);
  }
  return found;
}
