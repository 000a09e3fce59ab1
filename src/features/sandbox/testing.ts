import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { DialectName } from '../../domain/header-names.ts';
import type { Log } from '../../service/ports.ts';
import { makeLog } from '../../daemon/log.ts';
import { makeTemporaryDirectory, type TemporaryDirectory } from '../../daemon/system/temporary-directory.ts';
import { AdvancingTime } from '../../daemon/system/clock.ts';
import { SandboxAgent } from './agent.ts';
import { SandboxHolder } from './holder.ts';
import { SandboxIssuer } from './issuer.ts';
import {
  sampleCredentials,
  sampleLicenseKey,
  SandboxStore,
  type SandboxLicense,
  type SandboxParts,
} from './store.ts';

export interface SandboxOptions {
  /** Default: one, `WTKP4-66NL5-HMKQW-GFSCZ`. */
  readonly licenses?: readonly SandboxLicense[];
  /** The dialect of the store and the agent under `/api`. Default: the specification. */
  readonly dialect?: DialectName;
  /** Settings of the agent, as in its configuration file: `{ freshness: { grace: '3d' } }`. */
  readonly configuration?: Readonly<Record<string, unknown>>;
  /** Whether the store issues leases, and a holder of leases runs as well. */
  readonly withHolder?: boolean;
}

export interface SandboxHolderOptions {
  /** The name of the device. Default: `device-1`, `device-2` … */
  readonly deviceName?: string;
  /** Settings of the holder, as in its configuration file: `{ leases: { activate: 'explicit' } }`. */
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
    await sandbox.store.sell(options.licenses ?? [{ licenseKey: sampleLicenseKey }]);
    await sandbox.agent.start();
    if (options.withHolder === true) await sandbox.issueLeases();
    return sandbox;
  } catch (error) {
    await sandbox[Symbol.asyncDispose]();
    throw error;
  }
}

/** A store, an agent in front of the store, and holders of leases. Their clocks can be put forward. */
export class Sandbox implements AsyncDisposable {
  readonly productKey: string = sampleCredentials.productKey;
  readonly productSecret: string = sampleCredentials.productSecret;
  readonly apiKey: string = sampleCredentials.apiKey;
  readonly store: SandboxStore;
  readonly agent: SandboxAgent;
  readonly #time = new AdvancingTime();
  readonly #directory: TemporaryDirectory;
  readonly #shared: Omit<SandboxParts, 'directory'>;
  readonly #holders: SandboxHolder[] = [];
  #issuer: SandboxIssuer | null = null;

  /** For `startSandbox`. */
  constructor(
    directory: TemporaryDirectory,
    { dialect = 'specification', configuration = {} }: SandboxOptions,
    log: Log,
  ) {
    this.#directory = directory;
    const shared = { time: this.#time, dialect, log };
    this.#shared = shared;
    this.store = new SandboxStore({ ...shared, directory: join(directory.path, 'store') });
    this.agent = new SandboxAgent({
      ...shared,
      directory: join(directory.path, 'agent'),
      store: this.store,
      configuration,
    });
    this.store.onReturn = () => this.agent.syncNow();
  }

  /** The store as the issuer of leases. Throws without the option `withHolder`. */
  get issuer(): SandboxIssuer {
    if (this.#issuer === null) throw new Error('This sandbox issues no leases: start it with withHolder.');
    return this.#issuer;
  }

  /** The first holder. Throws without the option `withHolder`. */
  get holder(): SandboxHolder {
    const [first] = this.#holders;
    if (first === undefined) throw new Error('This sandbox has no holder: start it with withHolder.');
    return first;
  }

  /** For `startSandbox`. */
  async issueLeases(): Promise<void> {
    const directory = join(this.#directory.path, 'store');
    this.#issuer = await SandboxIssuer.setUp(this.store, { directory, time: this.#time });
    await this.startHolder();
  }

  /** Starts another holder: another device. */
  async startHolder(options: SandboxHolderOptions = {}): Promise<SandboxHolder> {
    const name = `device-${this.#holders.length + 1}`;
    const { deviceName = name, configuration = {} } = options;
    const holder = new SandboxHolder({
      ...this.#shared,
      directory: join(this.#directory.path, name),
      store: this.store,
      issuer: this.issuer,
      deviceName,
      configuration,
    });
    this.#holders.push(holder);
    await holder.start();
    return holder;
  }

  /** Puts the clocks of the store, the agent and the holders forward, by up to 1,000 years. */
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
    await Promise.all([this.agent, ...this.#holders].map((each) => each.stop()));
    await this.store.goAway();
    this.#directory[Symbol.dispose]();
  }
}
