import type { Tenant } from '../../domain/access/principal.ts';
import type { CouponTerms } from '../../domain/checkout/coupon.ts';
import type { Quote, Redemption } from '../../domain/checkout/quote.ts';
import { done, failWith, type Problem, type Result } from '../../domain/problem/problem.ts';
import { decideSequence } from '../../domain/sequence.ts';
import {
  fitReply,
  isLicenseChange,
  isUndecided,
  reachOf,
  type MalformedOperation,
  type OperationResult,
  type PushedCoupon,
  type PushedLicenseChange,
  type PushedOperation,
  type PushedRedemption,
} from '../../domain/sync/push.ts';
import { createCoupon } from '../authority/coupon.ts';
import { changeLicense } from '../authority/license.ts';
import { redeemCoupon, storedCouponCode, voidRedemption } from '../checkout.ts';
import type { Context } from '../ports.ts';
import { storedLicenseKey } from '../services.ts';
import type { AuthorityTransaction, Awaitable } from '../tables.ts';
import { hasRoom, tooManyAgents } from './room.ts';
import type { StoredOutcome, SyncAgent } from './tables.ts';

export type ApplyPush = {
  agentId: string;
  tenant: Tenant;
  seq: number;
  /** SHA-256 of the body. */
  digest: string;
  operations: readonly (PushedOperation | MalformedOperation)[];
};

/** `results`: in the order of the operations. */
export type AppliedPush = { seq: number; results: readonly OperationResult[] };

/**
 * Carries a push out, once (src/sync/README.md, Between Latchkeys). A refused operation changes nothing, and the others of
 * its push are applied. A push that does not follow the last one changes nothing.
 */
export async function applyPush(
  transaction: AuthorityTransaction,
  command: ApplyPush,
  context: Context,
): Promise<Result<AppliedPush>> {
  const { tenant } = command;
  return await pushOnce(transaction, command, context, {
    apply: async (operation) => done(await applyOnce(transaction, tenant, operation, context)),
    again: (operation, before) => resultBefore(transaction, tenant.accountId, operation, before),
  });
}

/** How a store carries operations out. */
export type Steps = {
  /** Carries an operation out. A refusal refuses the whole push, which then changes nothing. */
  apply: (operation: PushedOperation | MalformedOperation) => Promise<Result<OperationResult>>;
  /** The result of an operation that an earlier push, or the same one, has applied. */
  again: (
    operation: PushedOperation | MalformedOperation,
    before: Pick<StoredOutcome, 'couponId'>,
  ) => Awaitable<OperationResult>;
};

type PushTables = Pick<AuthorityTransaction, 'sync'>;

/** Carries a push out unless it was carried out before. */
export async function pushOnce(
  transaction: PushTables,
  command: ApplyPush,
  context: Context,
  steps: Steps,
): Promise<Result<AppliedPush>> {
  const { sync } = transaction;
  const { agentId, tenant, seq, digest } = command;
  const agent = await sync.agent(agentId, reachOf(tenant));
  const last = agent ?? { seq: 0, digest: '' };
  const decision = decideSequence(last, { seq, digest, challenge: null }, '');
  if (decision === 'repeated' && agent !== null) {
    await keepOutcomes(transaction, command, context);
    return { ...done(JSON.parse(agent.reply) as AppliedPush), unchanged: true };
  }
  const sequence = { last: last.seq, epoch: await sync.epoch() };
  if (decision === 'reused') {
    return failWith('sequence_reused', `The push ${seq} of this agent was another one.`, { sequence });
  }
  if (decision !== 'next') {
    return failWith('out_of_sequence', `The last push of this agent has the number ${last.seq}.`, {
      sequence,
    });
  }
  if (agent === null && !(await hasRoom(transaction, reachOf(tenant), context.now))) return tooManyAgents();
  const applied = await applyOperations(transaction, command, context, steps);
  if (!applied.ok) return applied;
  const reply: AppliedPush = { seq, results: fitReply(applied.value) };
  await storePush(transaction, agent, { command, reply: JSON.stringify(reply), now: context.now });
  return done(reply);
}

/**
 * An agent counts the days for which it may send an operation again from the answer that it has got. So outcomes are kept
 * from the last request with the operation, not from the first.
 */
async function keepOutcomes(
  { sync }: PushTables,
  { tenant: { accountId }, operations }: ApplyPush,
  { now }: Context,
): Promise<void> {
  const ids = operations.flatMap(({ id }) => id ?? []);
  await sync.addOutcomes(accountId, await sync.outcomes(accountId, ids), now);
}

async function storePush(
  { sync }: PushTables,
  agent: SyncAgent | null,
  {
    command: { agentId, tenant, seq, digest },
    reply,
    now,
  }: { command: ApplyPush; reply: string; now: number },
): Promise<void> {
  const push = { seq, digest, reply, seenAt: now };
  if (agent !== null) await sync.put({ ...agent, ...push });
  else await sync.add({ agentId, reach: reachOf(tenant), ...tenant, ...push, followed: 0, createdAt: now });
}

async function applyOperations(
  { sync }: PushTables,
  { tenant: { accountId }, operations }: ApplyPush,
  { now }: Context,
  { apply, again }: Steps,
): Promise<Result<OperationResult[]>> {
  const ids = operations.flatMap(({ id }) => id ?? []);
  const stored = await sync.outcomes(accountId, ids);
  const known = new Map(stored.map((outcome) => [outcome.id, outcome]));
  const added = new Map<string, StoredOutcome>();
  const results: OperationResult[] = [];
  for (const operation of operations) {
    const before = operation.id === null ? undefined : known.get(operation.id);
    // What was refused was not applied: it is tried again, because a person or a provisional redemption asks for that.
    const isApplied = before?.outcome === 'applied';
    const applied = isApplied ? done(await again(operation, before)) : await apply(operation);
    if (!applied.ok) return applied;
    const result = applied.value;
    results.push(result);
    if (operation.id === null || isUndecided(result)) continue;
    // The outcome of an operation that is sent again is kept from now on.
    const outcome = isApplied ? before : outcomeOf(operation.id, result);
    known.set(operation.id, outcome);
    added.set(operation.id, outcome);
  }
  await sync.addOutcomes(accountId, [...added.values()], now);
  return done(results);
}

function outcomeOf(id: string, result: OperationResult): StoredOutcome {
  return {
    id,
    outcome: result.outcome,
    code: result.outcome === 'applied' ? null : result.code,
    couponId: result.outcome === 'applied' ? (result.couponId ?? null) : null,
  };
}

/** The result of an operation that an earlier push, or the same one, has applied. */
async function resultBefore(
  transaction: AuthorityTransaction,
  accountId: string,
  operation: PushedOperation | MalformedOperation,
  { couponId }: Pick<StoredOutcome, 'couponId'>,
): Promise<OperationResult> {
  const outcome = 'applied';
  // An agent that did not know of it may count it again until it is told the license.
  if (isLicenseChange(operation))
    await transaction.sync.announce([await storedLicenseKey(transaction, operation.licenseKey)]);
  if (operation.kind === 'redeem') {
    const redemption = await transaction.redemptions.get(accountId, operation.order);
    return redemption === null ? { outcome } : redeemed(operation, redemption);
  }
  return couponId === null ? { outcome } : { outcome, couponId };
}

async function applyOnce(
  transaction: AuthorityTransaction,
  tenant: Tenant,
  operation: PushedOperation | MalformedOperation,
  context: Context,
): Promise<OperationResult> {
  if (operation.kind === null) return { outcome: 'refused', code: 'parameters_invalid' };
  const applied = await transaction.attempt(() => carryOut(transaction, tenant, operation, context));
  return applied.ok ? applied.value : refused(applied.problem);
}

async function carryOut(
  transaction: AuthorityTransaction,
  tenant: Tenant,
  operation: PushedOperation,
  context: Context,
): Promise<Result<OperationResult>> {
  const { accountId } = tenant;
  switch (operation.kind) {
    case 'create_coupon':
      return await create(transaction, accountId, operation, context);
    case 'redeem':
      return await redeem(transaction, accountId, operation, context);
    case 'void': {
      const voided = await voidRedemption(transaction, { accountId, order: operation.order });
      return voided.ok ? done({ outcome: 'applied' }) : voided;
    }
    case 'usage':
    case 'decrease':
    case 'enable':
    case 'disable':
      return await change(transaction, tenant, operation, context);
    default:
      return operation satisfies never;
  }
}

function refused({ code, reasons }: Problem): OperationResult {
  // The reasons of a coupon's refusal are those of its quote.
  const listed = reasons as Quote['reasons'] | undefined;
  return { outcome: 'refused', code, ...(listed !== undefined && { reasons: listed }) };
}

async function change(
  transaction: AuthorityTransaction,
  tenant: Tenant,
  { kind, licenseKey: sent, seenEnabled }: PushedLicenseChange,
  context: Context,
): Promise<Result<OperationResult>> {
  const licenseKey = await storedLicenseKey(transaction, sent);
  if (kind === 'enable' && seenEnabled) {
    // The reach is checked by the change. A license of another reach must not be told from a missing one.
    const license = await transaction.licenses.get(licenseKey);
    const isReached = license !== null && (await reachesProduct(transaction, tenant, license.productKey));
    if (isReached && !license.enabled) return done({ outcome: 'conflicted', code: 'revoked' });
  }
  const changed = await changeLicense(transaction, { tenant, licenseKey, trigger: kind }, context);
  return changed.ok ? done({ outcome: 'applied' }) : changed;
}

async function reachesProduct(
  { products }: AuthorityTransaction,
  tenant: Tenant,
  productKey: string,
): Promise<boolean> {
  if (tenant.productKey !== null) return tenant.productKey === productKey;
  return (await products.get(productKey))?.accountId === tenant.accountId;
}

async function create(
  transaction: AuthorityTransaction,
  accountId: string,
  { terms }: PushedCoupon,
  _context: Context,
): Promise<Result<OperationResult>> {
  const taken = await transaction.coupons.byCode(accountId, terms.code);
  if (taken !== null) {
    const { id, ...others } = taken;
    return areSameTerms(terms, others)
      ? done({ outcome: 'applied', couponId: id })
      : done({ outcome: 'conflicted', code: 'coupon_code_taken' });
  }
  const created = await createCoupon(transaction, { accountId, terms });
  return created.ok ? done({ outcome: 'applied', couponId: created.value.id }) : created;
}

function areSameTerms(one: CouponTerms, other: CouponTerms): boolean {
  const text = ({ scope, discount, ...rest }: CouponTerms): string =>
    JSON.stringify(
      [scope, discount, rest].map((part) =>
        Object.entries(part).toSorted(([left], [right]) => (left < right ? -1 : 1)),
      ),
    );
  return text(one) === text(other);
}

async function redeem(
  transaction: AuthorityTransaction,
  accountId: string,
  operation: PushedRedemption,
  context: Context,
): Promise<Result<OperationResult>> {
  const { order, cart, provisional, at } = operation;
  const code = await storedCouponCode(cart.code, (each) => transaction.coupons.byCode(accountId, each));
  // A caller that was answered without the authority has got the discount at that time.
  const takenAt = provisional ? Math.min(at, context.now) : null;
  const command = { accountId, order, cart: { ...cart, code }, takenAt };
  const answered = await redeemCoupon(transaction, command, context);
  return answered.ok ? done(redeemed(operation, answered.value.redemption)) : answered;
}

/** The result of a redemption: what the agent has not told its caller. */
export function redeemed(
  { discounts }: PushedRedemption,
  { quote, overLimit }: Pick<Redemption, 'quote' | 'overLimit'>,
): OperationResult {
  const told = JSON.stringify(discounts);
  const isAsTold = told === JSON.stringify(quote.lines.map(({ discount }) => discount));
  return {
    outcome: 'applied',
    ...(overLimit === true && { overLimit }),
    ...(!isAsTold && { quote }),
  };
}
