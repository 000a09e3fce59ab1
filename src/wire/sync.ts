import { z } from 'zod';
import { maxOrderLength, orderPattern, quoteReasons } from '../domain/checkout/quote.ts';
import {
  maxFollowed,
  maxOperations,
  maxPushBytes,
  maxWaitS,
  maxWatched,
  syncProtocol,
  type MalformedOperation,
  type OperationResult,
  type PushedOperation,
} from '../domain/sync/push.ts';
import { operationKinds, type OperationKind } from '../domain/outbox/operation.ts';
import { formatDatetime } from '../domain/time.ts';
import type { FollowedChanges, KnownOperation } from '../service/sync/ports.ts';
import type { AppliedPush } from '../service/sync/push.ts';
import type { SyncAgent } from '../service/sync/tables.ts';
import { cartParameters, quoteObject, serializeQuote } from './checkout.ts';
import { couponCreation } from './coupon.ts';
import { licenseKeyText, licenseObject, serializeLicense } from './license.ts';
import {
  boolean,
  datetime,
  instant,
  integer,
  listOf,
  oneOf,
  parameters,
  textMatching,
  type ParameterSource,
} from './parameters.ts';

/* The bodies of /sync/v1 (src/sync/README.md, Between Latchkeys). */

/** 128 random bits of an agent. */
export const agentId = textMatching(/^[0-9a-f]{32}$/, 32, 'must be 32 hexadecimal digits in lower case');

/** A UUIDv7 (RFC 9562). */
const operationId = textMatching(
  /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/,
  36,
  'must be a UUIDv7 in lower case',
);

/** `GET /sync/v1`. */
export const syncInfoObject = z
  .object({
    protocol: z.literal(syncProtocol),
    instance: z.string(),
    epoch: z
      .string()
      .describe('Names the history of this store. A restored store keeps only the first 16 digits.'),
    max_batch: z.int().describe('The most operations in a push.'),
    max_bytes: z.int().describe('The largest body of a push.'),
    max_wait: z.int().describe('The longest wait for a change, in seconds.'),
  })
  .meta({ id: 'SyncInfo' });

export type SyncInfoObject = z.infer<typeof syncInfoObject>;

/** `GET /sync/v1`. */
export function serializeInfo(store: Pick<SyncInfoObject, 'instance' | 'epoch'>): SyncInfoObject {
  const limits = { max_batch: maxOperations, max_bytes: maxPushBytes, max_wait: maxWaitS };
  return { protocol: syncProtocol, ...store, ...limits };
}

const common = { id: operationId, at: datetime };
const licenseChange = { ...common, license_key: licenseKeyText };
const order = textMatching(
  orderPattern,
  maxOrderLength,
  `must have 1 to ${maxOrderLength} characters, no control characters, and not be . or ..`,
);
const discounts = z.array(z.int().min(0)).max(1_000);

/** Members that are not known are ignored: a newer agent may send more. */
const enabling = parameters({ ...licenseChange, seen_enabled: boolean.prefault(false) });
const changing = parameters(licenseChange);
const creating = parameters({ ...common, coupon: z.record(z.string(), z.unknown()) });
const redeeming = parameters({
  ...common,
  order,
  cart: z.record(z.string(), z.unknown()),
  provisional: boolean.prefault(false),
  discounts: discounts.optional(),
});
const voiding = parameters({ ...common, order });

const kindOf = oneOf(operationKinds);

function described(kind: OperationKind | readonly OperationKind[], schema: z.ZodObject): z.ZodObject {
  const kinds = typeof kind === 'string' ? z.literal(kind) : z.enum(kind);
  return schema.extend({ kind: kinds });
}

/** One operation of a push. */
export const pushedOperation = z
  .union([
    described(['usage', 'decrease', 'disable'], changing.schema),
    described('enable', enabling.schema),
    described('create_coupon', creating.schema.extend({ coupon: couponCreation.schema })),
    described('redeem', redeeming.schema.extend({ cart: cartParameters.schema })),
    described('void', voiding.schema),
  ])
  .meta({ id: 'PushedOperation' });

/** `POST /sync/v1/push`. Each operation is read on its own: a malformed one is refused, and the others are applied. */
export const pushParameters = parameters(
  { agent: agentId, seq: integer(1), operations: listOf(maxOperations) },
  { id: 'Push' },
);

type Operation = PushedOperation | MalformedOperation;

export function readOperation(input: unknown): Operation {
  if (typeof input !== 'object' || input === null || Array.isArray(input)) return { id: null, kind: null };
  const raw = rawOf(input);
  const id = operationId.safeParse(raw.get('id'));
  const kind = kindOf.safeParse(raw.get('kind'));
  const operation = kind.success ? readKind(kind.data, raw) : null;
  return operation ?? { id: id.success ? id.data : null, kind: null };
}

/** A member that is null counts as not sent. */
function rawOf(object: object): ReadonlyMap<string, unknown> {
  return new Map(Object.entries(object).filter(([, member]) => member !== null));
}

/** Null: the operation is malformed. */
function readKind(kind: OperationKind, raw: ParameterSource): PushedOperation | null {
  switch (kind) {
    case 'usage':
    case 'decrease':
    case 'disable': {
      const read = changing.read(raw);
      if (!read.ok || read.values.licenseKey === null) return null;
      return { ...read.values, kind, licenseKey: read.values.licenseKey, seenEnabled: false };
    }
    case 'enable': {
      const read = enabling.read(raw);
      if (!read.ok || read.values.licenseKey === null) return null;
      return { ...read.values, kind, licenseKey: read.values.licenseKey };
    }
    case 'create_coupon': {
      const read = creating.read(raw);
      const terms = read.ok ? couponCreation.read(rawOf(read.values.coupon)) : null;
      return read.ok && terms?.ok === true ? { ...pick(read.values), kind, terms: terms.values } : null;
    }
    case 'redeem': {
      const read = redeeming.read(raw);
      const sent = read.ok ? cartParameters.read(rawOf(read.values.cart)) : null;
      if (!read.ok || sent?.ok !== true) return null;
      const { order: name, provisional, discounts: told = null } = read.values;
      return { ...pick(read.values), kind, order: name, ...sent.values, provisional, discounts: told };
    }
    case 'void': {
      const read = voiding.read(raw);
      return read.ok ? { ...pick(read.values), kind, order: read.values.order } : null;
    }
    default:
      return kind satisfies never;
  }
}

function pick({ id, at }: { id: string; at: number }): { id: string; at: number } {
  return { id, at };
}

/** The result of an operation; null: applied, and there is nothing to add. */
export const pushResult = z
  .object({
    outcome: z.enum(['applied', 'refused', 'conflicted']),
    code: z.string().optional().describe('Why: the code of a problem, or `revoked`.'),
    reasons: z.array(z.enum(quoteReasons)).optional(),
    coupon_id: z.int().optional().describe('The coupon that was created.'),
    over_limit: z.literal(true).optional().describe('The redemption goes beyond the usage limit.'),
    quote: quoteObject
      .nullable()
      .optional()
      .describe('The quote, if it is another than the agent has told; null: read the redemption.'),
  })
  .meta({ id: 'PushResult' });

export type PushResultObject = z.infer<typeof pushResult>;

export const pushReplyObject = z
  .object({ epoch: z.string(), seq: z.int(), results: z.array(pushResult.nullable()) })
  .meta({ id: 'PushReply' });

export type PushReplyObject = z.infer<typeof pushReplyObject>;

export function serializePush({ epoch, seq, results }: AppliedPush & { epoch: string }): PushReplyObject {
  return { epoch, seq, results: results.map(serializeResult) };
}

function serializeResult(result: OperationResult): PushResultObject | null {
  if (result.outcome !== 'applied') {
    const { reasons, ...rest } = { reasons: undefined, ...result };
    return { ...rest, ...(reasons !== undefined && { reasons: [...reasons] }) };
  }
  const { couponId, overLimit, quote } = result;
  const more = {
    ...(couponId !== undefined && { coupon_id: couponId }),
    ...(overLimit !== undefined && { over_limit: overLimit }),
    ...(quote !== undefined && { quote: quote === null ? null : serializeQuote(quote, 'authority') }),
  };
  return Object.keys(more).length === 0 ? null : { outcome: 'applied', ...more };
}

/** `POST /sync/v1/known`: up to `maxOperations` ids. */
export const knownParameters = parameters(
  { agent: agentId, ids: z.array(operationId).min(1).max(maxOperations) },
  { id: 'KnownQuery' },
);

export const knownOutcomes = ['applied', 'refused', 'conflicted', 'not_seen', 'too_old'] as const;

export type KnownOutcome = (typeof knownOutcomes)[number];

export const knownObject = z
  .object({
    results: z.array(
      z
        .object({ id: z.string(), outcome: z.enum(knownOutcomes), code: z.string().optional() })
        .meta({ id: 'KnownOperation' }),
    ),
  })
  .meta({ id: 'KnownOperations' });

export type KnownObject = z.infer<typeof knownObject>;

export function serializeKnown(operations: readonly KnownOperation[]): KnownObject {
  return {
    results: operations.map(({ id, outcome, code }) => ({ id, outcome, ...(code !== null && { code }) })),
  };
}

const licenseKeys = z.array(licenseKeyText).max(maxFollowed);
/** The longest cursor: PostgreSQL lists the running transactions in it. */
const maxCursorLength = 16_384;

/** `POST /sync/v1/changes`. */
export const changesParameters = parameters(
  {
    agent: agentId,
    epoch: z.string().max(100).optional(),
    cursor: z.string().max(maxCursorLength).optional(),
    follow: licenseKeys.prefault([]),
    unfollow: licenseKeys.prefault([]),
    watch: z
      .array(licenseKeyText)
      .max(maxWatched)
      .prefault([])
      .describe('Keys that were missing: answered as soon as one of them has a license.'),
    wait: integer(0, maxWaitS).prefault(0),
  },
  { id: 'ChangesQuery' },
);

export const changesObject = z
  .object({
    epoch: z.string(),
    cursor: z.string().describe('Send it with the next request.'),
    last_seq: z.int().describe('The last push of this agent that the licenses contain.'),
    confirmed_at: instant.describe(
      'All followed keys that are not in this reply are unchanged, unless `more`.',
    ),
    changes: z.array(
      z
        .object({ license_key: z.string(), revision: z.int(), license: licenseObject })
        .meta({ id: 'FollowedLicense' }),
    ),
    absent: z.array(z.string()).describe('Followed keys that the credential does not give access to.'),
    appeared: z.array(z.string()).optional().describe('Watched keys that have a license now. Absent: none.'),
    more: z.literal(true).optional().describe('There are more changes: ask again at once.'),
    reset: z.literal(true).optional().describe('No key is followed any more, except those of this request.'),
  })
  .meta({ id: 'Changes' });

export type ChangesObject = z.infer<typeof changesObject>;

export function serializeChanges(reply: FollowedChanges): ChangesObject {
  return {
    epoch: reply.epoch,
    cursor: reply.cursor,
    last_seq: reply.lastSeq,
    confirmed_at: formatDatetime(reply.confirmedAt),
    changes: reply.changes.map(({ license, revision }) => ({
      license_key: license.licenseKey,
      revision,
      license: serializeLicense(license),
    })),
    absent: [...reply.absent],
    ...(reply.appeared.length > 0 && { appeared: [...reply.appeared] }),
    ...(reply.hasMore && { more: true as const }),
    ...(reply.isReset && { reset: true as const }),
  };
}

/** An agent, as operators see it. Its id is a secret between it and this authority. */
export const agentObject = z
  .object({
    number: z.int().min(1),
    fingerprint: z
      .string()
      .describe(
        'The beginning of the SHA-256 of the id of the agent: the same for all rows of one state directory.',
      ),
    account_id: z.string(),
    product_key: z.string().nullable().describe('Null: the credential is an API key of the account.'),
    seq: z.int().min(0).describe('The number of its last push; 0: it has pushed nothing.'),
    followed: z.int().min(0).describe('License keys whose changes it gets.'),
    waiting: z.boolean().describe('Whether it waits for a change now, at this process.'),
    created_at: instant,
    seen_at: instant.describe('When it last asked for changes or pushed. May be an hour old.'),
  })
  .meta({ id: 'Agent' });

export type AgentObject = z.infer<typeof agentObject>;

export const agentList = z.object({ agents: z.array(agentObject) }).meta({ id: 'AgentList' });

const fingerprintLength = 12;

/** `digest`: the SHA-256 of the agent's id, in hexadecimal digits. */
export function serializeAgent(
  { number, accountId, productKey, seq, followed, createdAt, seenAt }: SyncAgent,
  { digest, isWaiting }: { digest: string; isWaiting: boolean },
): AgentObject {
  return {
    number,
    fingerprint: digest.slice(0, fingerprintLength),
    account_id: accountId,
    product_key: productKey,
    seq,
    followed,
    waiting: isWaiting,
    created_at: formatDatetime(createdAt),
    seen_at: formatDatetime(seenAt),
  };
}
