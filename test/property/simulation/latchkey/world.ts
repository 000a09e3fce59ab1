import '../../../support/harness/load-features.ts';
import { VirtualTime, type VirtualClock } from '../../../support/harness/virtual-clock.ts';
import type { Configuration, Faults } from '../machine.ts';
import type { Sabotage } from '../sabotage.ts';
import { productKey, SimulatedAuthority, type AuthoritySabotage } from './authority.ts';
import type { Device } from './device.ts';
import { LatchkeyNetwork, type Weather } from './network.ts';
import { Uuid7Random } from './random.ts';
import { Site } from './site.ts';

/** The kinds of trouble that a seed has or has not; what each does is in `trouble.ts`. */
export type LatchkeyTroubleName =
  | 'others'
  | 'chain'
  | 'seller'
  | 'late'
  | 'gateway'
  | 'authority_restart'
  | 'authority_restore'
  | 'another_store'
  | 'agent_restore'
  | 'lost_state'
  | 'rollback'
  | 'copy'
  | 'secrets'
  | 'stranger'
  | 'clocks'
  | 'month'
  | 'person'
  | 'full'
  | 'bursts'
  | 'coupons'
  | 'ends'
  | 'set_back';

export type LatchkeySabotage = { agent?: Sabotage; authority?: AuthoritySabotage };

export type LatchkeyWorldOptions = {
  seed: number;
  troubles: readonly LatchkeyTroubleName[];
  sabotage: LatchkeySabotage | null;
};

/**
 * Where and when (ms of virtual time) a caller asked for an operation, and the revision that it may have seen. `places`: since
 * when each place has the operation: a copied store has it, too.
 */
export type Sighting = { at: number; place: string; revision: number | null; places: Map<string, number> };

/** The end of a license, and that of the grace (epoch ms). `from`: since when it has them, in ms of virtual time. */
export type GivenEnd = { from: number; expiresAt: number | null; graceUntil: number | null };

const minUses = 1_000;
const dayMs = 86_400_000;

/** An authority, agents, the networks between them, and their callers. */
export class LatchkeyWorld implements Disposable {
  readonly random: Uuid7Random;
  readonly troubles: ReadonlySet<LatchkeyTroubleName>;
  readonly sabotage: LatchkeySabotage | null;
  readonly time: VirtualTime = new VirtualTime(2);
  readonly clock: VirtualClock = this.time.clock();
  readonly authority: SimulatedAuthority;
  /** The way to the authority, and with `chain` the way to the agent in the middle. */
  readonly networks: LatchkeyNetwork[] = [];
  readonly configuration: Configuration;
  readonly faults: Faults;
  /** License keys, and their counts to begin with: high enough that no decrease is lost at 0. */
  readonly keys: ReadonlyMap<string, number>;
  readonly sites: Site[] = [];
  readonly broken: string[] = [];
  /** When the outbox of any agent first had an operation. */
  readonly sighted: Map<string, Sighting> = new Map();
  /** Operations about which a person has decided. */
  readonly decided: Set<string> = new Set();
  /** The ends that the seller has given each license. */
  readonly ends: Map<string, GivenEnd[]> = new Map();
  /** Devices with leases, if licenses end. */
  readonly devices: Device[] = [];
  /** The codes of coupons that anybody has asked for. */
  readonly codes: string[] = [];
  /** Orders, with the codes that they redeem. */
  readonly orders: Map<string, string> = new Map();
  /** The codes of coupons that the seller has deleted, as `foldCouponCode` makes them. */
  readonly deleted: Set<string> = new Set();

  constructor({ seed, troubles, sabotage }: LatchkeyWorldOptions) {
    const random = new Uuid7Random(seed);
    this.random = random;
    this.troubles = new Set(troubles);
    this.sabotage = sabotage;
    this.authority = new SimulatedAuthority(this.clock, random, sabotage?.authority);
    const isShared = ['others', 'seller', 'chain'].some((name) => this.troubles.has(name as 'others'));
    this.configuration = {
      writers: isShared ? 'many' : 'single',
      onUncertain: 'infer',
      concurrency: random.between(1, 4),
      secrets: new Map([[productKey, this.authority.secret]]),
      apiKey: this.authority.apiKey,
      baseUrl: 'https://authority.example',
    };
    this.faults = { crashes: random.pick([0, 0.002, 0.02]), isFull: false, afterCommit: null };
    const licenses = random.between(1, 4);
    this.keys = new Map(Array.from({ length: licenses }, (_, index) => [`KEY-${index}`, minUses + index]));
    this.#placeAgents();
  }

  async begin(): Promise<void> {
    await this.authority.begin(this.keys);
    for (const site of this.sites) {
      await site.start();
      for (const key of this.keys.keys()) site.verify(key);
      await this.pass(2_000);
    }
  }

  changeWeather(weather: Partial<Weather>): void {
    for (const network of this.networks) network.change(weather);
  }

  /** The configuration gets the secret that is right now, and is reloaded. */
  tellSecret(): void {
    this.configuration.secrets = new Map([[productKey, this.authority.secret]]);
    this.configuration.apiKey = this.authority.apiKey;
    for (const { agent } of this.sites) if (!agent.isDead) agent.reload();
  }

  async pass(ms: number): Promise<void> {
    await this.time.advance(ms);
  }

  [Symbol.dispose](): void {
    for (const site of this.sites) site[Symbol.dispose]();
    this.authority[Symbol.dispose]();
  }

  #placeAgents(): void {
    const { random } = this;
    const network = this.#connect(this.authority);
    const sites = this.troubles.has('others') ? random.between(2, 3) : 1;
    for (let index = 0; index < sites; index += 1) this.#place(`site ${index}`, network);
    const [middle] = this.sites;
    if (!this.troubles.has('chain') || middle === undefined) return;
    middle.isMiddle = true;
    this.#place('the lowest site', this.#connect(middle));
  }

  #connect(upstream: ConstructorParameters<typeof LatchkeyNetwork>[0]): LatchkeyNetwork {
    const network = new LatchkeyNetwork(upstream, this.time.clock(), this.random);
    this.networks.push(network);
    return network;
  }

  #place(place: string, network: LatchkeyNetwork): void {
    const wrongMs = this.troubles.has('clocks') ? this.random.pick([-dayMs, 0, dayMs]) : 0;
    this.sites.push(new Site(this, { place, network, wall: this.clock.now() + wrongMs }));
  }
}
