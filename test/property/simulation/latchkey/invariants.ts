import { isLicenseKind, type OperationKind } from '../../../../src/domain/outbox/operation.ts';
import { checkCouponsAtRest, checkCouponStep } from './coupon-invariants.ts';
import type { LatchkeyWorld, OperationRow, Site } from './world.ts';

/** Throws at the first invariant that does not hold at this moment. */
export function checkLatchkeyStep(world: LatchkeyWorld): void {
  const [broken] = [...world.broken, ...world.network.broken];
  if (broken !== undefined) throw new Error(broken);
  for (const site of world.sites) {
    checkProtocol(world, site);
    world.noteDoubt(site);
    checkNothingLost(site);
    checkWaits(site);
    const operations = site.operations();
    for (const key of world.keys.keys()) {
      checkShown(site, key, operations);
      checkCounted(world, site, key, operations);
    }
  }
  if (world.troubles.has('coupons')) checkCouponStep(world);
}

/** Throws at the first invariant that does not hold after all troubles have ended. */
export function checkLatchkeyAtRest(world: LatchkeyWorld): void {
  checkLatchkeyStep(world);
  const ledger = ledgerOf(world);
  for (const site of world.sites) {
    for (const operation of site.operations())
      if (isLicenseKind(operation.kind)) checkOperation(world, ledger, operation);
    for (const key of world.keys.keys()) checkSeen(world, site, key);
  }
  for (const [key, initial] of world.keys) checkCount(world, ledger, key, initial);
  checkIdentities(world);
  if (world.troubles.has('coupons')) checkCouponsAtRest(world);
}

/** An agent begins a new identity only if a store was restored or copied, or a person chose the protocol. */
function checkIdentities(world: LatchkeyWorld): void {
  if (surprising.some((name) => world.troubles.has(name))) return;
  const { agents } = world.authority;
  if (agents > world.sites.length)
    throw new Error(`identities: ${world.sites.length} agents have begun ${agents} of them`);
}

/** Only a person ends pushing. */
function checkProtocol(world: LatchkeyWorld, site: Site): void {
  if (site.isPushing) site.hasPushed = true;
  else if (site.hasPushed && !world.troubles.has('person'))
    throw new Error(`protocol: ${site.place} has given up /sync/v1`);
}

/** Every answered change is in the outbox, and nothing else. */
function checkNothingLost({ machine, answered, issued, place }: Site): void {
  const kept = new Map(machine.kept().map((row) => [row.name, row.kept]));
  for (const name of new Set([...kept.keys(), ...answered.keys()])) {
    if (!/ (?:usage|decrease)$/.test(name)) continue;
    const counts = [answered.get(name) ?? 0, kept.get(name) ?? 0, issued.get(name) ?? 0] as const;
    if (counts[0] > counts[1] || counts[1] > counts[2]) {
      const [one, two, three] = counts;
      throw new Error(`lost: ${place}: ${name}: ${one} answered, ${two} kept, ${three} issued`);
    }
  }
}

/** Only the head of a queue has a time. Another one that is due would keep a loop busy without end. */
function checkWaits({ machine, place }: Site): void {
  const row = machine.database
    .prepare(
      'SELECT subject, queue FROM outbox WHERE next_at IS NOT NULL GROUP BY subject, queue HAVING count(*) > 1',
    )
    .get();
  if (row !== undefined)
    throw new Error(`waits: ${place}: several operations of ${JSON.stringify(row)} have a time`);
}

const unfinished = new Set(['pending', 'in_flight', 'uncertain']);

/** What callers see is the license with the unfinished changes; a revocation that is not delivered is shown. */
function checkShown({ machine, place }: Site, key: string, operations: readonly OperationRow[]): void {
  const snapshot = machine.transaction.snapshots.get(key);
  if (snapshot === null) return;
  const { license, local } = snapshot;
  const ours = operations.filter(({ subject }) => subject === key);
  const open = ours.filter(({ state, held }) => unfinished.has(state) && held === 0);
  const uses = license.uses + open.reduce((sum, { kind }) => sum + (deltas[kind] ?? 0), 0);
  const disables = ours.some(
    ({ kind, state }) =>
      kind === 'disable' && (unfinished.has(state) || state === 'dead' || state === 'conflicted'),
  );
  const made = `${uses} uses, enabled: ${license.enabled && !disables}`;
  const shown = `${local.uses} uses, enabled: ${local.enabled}`;
  if (made !== shown) throw new Error(`shown: ${place}: ${key} shows ${shown}; its operations make ${made}`);
}

const deltas: Readonly<Partial<Record<string, number>>> = { usage: 1, decrease: -1 };

/** Troubles by which a count that was seen and what is called delivered may differ until the next read. */
const surprising = ['authority_restore', 'agent_restore', 'rollback', 'copy', 'person'] as const;

/** The count that the upstream last told contains each own change that is called delivered, once, and no other own change. */
function checkCounted(
  world: LatchkeyWorld,
  { machine, place, isPushing }: Site,
  key: string,
  operations: readonly OperationRow[],
): void {
  const snapshot = machine.transaction.snapshots.get(key);
  if (snapshot === null || !isPushing || surprising.some((name) => world.troubles.has(name))) return;
  const delivered = operations.filter(
    ({ subject, state }) => subject === key && (state === 'delivered' || state === 'inferred'),
  );
  const own = delivered.reduce((sum, { kind }) => sum + (deltas[kind] ?? 0), 0);
  const ofOthers = snapshot.license.uses - (world.keys.get(key) ?? 0) - own;
  const least = -othersIssued(world, place, `${key} decrease`);
  const most = othersIssued(world, place, `${key} usage`) + countedElsewhere(world, key);
  if ((ofOthers < least || ofOthers > most) && !isDoubled(world, key)) {
    const seen = `${snapshot.license.uses} uses, of which ${own} are its own`;
    throw new Error(`counted: ${place}: ${key} was seen with ${seen}; others made ${least} to ${most}`);
  }
}

/** The plain protocol, which has a simulation of its own, has sent an operation more than once. */
function isDoubled({ authority }: LatchkeyWorld, key: string): boolean {
  const sent = authority.arrivals.filter((each) => each.key === key && each.operation !== null);
  return new Set(sent.map(({ operation }) => operation)).size < sent.length;
}

function othersIssued({ sites }: LatchkeyWorld, place: string, name: string): number {
  const others = sites.filter((site) => site.place !== place);
  return others.reduce((sum, { issued }) => sum + (issued.get(name) ?? 0), 0);
}

function countedElsewhere({ authority }: LatchkeyWorld, key: string): number {
  return authority.arrivals.filter(
    (each) => each.operation === null && each.key === key && each.event === 'usage',
  ).length;
}

/** What has arrived at the authority, as it knows it now. `times`: how often, by operation. */
type Ledger = { times: Map<string, number>; sums: Map<string, number> };

function ledgerOf({ authority, network, sites }: LatchkeyWorld): Ledger {
  const kinds = new Map(network.pushed);
  for (const site of sites) {
    for (const { id, kind, subject } of site.operations()) kinds.set(id, { kind, key: subject });
  }
  const ledger: Ledger = { times: new Map(), sums: new Map() };
  const add = (id: string | null, key: string, kind: string): void => {
    if (id !== null) ledger.times.set(id, (ledger.times.get(id) ?? 0) + 1);
    ledger.sums.set(key, (ledger.sums.get(key) ?? 0) + (deltas[kind] ?? 0));
  };
  for (const id of authority.appliedByPush()) {
    const operation = kinds.get(id);
    if (operation === undefined) throw new Error(`nobody has made the operation ${id}`);
    add(id, operation.key, operation.kind);
  }
  for (const { operation, key, event } of authority.arrivals) add(operation, key, event);
  return ledger;
}

/** Each operation that arrived has changed the count once. */
function checkCount({ authority }: LatchkeyWorld, { sums }: Ledger, key: string, initial: number): void {
  const { uses } = authority.license(key);
  const due = initial + (sums.get(key) ?? 0);
  if (uses !== due)
    throw new Error(`count: ${key} has ${uses} uses; the operations that arrived make ${due}`);
}

function checkOperation(world: LatchkeyWorld, { times }: Ledger, operation: OperationRow): void {
  const { id, kind, subject, state, attempts, lastError } = operation;
  const arrived = times.get(id) ?? 0;
  const fault = faultOf(world, operation, arrived);
  if (fault === null) return;
  const what = `${kind} ${id} of ${subject} is ${state} after ${attempts} attempts, arrived ${arrived} times`;
  throw new Error(`operation: ${what}: ${fault}${lastError === null ? '' : ` (${lastError})`}`);
}

function faultOf(
  { network, authority, doubted }: LatchkeyWorld,
  { id, kind, state, pushSeq }: OperationRow,
  arrived: number,
): string | null {
  const isCount = isCounted(kind);
  // The plain protocol has a simulation of its own.
  const isDoubted = network.sentPlain.has(id) || doubted.has(id);
  if (isDoubted && state !== 'pending' && state !== 'in_flight') return null;
  switch (state) {
    case 'delivered':
      if (isCount && arrived > 1) return 'it counted more than once';
      if (arrived > 0 || !isCount) return null;
      // What an authority lost that was sent by the plain protocol cannot be sent again.
      return authority.restores > 0 && pushSeq === null ? null : 'it never arrived';
    case 'dead':
    case 'cancelled':
    case 'dropped':
    case 'conflicted':
      return arrived > 0 && isCount ? 'it was applied' : null;
    case 'inferred':
    case 'uncertain':
      return 'no doubt is due';
    case 'pending':
    case 'in_flight':
      return 'it still waits';
    default:
      return state satisfies never;
  }
}

function isCounted(kind: OperationKind): boolean {
  return kind === 'usage' || kind === 'decrease';
}

/** At rest callers see what the authority has. */
function checkSeen({ authority }: LatchkeyWorld, { machine, place }: Site, key: string): void {
  const snapshot = machine.transaction.snapshots.get(key);
  if (snapshot === null) return;
  const [seen, is] = [snapshot.license, authority.license(key)].map(
    ({ uses, enabled }) => `${uses} uses, enabled: ${enabled}`,
  );
  if (seen !== is) throw new Error(`at rest: ${place}: ${key} was seen with ${seen}; it has ${is}`);
}
