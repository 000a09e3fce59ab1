import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { DialectName } from '../../domain/dialect.ts';
import { makeTemporary } from '../system/temporary-directory.ts';
import { AdvancingTime } from './advancing-time.ts';
import { SandboxAgent } from './sandbox-agent.ts';
import { SandboxStore, type SandboxLicense } from './sandbox-store.ts';

export interface SandboxOptions {
  /** Default: one, `WTKP4-66NL5-HMKQW-GFSCZ`. */
  readonly licenses?: readonly SandboxLicense[];
  /** How the store and the agent answer under `/api`; default: as the specification says. */
  readonly dialect?: DialectName;
  /** Settings of the agent, as in its configuration file: `{ freshness: { grace: '3d' } }`. */
  readonly configuration?: Readonly<Record<string, unknown>>;
}

const patienceMs = 30_000;
const lookMs = 20;
const longestAdvanceMs = 1_000 * 365 * 24 * 60 * 60 * 1000;

/**
 * Starts a store and an agent in front of it in this process, on free ports of this machine: what a program meets
 * in the field, for its own tests. Everything is removed when it is disposed of.
 */
export async function startSandbox(options: SandboxOptions = {}): Promise<Sandbox> {
  const directory = makeTemporary('latchkey-testing-');
  const sandbox = new Sandbox(directory, options);
  try {
    await sandbox.store.comeBack();
    await sandbox.store.sell(options.licenses ?? [{ licenseKey: 'WTKP4-66NL5-HMKQW-GFSCZ' }]);
    await sandbox.agent.start();
    return sandbox;
  } catch (error) {
    await sandbox[Symbol.asyncDispose]();
    throw error;
  }
}

/** A store, and an agent in front of it, whose clocks can be put forward. */
export class Sandbox implements AsyncDisposable {
  readonly productKey: string = 'RGsF';
  readonly productSecret: string = 'secret-of-the-sandbox';
  readonly apiKey: string = 'api-key-of-the-sandbox';
  readonly store: SandboxStore;
  readonly agent: SandboxAgent;
  readonly #time = new AdvancingTime();
  readonly #directory: string;

  /** For `startSandbox`. */
  constructor(directory: string, { dialect = 'specification', configuration = {} }: SandboxOptions) {
    this.#directory = directory;
    const shared = { time: this.#time, dialect, credentials: this };
    this.store = new SandboxStore({ ...shared, directory: join(directory, 'store') });
    this.agent = new SandboxAgent({
      ...shared,
      directory: join(directory, 'agent'),
      store: this.store,
      configuration,
    });
    this.store.onReturn = () => this.agent.syncNow();
  }

  /** Puts the clocks of the store and the agent forward, by up to 1,000 years. */
  advance(ms: number): void {
    if (!(ms >= 0 && ms <= longestAdvanceMs)) {
      throw new RangeError('A clock is put forward only, by up to 1,000 years.');
    }
    this.#time.advance(ms);
  }

  /** Waits until the store has taken all that was changed at the agent, but for what waits for a person; at most 30 s. */
  async settled(): Promise<void> {
    const deadline = performance.now() + patienceMs;
    while (!(await this.agent.isSettled())) {
      if (performance.now() > deadline) throw new Error('The agent still has changes that wait.');
      await sleep(lookMs);
    }
  }

  /** Issues a token of the agent, for the product, with these scopes: `verify`, `use`, `manage` … */
  async issueToken(scopes: readonly string[]): Promise<string> {
    return await this.agent.issueToken(scopes, this.productKey);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.agent.stop();
    await this.store.goAway();
    await rm(this.#directory, { recursive: true, force: true });
  }
}
