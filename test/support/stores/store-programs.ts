import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, expect, test, type TestContext } from 'vitest';
import { type StandIn, standInFaults } from '../../../src/features/sandbox/stores/stand-in.ts';
import { type Configuration, eventually } from '../harness/agent-harness.ts';
import { concludeAt, type ExistingProgram, type ProgramCommand } from '../reference/existing-programs.ts';
import { temporaryDirectory } from '../temporary.ts';
import type { StoreHarness } from './store-harness.ts';

/**
 * A store for the programs that were written for it, and the keys that they ask for. Only the base URL of a program is changed,
 * so that an agent answers it. It says `VALID` or `INVALID`; without an answer, `KEEP` or `TRY LATER`.
 */
export interface StorePrograms<Store extends StandIn = StandIn> {
  readonly name: string;
  readonly programs: readonly ExistingProgram[];
  /** The variables that configure a program, besides `LICENSE_API` and `LICENSE_FILE`. */
  readonly environment: Readonly<Record<string, string>>;
  /** Keys by their states. No call asks for `unseen` before an outage, and the store does not know `unknown`. */
  readonly keys: Readonly<Record<'good' | 'unseen' | 'unknown', string>> & Readonly<Record<string, string>>;
  /** The states of `keys` that are good. */
  readonly good: readonly string[];
  /** What the programs conclude at the store, of some states. */
  readonly concluded: Readonly<Record<string, RegExp>>;
  /** Starts a stand-in for the store. */
  readonly open: () => Promise<Store>;
  /** Starts an agent of such a stand-in. */
  readonly start: (configuration?: Configuration) => Promise<StoreHarness<Store>>;
}

/** The first Go build compiles the whole standard library. */
export const timeout = 300_000;

/** Tests what holds for each program at each store. Returns how to install a program for a further test. */
export function testPrograms<Store extends StandIn>(
  store: StorePrograms<Store>,
): (program: ExistingProgram, context: TestContext) => Promise<Installation> {
  const build = temporaryDirectory();
  afterAll(() => build[Symbol.asyncDispose]());
  const install: ReturnType<typeof testPrograms> = async (program, context) => {
    const missing = await program.missing();
    context.skip(missing !== null, missing ?? '');
    const directory = join(build.path, program.file);
    mkdirSync(directory, { recursive: true });
    return new Installation(await program.build(directory), store.environment);
  };

  test.concurrent.for(store.programs)(
    `$file concludes at an agent what it concludes at ${store.name}: online, during an outage, and after the grace`,
    { timeout },
    async (program, context) => {
      await using software = await install(program, context);
      const { found, meant } = await concludeEverywhere(store, software);
      expect(found).toEqual(meant);
      for (const [state, conclusion] of Object.entries(store.concluded))
        expect(`${state}: ${meant['online']?.[state]}`).toMatch(conclusion);
    },
  );

  test.concurrent.for(store.programs)(
    `whatever stands in for ${store.name}, $file takes no page and no limit for a verdict`,
    { timeout },
    async (program, context) => {
      await using software = await install(program, context);
      const found = await concludeAmidFaults(store, software);
      expect(found).toEqual(Object.fromEntries(standInFaults.map((fault) => [fault, keeps])));
    },
  );
  return install;
}

/** Tests programs that count uses, each time `by` uses, of which the key has had three. */
export function testUses<Store extends StandIn>(
  store: StorePrograms<Store>,
  { by, usesAt }: { by: number; usesAt: (store: Store) => number },
): void {
  const install = testPrograms(store);
  test.concurrent.for(store.programs)(
    `uses that $file counts arrive at ${store.name} once, also those during an outage`,
    { timeout },
    async (program, context) => {
      await using software = await install(program, context);
      await using harness = await store.start();
      const use = async (): Promise<string> =>
        await software.conclude(harness.agent.process.tcp, store.keys.good, 'count');
      const counted = (): number => usesAt(harness.store);
      expect(await use()).toMatch(/^VALID.*, activated$/);
      expect(counted()).toBe(3 + by);
      await harness.network.become({ kind: 'refuse' });
      expect(await use()).toMatch(/^VALID/);
      await harness.restart();
      // Some programs allow only a few uses.
      expect(await use()).toMatch(/^VALID|^TOO MANY USES/);
      expect(counted()).toBe(3 + by);
      await harness.network.become({ kind: 'pass' });
      await eventually(() => counted() === 3 + 3 * by);
      await harness.agent.atRest();
      expect(harness.store.countedAt(store.keys.good)).toBe(3 * by);
    },
  );
}

/** One installation of a program: its command, and the file of its activation. */
class Installation implements AsyncDisposable {
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
const keeps = 'KEEP, activated';

type Conclusions = Readonly<Record<string, string | undefined>>;

/**
 * What a program concludes at an agent, about each key, and what it must conclude: what it concludes at the store, and
 * without an answer, no verdict.
 */
async function concludeEverywhere(
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
async function concludeAmidFaults(
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
