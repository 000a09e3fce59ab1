import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { DialectName } from '../../domain/header-names.ts';
import type { Log } from '../../service/ports.ts';
import { makeLog } from '../log.ts';
import { makeTemporaryDirectory, type TemporaryDirectory } from '../system/temporary-directory.ts';
import { AdvancingTime } from './advancing-time.ts';
import { SandboxAgent } from './agent.ts';
import { SandboxStore, type SandboxLicense } from './store.ts';

export interface SandboxOptions {
  /** Default: one, `WTKP4-66NL5-HMKQW-GFSCZ`. */
  readonly licenses?: readonly SandboxLicense[];
  /** The dialect of the store and the agent under `/api`. Default: the specification. */
  readonly dialect?: DialectName;
  /** Settings of the agent, as in its configuration file: `{ freshness: { grace: '3d' } }`. */
  readonly configuration?: Readonly<Record<string, unknown>>;
}

const timeoutMs = 30_000;
const pollMs = 20;
const maxAdvanceMs = 1_000 * 365 * 24 * 60 * 60 * 1000;

/** All sandboxes share one log, because each log listens for the exit of the process. */
const sharedLog = makeLog({ level: 'fatal', format: 'json' });

/**
 * Starts a store and an agent in front of the store in this process, on free ports of this machine, for the tests of a
 * program. Disposing of the sandbox removes everything.
 */
export async function startSandbox(options: SandboxOptions = {}): Promise<Sandbox> {
  const sandbox = new Sandbox(makeTemporaryDirectory('latchkey-testing-'), options, await sharedLog);
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

/** A store, and an agent in front of the store. Their clocks can be put forward. */
export class Sandbox implements AsyncDisposable {
  readonly productKey: string = 'RGsF';
  readonly productSecret: string = 'secret-of-the-sandbox';
  readonly apiKey: string = 'api-key-of-the-sandbox';
  readonly store: SandboxStore;
  readonly agent: SandboxAgent;
  readonly #time = new AdvancingTime();
  readonly #directory: TemporaryDirectory;

  /** For `startSandbox`. */
  constructor(
    directory: TemporaryDirectory,
    { dialect = 'specification', configuration = {} }: SandboxOptions,
    log: Log,
  ) {
    this.#directory = directory;
    const shared = { time: this.#time, dialect, log };
    this.store = new SandboxStore({ ...shared, directory: join(directory.path, 'store'), credentials: this });
    this.agent = new SandboxAgent({
      ...shared,
      directory: join(directory.path, 'agent'),
      store: this.store,
      configuration,
    });
    this.store.onReturn = () => this.agent.syncNow();
  }

  /** Puts the clocks of the store and the agent forward, by up to 1,000 years. */
  advance(ms: number): void {
    if (!(ms >= 0 && ms <= maxAdvanceMs)) {
      throw new RangeError('A clock can only be put forward, and by up to 1,000 years.');
    }
    this.#time.advance(ms);
  }

  /** Waits, for up to 30 s, until the store has every change of the agent, except for changes that wait for a decision. */
  async settled(): Promise<void> {
    const deadline = performance.now() + timeoutMs;
    while (!(await this.agent.isSettled())) {
      if (performance.now() > deadline) throw new Error('The agent still has changes for the store.');
      await sleep(pollMs);
    }
  }

  /** Issues a token of the agent for the product, with these scopes: `verify`, `use`, `manage` … */
  async issueToken(scopes: readonly string[]): Promise<string> {
    return await this.agent.issueToken(scopes, this.productKey);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.agent.stop();
    await this.store.goAway();
    this.#directory[Symbol.dispose]();
  }
}
