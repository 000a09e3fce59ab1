import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { eventually } from '../../support/harness/agent-harness.ts';
import {
  concludeAt,
  gumroadPrograms,
  type ExistingProgram,
  type ProgramCommand,
} from '../../support/reference/existing-programs.ts';
import { keys, openGumroad, permalink, productId, startGumroad } from '../../support/stores/gumroad.ts';
import { temporaryDirectory } from '../../support/temporary.ts';

/*
 * Programs that were written for Gumroad, each in its own way. Only their base URL is changed, so that an agent answers
 * them. What a program concludes at Gumroad is what its author meant.
 */

const buildDirectory = temporaryDirectory();
afterAll(() => buildDirectory[Symbol.asyncDispose]());

/** One installation of a program: its command, and the file of its activation. */
class Installation implements AsyncDisposable {
  readonly #command: ProgramCommand;
  readonly #home = temporaryDirectory();

  constructor(command: ProgramCommand) {
    this.#command = command;
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
    const settings = { api, productId, permalink, activation: this.#activation };
    const conclusion = await concludeAt([...this.#command, key, count], settings);
    return `${conclusion}${existsSync(this.#activation) ? ', activated' : ''}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#home[Symbol.asyncDispose]();
  }
}

async function install(program: ExistingProgram): Promise<Installation> {
  const directory = join(buildDirectory.path, program.file);
  mkdirSync(directory, { recursive: true });
  return new Installation(await program.build(directory));
}

const known = ['good', 'refunded', 'disabled', 'revoked', 'ended', 'running', 'unknown'] as const;

test.concurrent.for(gumroadPrograms)(
  '$file concludes at an agent what it concludes at Gumroad: online, during an outage, and after the grace',
  { timeout: 300_000 },
  async (program, context) => {
    const missing = await program.missing();
    context.skip(missing !== null, missing ?? '');
    await using software = await install(program);
    // Very old programs name a product by its permalink, and Gumroad still knows products that may be named so.
    await using reference = await openGumroad([{ productId, permalink, needsProductId: false }]);
    const products = [{ productId, permalink, needsProductId: false }];
    await using harness = await startGumroad({ freshness: { refresh: '1h' } }, products);
    const concluded = async (api: string): Promise<Record<string, string>> => {
      const all: Record<string, string> = {};
      for (const name of known) {
        software.isActivated = true;
        all[name] = await software.conclude(api, keys[name]);
      }
      return all;
    };
    const meant = await concluded(reference.url);
    expect(await concluded(harness.agent.process.tcp)).toEqual(meant);

    await harness.network.become({ kind: 'refuse' });
    const { unknown, ...seen } = meant;
    const away = await concluded(harness.agent.process.tcp);
    expect(away).toEqual({ ...seen, unknown: away['unknown'] });
    expect(['INVALID', 'KEEP, activated']).toContain(away['unknown']);
    software.isActivated = true;
    expect(await software.conclude(harness.agent.process.tcp, keys.unseen)).toBe('KEEP, activated');
    software.isActivated = false;
    expect(await software.conclude(harness.agent.process.tcp, keys.unseen)).toBe('TRY LATER');
    expect(unknown).toMatch(/^INVALID/);

    const freshness = { fresh: '1ms', stale: '2ms', grace: '3ms', refresh: '1h' };
    const agent = await harness.restart({ freshness });
    const tooOld = await concluded(agent.process.tcp);
    const keeps = 'KEEP, activated';
    expect(tooOld).toEqual({ ...seen, good: keeps, running: keeps, unknown: keeps });
  },
);

test.concurrent.for(gumroadPrograms)(
  'uses that $file counts arrive at Gumroad once, also those during an outage',
  { timeout: 300_000 },
  async (program, context) => {
    const missing = await program.missing();
    context.skip(missing !== null, missing ?? '');
    await using software = await install(program);
    const products = [{ productId, permalink, needsProductId: false }];
    await using harness = await startGumroad({}, products);
    const { store, network } = harness;
    const use = async (): Promise<string> =>
      await software.conclude(harness.agent.process.tcp, keys.good, 'count');
    expect(await use()).toMatch(/^VALID.*, activated$/);
    expect(store.license(keys.good).uses).toBe(4);
    await network.become({ kind: 'refuse' });
    expect(await use()).toMatch(/^VALID/);
    await harness.restart();
    expect(await use()).toMatch(/^VALID|^TOO MANY USES/);
    expect(store.license(keys.good).uses).toBe(4);
    await network.become({ kind: 'pass' });
    await eventually(() => store.license(keys.good).uses === 6);
    await harness.agent.atRest();
    expect(store.countedAt(keys.good)).toBe(3);
  },
);

test.concurrent.for(gumroadPrograms)(
  'whatever stands in for Gumroad, $file takes no page and no limit for a verdict',
  { timeout: 300_000 },
  async (program, context) => {
    const missing = await program.missing();
    context.skip(missing !== null, missing ?? '');
    await using software = await install(program);
    const products = [{ productId, permalink, needsProductId: false }];
    await using harness = await startGumroad({ upstream: { timeout: '1s' } }, products);
    for (const fault of [
      'lost_request',
      'lost_answer',
      'limited',
      'limited_empty',
      'page',
      'welcome_page',
      'challenge',
    ] as const) {
      harness.store.fault = () => fault;
      software.isActivated = true;
      const conclusion = await software.conclude(harness.agent.process.tcp, keys.unseen);
      expect(`${fault}: ${conclusion}`).toBe(`${fault}: KEEP, activated`);
    }
  },
);
