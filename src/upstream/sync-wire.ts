import { z } from 'zod';
import { quoteReasons, type Cart, type Quote } from '../domain/checkout/quote.ts';
import type { Operation } from '../domain/outbox/operation.ts';
import { formatDatetime, parseDatetime } from '../domain/time.ts';
import type { ChangesAnswer, FollowRequest, KnownAnswer, PushAnswer, SyncInfo } from '../service/ports.ts';
import type { PushedResult } from '../domain/sync/push.ts';
import { provisionalCoupon, sentRedemption } from '../domain/outbox/coupon-payload.ts';
import { type JsonObject, type Parsed, readBareLicense, writeCoupon } from './wire.ts';

/* The bodies of `/sync/v1`, as an agent sends and reads them (src/sync/README.md, Between Latchkeys). */

export function writePush(agent: string, seq: number, operations: readonly Operation[]): string {
  return JSON.stringify({ agent, seq, operations: operations.map(writeOperation) });
}

/** The ids of the operations of a push, in order. */
export function idsOf(body: string): string[] {
  const { operations } = JSON.parse(body) as { operations: readonly { id: string }[] };
  return operations.map(({ id }) => id);
}

function writeOperation(operation: Operation): object {
  const { id, kind, subject, createdAt } = operation;
  const common = { id, kind, at: formatDatetime(createdAt) };
  switch (kind) {
    case 'create_coupon':
      return { ...common, coupon: writeCoupon(provisionalCoupon(operation)) };
    case 'redeem': {
      const { at, cart, discounts, provisional } = sentRedemption(operation);
      const redemption = { order: subject, cart: writeCart(cart), provisional };
      return { ...common, at: formatDatetime(at), ...redemption, ...(discounts !== null && { discounts }) };
    }
    case 'void':
      return { ...common, order: subject };
    case 'enable':
      return { ...common, license_key: subject, seen_enabled: operation.seenEnabled === true };
    case 'usage':
    case 'decrease':
    case 'disable':
      return { ...common, license_key: subject };
    default:
      return kind satisfies never;
  }
}

/** Without the members that have their usual values. */
function writeCart({ code, currency, lines }: Cart): object {
  const items = lines.map(({ productKey, amount, quantity, collectionIds, recurring }) => ({
    product_key: productKey,
    amount,
    ...(quantity !== 1 && { quantity }),
    ...(collectionIds.length > 0 && { collection_ids: collectionIds }),
    ...(recurring && { recurring }),
  }));
  return { code, ...(currency !== null && { currency }), items };
}

export function writeFollow(agent: string, request: FollowRequest): string {
  const { epoch, cursor, follow, unfollow, watch, waitS } = request;
  const watched = watch.length > 0 && { watch };
  return JSON.stringify({ agent, epoch, cursor, follow, unfollow, ...watched, wait: waitS });
}

const text = z.string().max(500);
const info = z.object({
  data: z.object({
    protocol: z.literal(1),
    instance: z.string().regex(/^[\w-]{1,100}$/),
    epoch: text,
    max_batch: z.int().min(1).max(10_000),
    max_bytes: z.int().min(1_024),
    max_wait: z.int().min(1).max(3_600),
  }),
});

export function readInfo(body: JsonObject): Parsed<SyncInfo> {
  const read = info.safeParse(body);
  if (!read.success) return { fault: 'the response is not that of /sync/v1' };
  const { instance, epoch, max_batch: operations, max_bytes: bytes, max_wait: maxWaitS } = read.data.data;
  return { value: { instance, epoch, limits: { operations, bytes }, maxWaitS } };
}

/** The code of a problem. It is logged, so an upstream must not put anything else there. */
const problemCode = z
  .string()
  .regex(/^[a-z_]{1,64}$/)
  .catch('unknown');

const quote = z
  .object({
    code: text,
    coupon_id: z.int().nullable(),
    reasons: z.array(z.enum(quoteReasons)),
    subtotal: z.int(),
    eligible_subtotal: z.int(),
    discount: z.int(),
    total: z.int(),
    lines: z.array(
      z
        .object({ product_key: text, amount: z.int(), quantity: z.int(), discount: z.int() })
        .transform(({ product_key: productKey, ...line }) => ({ productKey, ...line })),
    ),
  })
  .transform(({ coupon_id: couponId, eligible_subtotal: eligibleSubtotal, ...rest }): Quote => ({
    couponId,
    eligibleSubtotal,
    ...rest,
  }));

const redemption = z.object({ data: quote });

export function readQuote(body: JsonObject): Parsed<Quote> {
  const read = redemption.safeParse(body);
  return read.success ? { value: read.data.data } : { fault: 'the response is not that of a redemption' };
}

const result = z.object({
  outcome: z.enum(['applied', 'refused', 'conflicted']),
  code: problemCode.optional(),
  reasons: z.array(problemCode).max(20).optional(),
  coupon_id: z.int().min(1).optional().catch(undefined),
  over_limit: z.literal(true).optional(),
  quote: quote.nullable().optional(),
});
const reply = z.object({
  data: z.object({ epoch: text, seq: z.int(), results: z.array(result.nullable()) }),
});

/** `ids`: of the operations of the push, in order. */
export function readPushReply(
  body: JsonObject,
  { seq, ids }: { seq: number; ids: readonly string[] },
): Parsed<PushAnswer> {
  const read = reply.safeParse(body);
  if (!read.success) return { fault: 'the response is not that of a push' };
  const { epoch, results, seq: answered } = read.data.data;
  if (answered !== seq || results.length !== ids.length)
    return { fault: 'the response is that of another push' };
  const said = ids.flatMap((id, index) => {
    const each = results[index] ?? null;
    return each === null ? [] : [[id, resultOf(each)] as const];
  });
  return { value: { kind: 'results', epoch, results: Object.fromEntries(said) } };
}

function resultOf({ outcome, code = 'unknown', ...more }: z.infer<typeof result>): PushedResult {
  const { reasons, coupon_id: couponId, over_limit: overLimit, quote: quoted } = more;
  if (outcome !== 'applied') return { outcome, code, ...(reasons !== undefined && { reasons }) };
  return {
    outcome,
    ...(couponId !== undefined && { couponId }),
    ...(overLimit !== undefined && { overLimit }),
    ...(quoted !== undefined && { quote: quoted }),
  };
}

const refusal = z.object({
  code: z.enum(['sequence_reused', 'out_of_sequence']),
  last: z.int().min(0).optional(),
  epoch: text.optional(),
});

/** The refusal of a push because of its number; null: the body is another one. */
export function refusalOfNumber(body: JsonObject): Exclude<PushAnswer, { kind: 'results' }> | null {
  const read = refusal.safeParse(body);
  if (!read.success) return null;
  const { code, last, epoch } = read.data;
  if (code === 'sequence_reused') return { kind: 'reused' };
  return last === undefined || epoch === undefined ? null : { kind: 'out_of_sequence', last, epoch };
}

/** A store may have license keys of any length. */
const licenseKey = z.string();

const changes = z.object({
  data: z.object({
    epoch: text,
    cursor: z.string().max(16_384),
    last_seq: z.int().min(0),
    confirmed_at: text,
    changes: z.array(z.object({ license_key: licenseKey, revision: z.int(), license: z.unknown() })),
    absent: z.array(licenseKey),
    appeared: z.array(licenseKey).default([]),
    more: z.literal(true).optional(),
    reset: z.literal(true).optional(),
  }),
});

export function readChanges(body: JsonObject): Parsed<ChangesAnswer> {
  const read = changes.safeParse(body);
  const confirmedAt = read.success ? parseDatetime(read.data.data.confirmed_at) : null;
  if (!read.success || confirmedAt === null) return { fault: 'the response is not that of /sync/v1/changes' };
  const { epoch, cursor, last_seq: lastSeq, absent, appeared, more, reset } = read.data.data;
  const licenses = [];
  for (const each of read.data.data.changes) {
    const license = readBareLicense(each.license);
    if ('fault' in license) return license;
    licenses.push({ license: license.value, revision: each.revision });
  }
  const flags = { hasMore: more === true, isReset: reset === true };
  return { value: { epoch, cursor, lastSeq, confirmedAt, licenses, absent, appeared, ...flags } };
}

const known = z.object({
  data: z.object({
    results: z.array(
      z.object({
        id: text,
        outcome: z.enum(['applied', 'refused', 'conflicted', 'not_seen', 'too_old']),
        code: problemCode.optional(),
      }),
    ),
  }),
});

export function readKnown(body: JsonObject): Parsed<KnownAnswer> {
  const read = known.safeParse(body);
  if (!read.success) return { fault: 'the response is not that of /sync/v1/known' };
  return { value: read.data.data.results.map(({ id, outcome, code = null }) => ({ id, outcome, code })) };
}
