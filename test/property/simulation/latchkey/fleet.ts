import { VirtualTime } from '../../../support/harness/virtual-clock.ts';
import { isLatchkey } from '../../../../src/service/outbox/upstream/identity.ts';
import type { Configuration, Faults } from '../machine.ts';
import { productKey, SimulatedAuthority } from './authority.ts';
import { LatchkeyNetwork } from './network.ts';
import { Uuid7Random } from './random.ts';
import { Site } from './site.ts';

/** What one agent of a fleet costs in an hour. */
export type FleetCost = {
  agents: number;
  /** Requests to the authority. */
  requests: number;
  /** Of the agent and of its share of the authority, in ms. */
  cpuMs: number;
  /** How much the memory of the process grew, in KiB. */
  memoryKiB: number;
  /** Uses that the authority has counted, of all agents, and that were due. */
  counted: number;
  due: number;
};

const minuteMs = 60_000;
const keysPerAgent = 5;
const minutes = 15;
const perHour = 60 / minutes;
/** Each agent counts a use in this many minutes, and verifies a key in each. */
const minutesPerUse = 5;

/** Plays a fleet of agents at one authority, in virtual time, after all of them know that it is a Latchkey. */
export async function playFleet(agents: number): Promise<FleetCost> {
  const memory = process.memoryUsage.rss();
  using fleet = new Fleet(agents);
  await fleet.begin();
  const [cpu, requests] = [process.cpuUsage(), fleet.requests];
  await fleet.play();
  const { user, system } = process.cpuUsage(cpu);
  return {
    agents,
    requests: ((fleet.requests - requests) * perHour) / agents,
    cpuMs: ((user + system) * perHour) / 1_000 / agents,
    memoryKiB: (process.memoryUsage.rss() - memory) / 1_024 / agents,
    counted: fleet.counted(),
    due: (agents * minutes) / minutesPerUse,
  };
}

class Fleet implements Disposable {
  readonly time: VirtualTime = new VirtualTime(2);
  readonly random: Uuid7Random = new Uuid7Random(1);
  readonly authority: SimulatedAuthority = new SimulatedAuthority(this.time.clock(), this.random);
  readonly network: LatchkeyNetwork = new LatchkeyNetwork(this.authority, this.time.clock(), this.random);
  readonly configuration: Configuration = {
    writers: 'many',
    onUncertain: 'infer',
    concurrency: 4,
    secrets: new Map([[productKey, this.authority.secret]]),
    apiKey: this.authority.apiKey,
    baseUrl: 'https://authority.example',
  };
  readonly faults: Faults = { crashes: 0, isFull: false, afterCommit: null };
  readonly sabotage = null;
  readonly broken: string[] = [];
  readonly #sites: Site[];

  constructor(agents: number) {
    this.#sites = Array.from({ length: agents }, (_, index) => {
      return new Site(this, { place: `site ${index}`, network: this.network });
    });
  }

  get requests(): number {
    return this.network.requests;
  }

  async begin(): Promise<void> {
    const keys = this.#sites.flatMap((_, site) => keysOf(site));
    await this.authority.begin(new Map(keys.map((key) => [key, 0])));
    for (const [index, site] of this.#sites.entries()) {
      await site.start();
      for (const key of keysOf(index)) site.verify(key);
    }
    await this.time.runUntil(
      () => this.#sites.every(({ machine }) => isLatchkey(machine.transaction)),
      5 * minuteMs,
    );
    await this.pass(minuteMs);
  }

  async play(): Promise<void> {
    for (let minute = 0; minute < minutes; minute += 1) {
      for (const [index, site] of this.#sites.entries()) {
        const key = keysOf(index)[minute % keysPerAgent] ?? '';
        site.verify(key);
        if ((minute + index) % minutesPerUse === 0) site.change(key, 'usage');
      }
      await this.pass(minuteMs);
    }
  }

  counted(): number {
    const keys = this.#sites.flatMap((_, site) => keysOf(site));
    return keys.reduce((sum, key) => sum + this.authority.license(key).uses, 0);
  }

  async pass(ms: number): Promise<void> {
    await this.time.advance(ms);
  }

  [Symbol.dispose](): void {
    for (const site of this.#sites) site[Symbol.dispose]();
    this.authority[Symbol.dispose]();
  }
}

function keysOf(site: number): string[] {
  return Array.from({ length: keysPerAgent }, (_, key) => `KEY-${site}-${key}`);
}
