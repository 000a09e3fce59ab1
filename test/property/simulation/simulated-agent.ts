import { DatabaseSync } from 'node:sqlite';
import { isRefusal } from '../../../src/service/access/idempotency.ts';
import type { Coupon } from '../../../src/domain/coupon.ts';
import type { License } from '../../../src/domain/license.ts';
import { agentCouponing } from '../../../src/service/agent/coupon.ts';
import { agentLicensing } from '../../../src/service/agent/license.ts';
import { rememberedTime } from '../../../src/service/lifecycle/clock-mark.ts';
import type { Couponing, Licensing } from '../../../src/service/answers.ts';
import type { Log, Upstream } from '../../../src/service/ports.ts';
import type { Writer } from '../../../src/service/writer.ts';
import type { SyncPolicy } from '../../../src/service/outbox/policy.ts';
import type { Transaction } from '../../../src/service/tables.ts';
import { runUseCase } from '../../../src/service/run.ts';
import { localWriter } from '../../../src/store/local-writer.ts';
import { migrations, takeSteps } from '../../../src/store/files/migrations.ts';
import { prepareTransaction } from '../../../src/store/tables.ts';
import { KeyLanes } from '../../../src/sync/key-lanes.ts';
import { Sync, type SyncOptions } from '../../../src/sync/sync.ts';
import type { VirtualClock } from '../../support/virtual-clock.ts';
import type { SeededRandom } from './seeded-random.ts';
import { timeoutMs } from './simulated-upstream.ts';

/** Ways to spoil the protocol, which the simulation must find. */
export type Mutation =
  | 'no_fence'
  | 'blind_retry'
  | 'mark_after_sending'
  | 'reads_outside_the_lane'
  | 'waits_kept_after_the_outage';

export type AgentOptions = {
  writers: SyncPolicy['writers'];
  onDoubt: SyncPolicy['onDoubt'];
  lanes: number;
  mutation: Mutation | null;
  /** The share of commits at which the process dies. */
  crashes: number;
};

export const freshness = { freshMs: 3_600_000, staleMs: 7_200_000, graceMs: 14_400_000 };
const silent: Log = { debug: noop, info: noop, warn: noop, error: noop };
const uncounted = { answered: noop, unexpected: noop };

/** The store of one machine, which outlives its processes. */
export class Machine implements Disposable {
  readonly database: DatabaseSync;
  readonly transaction: Transaction;

  constructor() {
    this.database = new DatabaseSync(':memory:');
    takeSteps(this.database, 0, migrations);
    this.transaction = prepareTransaction(this.database);
  }

  [Symbol.dispose](): void {
    this.database.close();
  }
}

/** One process of the agent: the real service, sync and store code, until it dies. */
export class SimulatedAgent {
  readonly licensing: Licensing;
  readonly couponing: Couponing;
  readonly sync: Sync;
  readonly clock: VirtualClock;
  isDead = false;
  readonly #machine: Machine;
  readonly #random: SeededRandom;
  readonly #options: AgentOptions;
  readonly #writer: Writer;
  /** Called when an answer of the upstream about a key is in the store. */
  readonly #onObserved: (license: License) => void;
  #ending = new AbortController();

  constructor(parts: {
    machine: Machine;
    upstream: Upstream;
    clock: VirtualClock;
    random: SeededRandom;
    options: AgentOptions;
    onObserved: (license: License) => void;
  }) {
    const { machine, clock, random, options } = parts;
    this.clock = clock;
    this.#machine = machine;
    this.#random = random;
    this.#options = options;
    this.#onObserved = parts.onObserved;
    this.#writer = this.#dyingWriter();
    const reader = machine.transaction;
    const shared = { reader, writer: this.#writer, clock };
    this.sync = new Sync({
      ...shared,
      upstream: options.mutation === 'blind_retry' ? blindly(parts.upstream) : parts.upstream,
      log: silent,
      meter: uncounted,
      lanes: options.mutation === 'reads_outside_the_lane' ? new LooseLanes() : new KeyLanes(),
      settings: () => syncSettings(options),
      lifetime: this.#ending.signal,
    });
    const settings = { freshness, maxPending: 10_000, timeoutMs, refreshMs: 600_000 };
    this.licensing = agentLicensing({
      ...shared,
      pull: this.sync.reads,
      deliveries: this.sync.push,
      productKeys: () => ['product'],
      settings: () => settings,
    });
    this.couponing = agentCouponing({
      ...shared,
      pull: this.sync.coupons,
      isConfigured: () => true,
      settings: () => ({ ...settings, fenceMs: syncSettings(options).policy.fenceMs }),
    });
  }

  /** Starts the process; resolves when its store is in use, or never if it dies on the way. */
  async start(): Promise<void> {
    if (this.#options.mutation === 'mark_after_sending') this.#unmark();
    await this.#writer.write('start', {
      role: 'agent',
      adminTokenDigest: 'token',
      place: 'here',
      apiKeyDigest: null,
      fenceMs: syncSettings(this.#options).policy.fenceMs,
    });
    // A dead process is not missed: what it awaits never comes.
    void this.sync.run(this.#ending.signal);
  }

  die(): void {
    this.isDead = true;
    this.clock.stop();
  }

  async markTime(): Promise<void> {
    await this.#writer.write('markTime', { mark: this.clock.mark() });
  }

  remembered(): number | null {
    return rememberedTime(this.#machine.transaction);
  }

  /** A writer that dies at some commits: before, or just after, and then is silent for ever. */
  #dyingWriter(): Writer {
    const { clock } = this;
    const writer = localWriter(this.#machine, {
      run: runUseCase,
      isRefusal,
      context: () => ({
        now: clock.now(),
        steady: clock.steady(),
        random: this.#random,
        digest: (secret) => secret,
      }),
    });
    return {
      write: async (name, command, asked = {}) => {
        if (this.#options.mutation === 'waits_kept_after_the_outage' && name === 'endOutage') {
          return await never();
        }
        const dies = !this.isDead && this.#random.chance(this.#options.crashes);
        if (dies && this.#random.chance(0.5)) this.die();
        if (this.isDead) return await never();
        const result = await writer.write(name, command, asked);
        if ('outcome' in command && command.outcome.outcome === 'applied')
          this.#observed(command.outcome.value);
        if (dies) this.die();
        return this.isDead ? await never() : result;
      },
    };
  }

  #observed(value: License | Coupon): void {
    if ('licenseKey' in value) this.#onObserved(value);
  }

  /** As if the mark had been written after sending: a crash in between leaves no trace of the attempt. */
  #unmark(): void {
    this.#machine.database.exec(
      `UPDATE outbox SET state = 'pending', base_uses = NULL, sent_at = NULL, next_at = 0
       WHERE state = 'in_flight'`,
    );
  }
}

/** What the agent is configured with. */
export function syncSettings({ writers, onDoubt, lanes, mutation }: AgentOptions): SyncOptions {
  return {
    rate: 20,
    lanes,
    breaker: { failures: 5, openMs: 5_000 },
    unknownMs: 10_000,
    probeMs: 30_000,
    productKeys: ['product'],
    policy: {
      fenceMs: mutation === 'no_fence' ? 0 : 10_000,
      writers,
      onDoubt,
      backoff: { firstMs: 500, maxMs: mutation === 'waits_kept_after_the_outage' ? 900_000 : 60_000 },
      goneMs: 60_000,
      refreshMs: 600_000,
      graceMs: freshness.graceMs,
    },
  };
}

/** A client that repeats a request whose answer it did not get, as a retry layer would. */
function blindly(upstream: Upstream): Upstream {
  return new Proxy(upstream, {
    get(target, name) {
      if (name !== 'change') return Reflect.get(target, name).bind(target) as unknown;
      const change: Upstream['change'] = async (...parameters) => {
        const first = await target.change(...parameters);
        return first.outcome === 'ambiguous' ? await target.change(...parameters) : first;
      };
      return change;
    },
  });
}

/** Lanes that let reads pass whenever they like. */
class LooseLanes extends KeyLanes {
  override enter(...[subject, lanes, signal]: Parameters<KeyLanes['enter']>): ReturnType<KeyLanes['enter']> {
    if (lanes.length === 1) return super.enter(subject, lanes, signal);
    return Promise.resolve({ overlapped: false, [Symbol.dispose]: () => undefined });
  }
}

function never(): Promise<never> {
  return new Promise<never>(noop);
}

function noop(): void {
  // Nothing to do.
}
