import { randomUUID } from 'node:crypto';
import { expect, test } from 'vitest';
import { SeededRandom } from '../property/simulation/seeded-random.ts';
import {
  hasty,
  startAgentHarness,
  tooLateMs,
  type AgentHarness,
  type LicenseChangeKind,
} from '../support/harness/agent-harness.ts';
import type { NetworkFault } from '../support/network/fault-proxy.ts';
import {
  cutBody,
  delayResponse,
  everyNth,
  firewallPage,
  hang,
  loseResponse,
  loseRequest,
  outliveCaller,
  serverError,
  corruptBody,
  truncateBody,
  type Fault,
  type LedgerEntryDraft,
} from '../support/harness/plain-upstream.ts';
import type { HttpResponse } from '../support/network/raw-http.ts';

const keys = ['KEY-0', 'KEY-1', 'KEY-2', 'KEY-3'] as const;
/** Far from 0, where a decrease would have no effect. */
const usesBefore = 100;
const rounds = 10;

const networkFaults: readonly [NetworkFault, ...NetworkFault[]] = [
  { kind: 'refuse' },
  { kind: 'blackhole' },
  { kind: 'reset_on_connect' },
  { kind: 'reset_answer' },
  { kind: 'half_open' },
  { kind: 'cut_answer', afterBytes: 150 },
  { kind: 'latency', delayMs: 50 },
];

const upstreamFaults: readonly [Fault, ...Fault[]] = [
  loseRequest,
  loseResponse,
  hang(true),
  hang(false),
  outliveCaller,
  delayResponse(tooLateMs),
  serverError(500, true),
  serverError(503),
  firewallPage(),
  corruptBody(),
  truncateBody,
  cutBody,
];

function changesSomething({ kind }: LedgerEntryDraft): boolean {
  return kind !== 'verify' && kind !== 'list_coupons' && kind !== 'get_coupon';
}

/** The sum of the responses to the callers of one key. */
interface Told {
  net: number;
  enabled: boolean;
}

/** Callers who insist on a response, while everything around them fails as the seed determines. */
class Storm {
  readonly harness: AgentHarness;
  readonly told: ReadonlyMap<string, Told>;
  readonly coupons: Set<string> = new Set();
  readonly #random: SeededRandom;
  readonly #hasOthers: boolean;
  /** Resolves when an agent runs. */
  #running: Promise<unknown> = Promise.resolve();
  #answers = 0;
  #killAfter = Infinity;

  constructor(harness: AgentHarness, random: SeededRandom, hasOthers: boolean) {
    this.harness = harness;
    this.told = new Map(keys.map((key) => [key, { net: 0, enabled: true }]));
    this.#random = random;
    this.#hasOthers = hasOthers;
  }

  async rage(): Promise<void> {
    for (let round = 0; round < rounds; round += 1) {
      await this.#changeWeather();
      this.#killAfter = this.#random.chance(0.35) ? this.#answers + this.#random.between(1, 6) : Infinity;
      const progress = this.#untilMoreArrives(this.#random.between(1, 8));
      const plans = keys.map((key) => [key, this.#planCalls()] as const);
      const code = this.#random.chance(0.3) ? `CODE-${round}` : null;
      await Promise.all(plans.map(([key, kinds]) => this.#callFor(key, kinds)));
      if (code !== null) await this.#createCoupon(code);
      await progress;
      await this.#running;
    }
  }

  async clear(): Promise<void> {
    this.harness.upstream.fault = () => undefined;
    await this.harness.proxy.become({ kind: 'pass' });
    await this.#running;
    await this.harness.agent.decideHeldEnables((key) => this.told.get(key)?.enabled === true);
  }

  async #changeWeather(): Promise<void> {
    const { proxy, upstream } = this.harness;
    const isNetwork = this.#random.chance(0.3);
    await proxy.become(isNetwork ? this.#random.pick(networkFaults) : { kind: 'pass' });
    const fault = everyNth(this.#random.between(1, 3), this.#random.pick(upstreamFaults), changesSomething);
    upstream.fault = this.#random.chance(0.8) ? fault : () => undefined;
    if (!this.#hasOthers) return;
    for (const key of keys) upstream.useElsewhere(key, this.#random.pick([-2, -1, 0, 0, 1, 2]));
  }

  /** Waits until more requests arrive, or briefly if none can arrive. */
  async #untilMoreArrives(count: number): Promise<void> {
    const { ledger } = this.harness.upstream;
    const enough = ledger.length + count;
    await this.harness.upstream.until(() => ledger.length >= enough, 400).catch(() => undefined);
  }

  #planCalls(): LicenseChangeKind[] {
    const kinds = ['usage', 'usage', 'usage', 'decrease', 'disable', 'enable'] as const;
    return Array.from({ length: this.#random.between(0, 3) }, () => this.#random.pick(kinds));
  }

  /** Calls one after the other, so that the last request determines the final state. */
  async #callFor(key: string, kinds: readonly LicenseChangeKind[]): Promise<void> {
    for (const kind of kinds) {
      const { status } = await this.#insist((headers) => this.harness.agent.change(kind, key, headers));
      const told = this.told.get(key);
      if (status !== 200 || told === undefined) throw new Error(`${kind} of ${key} was answered ${status}`);
      if (kind === 'usage') told.net += 1;
      else if (kind === 'decrease') told.net -= 1;
      else told.enabled = kind === 'enable';
    }
  }

  async #createCoupon(code: string): Promise<void> {
    const answer = await this.#insist((headers) => this.harness.agent.createCoupon({ code }, headers));
    // Killed after the upstream had created the coupon and before the caller got a response: the upstream
    // rejects the repetition.
    if (answer.status !== 201 && answer.status !== 400) throw new Error(`${code}: ${answer.status}`);
    this.coupons.add(code);
  }

  /** Repeats a request under one idempotency key until there is a response, even across crashes. */
  async #insist(ask: (headers: Record<string, string>) => Promise<HttpResponse>): Promise<HttpResponse> {
    const headers = { 'idempotency-key': randomUUID() };
    for (let attempt = 0; attempt < 20; attempt += 1) {
      await this.#running;
      const answer = await ask(headers).catch(() => null);
      if (answer !== null && answer.status !== 409) {
        this.#answers += 1;
        if (this.#answers === this.#killAfter) this.#running = this.harness.startAgent();
        return answer;
      }
    }
    throw new Error('the agent never answered');
  }
}

async function runStorm(seed: number, writers: 'single' | 'many'): Promise<Storm> {
  const licenses = keys.map((licenseKey) => ({ licenseKey, uses: usesBefore }));
  const harness = await startAgentHarness({ licenses, configuration: { ...hasty, sync: { writers } } });
  return new Storm(harness, new SeededRandom(seed), writers === 'many');
}

/** By key: how many operations are inferred or uncertain. */
async function doubts({ agent }: AgentHarness): Promise<Map<string, number>> {
  const labelled = [...(await agent.operations('inferred')), ...(await agent.operations('uncertain'))];
  const counts = new Map<string, number>(keys.map((key) => [key, 0]));
  for (const { license_key: key } of labelled) {
    if (key !== null) counts.set(key, (counts.get(key) ?? 0) + 1);
  }
  return counts;
}

/** To try other seeds: LATCHKEY_SEEDS=7,8 npx vitest run … */
const seeds = (process.env['LATCHKEY_SEEDS'] ?? '1,2').split(',').map(Number);

for (const seed of seeds) {
  test.concurrent(
    `seed ${seed}: nothing is lost or counted twice while the network, the upstream and the agent fail`,
    async () => {
      const storm = await runStorm(seed, 'single');
      await using harness = storm.harness;
      await storm.rage();
      await storm.clear();
      const { upstream, agent } = harness;
      for (const key of keys) {
        const { uses, enabled } = upstream.license(key);
        const told = storm.told.get(key);
        expect({ key, uses, enabled }).toEqual({
          key,
          uses: usesBefore + (told?.net ?? 0),
          enabled: told?.enabled,
        });
      }
      for (const made of storm.coupons) {
        expect(upstream.coupons.filter(({ code }) => code === made)).toHaveLength(1);
      }
      expect((await agent.status()).outbox).toMatchObject({ conflicted: 0, dead: 0 });
      // An operation that a person resends may have arrived before.
      const inferred = await agent.operations('inferred');
      expect(inferred).toMatchObject(inferred.map(() => ({ kind: 'enable' })));
    },
  );

  test.concurrent(
    `seed ${seed}: with other writers the error is at most the number of uncertain operations`,
    async () => {
      const storm = await runStorm(seed, 'many');
      await using harness = storm.harness;
      await storm.rage();
      await storm.clear();
      const { upstream } = harness;
      const labelled = await doubts(harness);
      for (const key of keys) {
        const told = storm.told.get(key);
        const error = Math.abs(upstream.countsOf(key).net - (told?.net ?? 0));
        expect(error).toBeLessThanOrEqual(labelled.get(key) ?? 0);
        expect({ key, enabled: upstream.license(key).enabled }).toEqual({ key, enabled: told?.enabled });
      }
    },
  );
}
