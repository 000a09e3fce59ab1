import { isFailure, type Problem } from '../../../../src/domain/problem/problem.ts';
import type { App } from '../../../../src/http/app.ts';
import type { Route } from '../../../../src/http/route.ts';
import { agentLicenseService } from '../../../../src/service/agent/license.ts';
import { runUseCase } from '../../../../src/service/run.ts';
import type { WriteOptions } from '../../../../src/service/ports.ts';
import type { CommandOf, CommandResult, UseCaseName, Writer } from '../../../../src/service/writer.ts';
import { localWriter } from '../../../../src/store/sqlite/commit.ts';
import { Activations } from '../../../../src/stores/activations.ts';
import { routes } from '../../../../src/stores/lemonsqueezy/http.ts';
import { store } from '../../../../src/stores/lemonsqueezy/store.ts';
import { LemonSqueezyClient } from '../../../../src/stores/lemonsqueezy/upstream.ts';
import type { SyncOptions } from '../../../../src/sync/options.ts';
import { Sync } from '../../../../src/sync/sync.ts';
import { KeyedMutex } from '../../../../src/sync/waiting.ts';
import type { VirtualClock } from '../../../support/harness/virtual-clock.ts';
import { silent, uncounted } from '../../../support/silent-log.ts';
import { freshness, type Machine, refreshMs } from '../machine.ts';
import { reconcileAfterMs, timeoutMs } from '../network.ts';
import type { SeededRandom } from '../seeded-random.ts';
import type { ActivationNetwork } from './network.ts';

export const storeId = 1;

type AgentParts = {
  machine: Machine;
  network: ActivationNetwork;
  clock: VirtualClock;
  random: SeededRandom;
  /** Null: the agent has no API key. */
  apiKey: string | null;
  /** The share of commits at which the process dies. */
  crashes: () => number;
};

/** What a program gets: the status and the body; null: the connection was closed. */
export type Told = { status: number; body: Readonly<Record<string, unknown>> } | null;

/** One process of an agent of Lemon Squeezy: the real routes, services, loops, client and tables, until it dies. */
export class ActivationAgent {
  isDead = false;
  readonly sync: Sync;
  readonly writer: Writer;
  readonly #parts: AgentParts;
  readonly #ending = new AbortController();
  readonly #routes: readonly Route[];
  readonly #app: Partial<App>;

  constructor(parts: AgentParts) {
    this.#parts = parts;
    const { machine, network, clock, apiKey } = parts;
    this.writer = this.#mortalWriter();
    const reader = machine.transaction;
    const shared = { reader, writer: this.writer, clock, log: silent };
    const lifetime = this.#ending.signal;
    const settings = {
      baseUrl: 'http://store.invalid',
      timeoutMs,
      userAgent: 'latchkey/test',
      self: null,
      productKeyOf: () => String(storeId),
      accessToken: () => apiKey,
    };
    const client = new LemonSqueezyClient(
      network.transport(() => this.isDead),
      settings,
      clock,
    );
    this.sync = new Sync({
      ...shared,
      upstream: client,
      syncUpstream: client,
      fraction: () => 0.5,
      meter: uncounted,
      mutex: new KeyedMutex(),
      settings: () => options,
      lifetime,
    });
    const { fetcher, limiter, delivery: deliveries } = this.sync;
    const answering = { freshness, maxPending: 10_000, timeoutMs, refreshMs, unknownMs: 10_000 };
    const licenseService = agentLicenseService({
      ...shared,
      fetcher,
      deliveries,
      takes: store.takes,
      productIds: () => options.productIds,
      settings: () => answering,
    });
    const mutex = new KeyedMutex();
    const activations = new Activations({
      ...shared,
      client,
      limiter,
      fetcher,
      mutex,
      lifetime,
      inDoubtMs: () => timeoutMs + reconcileAfterMs,
    });
    this.#routes = routes({
      activate: (...activation) => activations.activate(...activation),
      refresh: (...known) => fetcher.refresh(...known),
    });
    this.#app = {
      licenseService,
      storedLicenses: reader.snapshots as unknown as NonNullable<App['storedLicenses']>,
      digest: (secret) => secret,
      now: () => clock.now(),
      changes: { announce: () => undefined } as unknown as App['changes'],
      metrics: { countVerify: () => undefined } as unknown as App['metrics'],
      rates: { requests: { take: () => 0 } } as unknown as App['rates'],
    };
  }

  async start(): Promise<void> {
    await this.writer.write('startAgent', { adminTokenDigest: 't', place: 'here', reconcileAfterMs });
    const configured = [{ id: 'p1', productKey: String(storeId), secretDigest: '' }];
    const products = { configured, removed: [] };
    await this.writer.write('bindUpstream', { baseUrl: 'http://store.invalid', products });
    this.sync.run(this.#ending.signal).catch(() => undefined);
  }

  die(): void {
    this.isDead = true;
    this.#parts.clock.stop();
  }

  /** A call as a program sends it. Resolves never if the process dies. */
  async call(name: string, values: Record<string, unknown>): Promise<Told> {
    const route = this.#routes.find(({ path }) => path.endsWith(`/${name}`));
    const request = {
      app: this.#app,
      body: values,
      writeOptions: { actor: null, requestId: null, idempotency: null },
      isAgent: false,
      clientAddress: '127.0.0.1',
      connection: 'c',
      signal: new AbortController().signal,
    };
    try {
      const answer = await route?.handle(request as never);
      if (answer?.ok === true) return { status: answer.value.status, body: answer.value.body as never };
      return route === undefined || answer === undefined ? null : presented(route, answer.problem);
    } catch {
      return null;
    }
  }

  /** A writer that dies at some commits: before, or just after, and then is silent for ever. */
  #mortalWriter(): Writer {
    const { clock, machine, random, crashes } = this.#parts;
    const writer = localWriter(machine, {
      run: runUseCase,
      isFailure,
      context: () => ({
        now: clock.now(),
        monotonic: clock.monotonic(),
        random,
        digest: (secret) => secret,
        recordsHistory: false,
      }),
    });
    const silence = new Promise<never>(() => undefined);
    return {
      write: async <Name extends UseCaseName>(
        name: Name,
        command: CommandOf<Name>,
        writeOptions: Partial<WriteOptions> = {},
      ): Promise<CommandResult<Name>> => {
        const dies = !this.isDead && random.chance(crashes());
        if (dies && random.chance(0.5)) this.die();
        if (this.isDead) return await silence;
        const result = await writer.write(name, command, writeOptions);
        // The answer follows this commit at once: whether it was sent before the end of the process, nobody can tell.
        if (dies && !isAnswered(name, command)) this.die();
        return this.isDead ? await silence : result;
      },
    };
  }
}

function isAnswered(name: UseCaseName, command: object): boolean {
  return name === 'endActivationAttempt' && 'activationId' in command && command.activationId === null;
}

function presented({ refusal }: Route, problem: Problem): Told {
  if (refusal?.isHidden?.(problem) !== false) return null;
  const { status, body } = refusal.present(problem, '');
  return { status, body: body as Readonly<Record<string, unknown>> };
}

const options: SyncOptions = {
  rate: 20,
  concurrency: 4,
  breaker: { failures: 5, openMs: 5_000 },
  unknownMs: 10_000,
  lookups: { perSecond: 20, maxWaiting: 128 },
  probeMs: 30_000,
  productIds: ['p1'],
  productKeyOf: () => String(storeId),
  hasApiKey: false,
  policy: {
    reconcileAfterMs,
    writers: 'many',
    onUncertain: 'infer',
    backoff: { firstMs: 500, maxMs: 60_000 },
    goneMs: 60_000,
    refreshMs,
    graceMs: freshness.graceMs,
  },
};
