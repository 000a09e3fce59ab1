import { countAfter } from '../../../src/domain/license.ts';
import { localState } from '../../../src/domain/observation.ts';
import { laneOf, type Operation } from '../../../src/domain/operation.ts';
import { verdict } from '../../../src/domain/verdict.ts';
import type { VirtualClock } from '../../support/virtual-clock.ts';
import { freshness, type Machine, type SimulatedAgent } from './simulated-agent.ts';
import type { SimulatedUpstream } from './simulated-upstream.ts';

/** What callers asked and were told, and what the upstream said, as the simulation remembers it. */
export type History = {
  /** By "key kind": changes that were answered 2xx. */
  answered: Map<string, number>;
  /** By "key kind": changes that were asked for. */
  issued: Map<string, number>;
  /** By key: `enabled` in the last answer of the upstream that reached the store. */
  said: Map<string, boolean>;
  /** How many answers of the upstream have reached the store. */
  answers: number;
  /** By key: how fresh the verdict was, and after how many answers. */
  ranks: Map<string, { rank: number; answers: number }>;
  /** Codes of coupons that were answered 201. */
  coupons: string[];
  /** By idempotency key: what was answered, null before the first answer. */
  once: Map<string, string | null>;
  /** What was found broken at the moment of an answer. */
  broken: string[];
};

/** What the invariants look at. */
export type World = {
  readonly keys: readonly string[];
  readonly history: History;
  readonly machine: Machine;
  readonly agent: SimulatedAgent;
  readonly clock: VirtualClock;
  readonly upstream: SimulatedUpstream;
  /** By key: its count upstream when everything began. */
  readonly initialUses: ReadonlyMap<string, number>;
  /** Whether other programs change the counts of these keys too. */
  readonly hasOthers: boolean;
};

/** Throws at the first invariant of the sync design that does not hold at this moment. */
export function checkStep(world: World): void {
  for (const key of world.keys) {
    checkNothingLost(world, key);
    checkDisabledSticks(world, key);
    checkVerdictOnlyWorsens(world, key);
    checkLocalState(world, key);
  }
  checkOrder(world);
  const [broken] = world.history.broken;
  if (broken !== undefined) throw new Error(broken);
}

/** Throws at the first invariant that does not hold once everything has healed. */
export function checkAtRest(world: World): void {
  checkStep(world);
  for (const key of world.keys) checkCount(world, key);
  checkCoupons(world);
}

/** Invariant 1: every answered change is in the outbox; nothing is there that nobody asked for. */
function checkNothingLost({ machine, history }: World, key: string): void {
  for (const kind of ['usage', 'decrease'] as const) {
    const row = machine.database
      .prepare('SELECT count(*) AS count FROM outbox WHERE subject = ? AND kind = ?')
      .get(key, kind);
    const kept = Number(row?.['count']);
    const answered = history.answered.get(`${key} ${kind}`) ?? 0;
    const issued = history.issued.get(`${key} ${kind}`) ?? 0;
    if (kept < answered || kept > issued) {
      throw new Error(`invariant 1: ${key} ${kind}: ${answered} answered, ${kept} kept, ${issued} issued`);
    }
  }
}

/** Invariant 3: once seen disabled, enabled again only when the upstream says so. */
function checkDisabledSticks({ machine, history }: World, key: string): void {
  const observation = machine.transaction.observations.get(key);
  if (observation?.local.enabled === true && history.said.get(key) === false) {
    throw new Error(`invariant 3: ${key} is answered enabled, and the upstream last said disabled`);
  }
}

const ranks = ['fresh', 'stale', 'grace', 'expired'] as const;

/** Invariant 5: without a new answer a verdict only worsens, whatever the clock does. */
function checkVerdictOnlyWorsens({ agent, machine, history, clock }: World, key: string): void {
  // Nobody answers then, and nobody reads the clock.
  if (agent.isDead) return;
  const observation = machine.transaction.observations.get(key);
  if (observation === null || observation.gone) return;
  const provenance = verdict(observation, freshness, clock.now());
  const rank =
    provenance.verdict === 'answer' ? ranks.indexOf(provenance.freshness) : ranks.indexOf('expired');
  const before = history.ranks.get(key);
  if (before !== undefined && before.answers === history.answers && rank < before.rank) {
    throw new Error(
      `invariant 5: ${key} went from ${ranks[before.rank]} to ${ranks[rank]} without an answer`,
    );
  }
  history.ranks.set(key, { rank, answers: history.answers });
}

/** What callers see is always what the confirmed record and the unfinished changes make together. */
function checkLocalState({ machine }: World, key: string): void {
  const { observations, operations } = machine.transaction;
  const observation = observations.get(key);
  if (observation === null) return;
  const expected = localState(observation.license, operations.shown(key));
  if (JSON.stringify(expected) !== JSON.stringify(observation.local)) {
    const [kept, made] = [JSON.stringify(observation.local), JSON.stringify(expected)];
    throw new Error(`local state: ${key} is shown as ${kept}, its operations make ${made}`);
  }
}

/**
 * Invariant 4: operations of one lane arrive in order. A disable that comes twice, the second time after
 * another disable, changes nothing; after an enable it would.
 */
function checkOrder({ upstream }: World): void {
  const latest = new Map<string, number>();
  for (const { licenseKey, kind, seq } of upstream.arrivals) {
    const lane = `${licenseKey} ${laneOf[kind]}`;
    const before = latest.get(kind === 'disable' ? `${lane} enable` : lane) ?? 0;
    if (seq < before) throw new Error(`invariant 4: ${lane}: operation ${seq} arrived after ${before}`);
    latest.set(lane, Math.max(seq, latest.get(lane) ?? 0));
    latest.set(`${lane} ${kind}`, seq);
  }
}

/** Invariant 2: what the upstream counted is what was recorded here, but for what is labelled as doubt. */
function checkCount(world: World, key: string): void {
  const { machine, upstream, initialUses } = world;
  const operations = rows(world, key);
  const counted = (kind: string): number =>
    upstream.arrivals.filter((arrival) => arrival.licenseKey === key && arrival.kind === kind).length;
  if (!world.hasOthers) {
    const expected = operations.reduce(
      (uses, { kind }) => (kind === 'usage' || kind === 'decrease' ? countAfter(uses, kind) : uses),
      initialUses.get(key) ?? 0,
    );
    const { uses } = upstream.license(key);
    const unsure = operations.filter(({ progress }) => progress.state !== 'delivered').length;
    if (uses !== expected || unsure > 0) {
      throw new Error(
        `invariant 2: ${key} counts ${uses} upstream, ${expected} were recorded, ${unsure} not delivered`,
      );
    }
  } else {
    const recorded = operations.filter(({ kind }) => kind === 'usage').length;
    const doubts = operations
      .filter(isLabelled)
      .reduce((sum, { attempts }) => sum + Math.max(1, attempts - 1), 0);
    const error = Math.abs(counted('usage') - recorded);
    if (error > doubts) {
      throw new Error(`invariant 2: ${key} is off by ${error} upstream, only ${doubts} may be in doubt`);
    }
  }
  const { local } = machine.transaction.observations.get(key) ?? { local: { pending: 0 } };
  const held = operations.filter(({ progress }) => progress.state === 'uncertain').length;
  if (local.pending > held) throw new Error(`at rest: ${key} still shows ${local.pending} pending`);
}

function isLabelled({ progress }: Operation): boolean {
  return progress.state === 'inferred' || progress.state === 'uncertain';
}

function rows({ machine }: World, key: string): Operation[] {
  const ids = machine.database
    .prepare(`SELECT id FROM outbox WHERE subject = ? AND lane = 'counter' ORDER BY seq`)
    .all(key);
  return ids.map(({ id }) => machine.transaction.operations.get(String(id))).filter((row) => row !== null);
}

/** Every coupon that was answered exists upstream once. */
function checkCoupons({ upstream, history }: World): void {
  for (const code of history.coupons) {
    const count = upstream.coupons.filter((coupon) => coupon.code === code).length;
    if (count !== 1) throw new Error(`coupons: ${code} exists ${count} times upstream`);
  }
}
