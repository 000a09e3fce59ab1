import type { StatementSync } from 'node:sqlite';
import type { LedgerEntry } from './ledger.ts';
import { freshness, type Machine } from './machine.ts';
import type { World } from './world.ts';

/** An operation as in its row of the outbox. */
type OperationRow = {
  id: string;
  kind: string;
  amount: number;
  subject: string;
  state: string;
  held: number;
  attempts: number;
};

/** Throws at the first invariant (src/sync/LIMITS.md, Invariants) that does not hold at this moment. */
export function checkStep(world: World): void {
  checkNothingLost(world);
  for (const key of world.keys) {
    checkDisabledSticks(world, key);
    checkVerdictOnlyWorsens(world, key);
    checkLocalState(world, key);
  }
  checkOrder(world);
  const broken = world.watch.broken[0] ?? world.history.broken[0];
  if (broken !== undefined) throw new Error(broken);
}

/** Throws at the first invariant that does not hold after all troubles have ended. */
export function checkAtRest(world: World): void {
  checkStep(world);
  const operations = queriesOf(world.machine).all() as OperationRow[];
  for (const operation of operations) checkOperation(world, operation);
  if (world.isStrict) checkAllDelivered(operations);
  for (const key of world.keys) {
    checkShown(world, key);
    checkProduct(world, key);
  }
  checkCoupons(world, operations);
  if (world.isAlone) checkNobodyElse(world);
}

type Queries = { all: () => unknown[]; shown: (subject: string) => unknown[] };
const prepared = new WeakMap<Machine, Queries>();

function queriesOf(machine: Machine): Queries {
  const known = prepared.get(machine);
  if (known !== undefined) return known;
  const prepare = (sql: string): StatementSync => machine.database.prepare(sql);
  const columns = 'id, kind, amount, subject, state, held, attempts';
  const all = prepare(`SELECT ${columns} FROM outbox ORDER BY seq`);
  const shown = prepare(
    `SELECT ${columns} FROM outbox WHERE subject = ? AND queue IN ('counter', 'state')
       AND (state IN ('pending', 'in_flight', 'uncertain') OR state IN ('dead', 'conflicted') AND kind = 'disable')
     ORDER BY seq`,
  );
  const queries = {
    all: () => all.all(),
    shown: (subject: string) => shown.all(subject),
  };
  prepared.set(machine, queries);
  return queries;
}

/** Invariant 1: the outbox contains every accepted change, and nothing else. */
function checkNothingLost(world: World): void {
  const kept = new Map<string, number>();
  for (const row of world.machine.kept()) {
    const name = world.ledger.fold(row.name);
    kept.set(name, (kept.get(name) ?? 0) + row.kept);
  }
  const { answered, issued } = world.history;
  for (const name of new Set([...kept.keys(), ...answered.keys()])) {
    if (!/ (?:usage|decrease)$/.test(name)) continue;
    const counts = [answered.get(name) ?? 0, kept.get(name) ?? 0, issued.get(name) ?? 0] as const;
    if (counts[0] > counts[1] || counts[1] > counts[2]) {
      throw new Error(`invariant 1: ${name}: ${counts[0]} answered, ${counts[1]} kept, ${counts[2]} issued`);
    }
  }
}

/** Invariant 3: once seen disabled, enabled again only when the upstream says so. */
function checkDisabledSticks({ machine, history, ledger }: World, key: string): void {
  const said = history.said.get(ledger.fold(key));
  if (said === undefined || said.disabled <= said.enabled) return;
  if (machine.transaction.snapshots.get(key)?.local.enabled === true) {
    throw new Error(`invariant 3: ${key} is answered enabled, and the upstream last said disabled`);
  }
}

const ranks = ['fresh', 'stale', 'grace', 'expired'] as const;

/** Invariant 5: without a new answer a verdict only worsens, whatever the clock does. */
function checkVerdictOnlyWorsens({ agent, machine, history, clock }: World, key: string): void {
  // Nobody answers then, and nobody reads the clock.
  if (agent.isDead) return;
  const snapshot = machine.transaction.snapshots.get(key);
  if (snapshot === null || snapshot.gone || !snapshot.local.enabled) return;
  const age = clock.now() - snapshot.confirmedAt;
  // A crash may lose what was reached since the last mark, which is less than two minutes.
  if (age < -120_000 && clock.isRecorded)
    throw new Error(`invariant 5: ${key} was confirmed ${-age} ms from now`);
  const limits = [freshness.freshMs, freshness.staleMs, freshness.graceMs];
  const rank = limits.filter((limit) => age > limit).length;
  const before = history.ranks.get(key);
  if (before !== undefined && before.answers === history.answers && rank < before.rank) {
    const [from, to] = [ranks[before.rank], ranks[rank]];
    throw new Error(`invariant 5: ${key} went from ${from} to ${to} without an answer`);
  }
  history.ranks.set(key, { rank, answers: history.answers });
}

/** An agent that writes alone, and forgets nothing, never takes a count of its own for another writer's. */
function checkNobodyElse({ machine, keys }: World): void {
  const blamed = keys.find((key) => machine.transaction.snapshots.get(key)?.manyWriters === true);
  if (blamed !== undefined) throw new Error(`other writers: ${blamed} is said to have some`);
}

/** What callers see is always what the confirmed record and the unfinished changes make together. */
function checkLocalState({ machine }: World, key: string): void {
  const snapshot = machine.transaction.snapshots.get(key);
  if (snapshot === null) return;
  const { local, license } = snapshot;
  const operations = queriesOf(machine).shown(key) as OperationRow[];
  let uses = Math.max(0, license.uses);
  let isDisabled = false;
  for (const { kind, amount, held } of operations) {
    if (kind === 'usage' && held === 0) uses += amount;
    if (kind === 'decrease' && held === 0) uses = Math.max(0, uses - 1);
    if (kind === 'disable') isDisabled = true;
  }
  const pending = operations.filter(({ state }) => state !== 'dead' && state !== 'conflicted').length;
  const made = `${uses} uses, enabled: ${license.enabled && !isDisabled}, ${pending} pending`;
  const shown = `${local.uses} uses, enabled: ${local.enabled}, ${local.pending} pending`;
  if (made !== shown) throw new Error(`local state: ${key} shows ${shown}; its operations make ${made}`);
}

/**
 * Invariant 4: operations of one queue arrive in order. A disable that comes twice, the second time after
 * another disable, changes nothing; after an enable it would. What a person sent again is out of its order.
 */
function checkOrder({ ledger, history, order }: World): void {
  for (; order.checked < ledger.entries.length; order.checked += 1) {
    const entry = ledger.entries[order.checked];
    if (entry === undefined || entry.operation === null || history.decided.has(entry.operation)) continue;
    const { key, event, seq, incarnation } = entry;
    const isCount = event === 'usage' || event === 'decrease';
    const queue = `${incarnation} ${key} ${isCount ? 'counter' : 'state'}`;
    const before = order.latest.get(event === 'disable' ? `${queue} enable` : queue) ?? 0;
    if (seq < before) throw new Error(`invariant 4: ${queue}: operation ${seq} arrived after ${before}`);
    order.latest.set(queue, Math.max(seq, order.latest.get(queue) ?? 0));
    order.latest.set(`${queue} ${event}`, seq);
  }
}

/**
 * Invariant 2, one operation at a time, so that no loss hides a double: what is called delivered arrived
 * once, what is called not applied never did, and only what is labelled may be otherwise.
 */
function checkOperation(world: World, operation: OperationRow): void {
  const { id, kind, subject, state, attempts } = operation;
  const arrivals = arrivalsOf(world, operation);
  const fault = faultOf(world, operation, arrivals);
  if (fault === null) return;
  const times = `${arrivals.length} times (${arrivals.filter(({ moved }) => moved).length} to some effect)`;
  throw new Error(
    `invariant 2: ${kind} ${id} of ${subject} is ${state} after ${attempts} attempts, arrived ${times}: ${fault}`,
  );
}

type Arrival = Pick<LedgerEntry, 'moved' | 'amount'>;

/** Each time that an operation arrived upstream. */
function arrivalsOf({ ledger }: World, { id, kind }: OperationRow): Arrival[] {
  if (kind !== 'create_coupon') return ledger.entries.filter(({ operation }) => operation === id);
  return ledger.creations.filter((operation) => operation === id).map(() => ({ moved: true, amount: 1 }));
}

function faultOf(world: World, operation: OperationRow, arrivals: readonly Arrival[]): string | null {
  const { id, kind, amount, state, attempts, subject } = operation;
  const decided = world.history.decided.get(id);
  const isCount = kind === 'usage' || kind === 'decrease';
  if (arrivals.some((each) => each.amount !== amount)) return `it counts ${amount}`;
  // Before it is sent again it is looked for in the list, whoever wants it sent.
  if (kind === 'create_coupon' && arrivals.length > 1) return 'it was created more than once';
  switch (state) {
    case 'delivered':
      if (kind === 'create_coupon') return isListed(world, subject) ? null : 'it does not exist';
      if (decided !== undefined) return null;
      if (isCount && arrivals.length > 1) return 'it counted more than once';
      // What a read shows to be so already needs no request.
      return arrivals.length > 0 || wasEver(world, subject, alreadySo[kind]) ? null : 'it never arrived';
    case 'dead':
    case 'cancelled':
    case 'conflicted':
    case 'dropped': {
      const wasInDoubt =
        decided?.inDoubt === true || (decided !== undefined && world.history.restored.has(id));
      return arrivals.some(({ moved }) => moved) && !wasInDoubt ? 'it was applied' : null;
    }
    case 'inferred':
    case 'uncertain':
      // A restored store does not know how often it was sent in the past that was lost.
      if (!isCount || world.history.restored.has(id)) return null;
      return arrivals.length > attempts ? 'it counted more often than it was sent' : null;
    case 'pending':
    case 'in_flight':
      return world.isStuck(subject) ? null : 'it still waits';
    default:
      return 'nobody knows this state';
  }
}

type Shown = { uses: number; enabled: boolean };

/** What makes an operation needless, by its kind. */
const alreadySo: Readonly<Record<string, (standing: Shown) => boolean>> = {
  enable: ({ enabled }) => enabled,
  disable: ({ enabled }) => !enabled,
  decrease: ({ uses }) => uses <= 0,
};

function wasEver({ ledger, initial }: World, subject: string, how?: (standing: Shown) => boolean): boolean {
  if (how === undefined) return false;
  const key = ledger.fold(subject);
  const uses = initial.get(key);
  const first = uses === undefined ? [] : [{ key, uses, enabled: true }];
  return [...first, ...ledger.entries].some((standing) => standing.key === key && how(standing));
}

/** Without other writers and refusals, no operation stays uncertain. */
function checkAllDelivered(operations: readonly OperationRow[]): void {
  const left = operations.find(
    ({ kind, state }) => (kind === 'usage' || kind === 'decrease') && state !== 'delivered',
  );
  if (left !== undefined) {
    throw new Error(
      `invariant 2: ${left.kind} ${left.id} of ${left.subject} is ${left.state}: no uncertainty is due`,
    );
  }
}

/** At rest, callers see the upstream's state, except for operations that wait for a person. */
function checkShown(world: World, key: string): void {
  const snapshot = world.machine.transaction.snapshots.get(key);
  if (snapshot === null || world.isStuck(key)) return;
  const operations = queriesOf(world.machine).shown(key) as OperationRow[];
  const held = operations.filter(({ state }) => state === 'uncertain').length;
  const { local, license } = snapshot;
  if (local.pending > held) throw new Error(`at rest: ${key} still shows ${local.pending} pending`);
  const upstream = world.ledger.license(key);
  const [seen, is] = [license, upstream].map(({ uses, enabled }) => `${uses} uses, enabled: ${enabled}`);
  if (seen !== is) throw new Error(`at rest: ${key} was seen with ${seen}; it has ${is}`);
}

/** At rest each key belongs to the product under whose secret the upstream knows it. */
function checkProduct(world: World, key: string): void {
  const snapshot = world.machine.transaction.snapshots.get(key);
  const product = world.productIdOf(key);
  if (snapshot !== null && snapshot.productId !== product) {
    throw new Error(`products: ${key} belongs to ${snapshot.productId}, not to ${product}`);
  }
}

function isListed({ ledger }: World, subject: string): boolean {
  return ledger.coupons.some(({ code }) => code.toLowerCase() === subject);
}

/** Every accepted coupon exists, unless it is reported to a person. */
function checkCoupons({ ledger, history }: World, operations: readonly OperationRow[]): void {
  const told = new Set(
    operations
      .filter(({ kind, state }) => kind === 'create_coupon' && state !== 'delivered')
      .map(({ subject }) => subject),
  );
  const codes = new Set(ledger.coupons.map(({ code }) => code));
  const lost = history.coupons.find((code) => !codes.has(code) && !told.has(code.toLowerCase()));
  if (lost !== undefined) throw new Error(`coupons: ${lost} was answered and does not exist upstream`);
}
