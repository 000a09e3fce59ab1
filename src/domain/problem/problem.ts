import type { ProblemCode } from './problem-table.ts';

/** The prefix of a problem's `type` (RFC 9457), before the code. */
export const problemTypePrefix = 'urn:latchkey:problem:';

/** One fault of one parameter, an element of `errors` in an error response. */
export type ParameterFault = { parameter: string; code: string; detail: string };

/** A device that has a seat of a license. Times are epoch ms. */
export type SeatHolder = {
  activationId: string;
  deviceName: string | null;
  lastSeenAt: number;
  /** When its seat is free, if it does not renew. */
  freesAt: number;
};

/** An expected error: a code of the table, and details of this case. */
export type Problem = {
  code: ProblemCode;
  detail: string;
  errors?: readonly ParameterFault[];
  /** All reasons (`QuoteReason`) of `coupon_not_redeemable`. */
  reasons?: readonly string[];
  /** Devices that have the seats, for `no_seat_left`. */
  holders?: readonly SeatHolder[];
  /** When the seat of `no_move_left` is free (epoch ms). */
  freesAt?: number;
  /** What the issuer knows of the requests of a device, for `out_of_sequence`. */
  known?: {
    last: number;
    challenge: string;
    uses: { recorded: number; returned: number };
    isRestored: boolean;
  };
  /** The same as signed documents. A holder believes no other numbers. */
  signed?: { sequence: string; keys: string };
  /** Whole seconds for `Retry-After`. */
  retryAfterS?: number;
  /** The status of the upstream's response, if the error comes from the upstream. */
  status?: number;
};

/** What a use case returns: a value or a problem. */
export type Result<Value> =
  | {
      ok: true;
      value: Value;
      /** The request changed nothing: the state was as requested already. */
      unchanged?: true;
    }
  | { ok: false; problem: Problem };

/** Wraps a value as a successful result. */
export function done<Value>(value: Value): { ok: true; value: Value } {
  return { ok: true, value };
}

/** Refuses with a problem of the table. */
export function failWith(
  code: ProblemCode,
  detail: string,
  more: Omit<Problem, 'code' | 'detail'> = {},
): { ok: false; problem: Problem } {
  return { ok: false, problem: { code, detail, ...more } };
}

/** How many faults a response lists. A limit is needed because every line of a long list may have faults. */
export const maxFaults: number = 50;

/** Refuses with faults of parameters (422 `parameters_invalid`). */
export function failWithFaults(errors: readonly ParameterFault[]): { ok: false; problem: Problem } {
  const listed = errors.slice(0, maxFaults);
  const names = listed.map((fault) => fault.parameter).join(', ');
  const more = errors.length > maxFaults ? `, and ${errors.length - maxFaults} more` : '';
  return failWith('parameters_invalid', `Not valid: ${names}${more}.`, { errors: listed });
}

/**
 * A caller must not learn that a record of another account exists, so the error is the same for a foreign and a missing
 * record.
 */
const refusals = {
  activation: ['activation_not_found', 'There is no such activation.'],
  agent: ['agent_not_found', 'There is no agent with this number.'],
  account: ['account_not_found', 'There is no such account.'],
  collection: ['collection_not_found', 'There is no such collection.'],
  coupon: ['coupon_not_found', 'There is no coupon with this id.'],
  license: ['license_not_found', 'No license with this key is known for these credentials.'],
  product: ['product_not_found', 'There is no such product.'],
  purchase: ['purchase_not_found', 'There is no such purchase.'],
  redemption: ['redemption_not_found', 'This order has used no coupon.'],
  token: ['token_not_found', 'There is no token with this id.'],
  webhook: ['webhook_not_found', 'There is no webhook endpoint with this id.'],
  event: ['event_not_found', 'There is no event with this id.'],
} as const;

/** Refuses a request that names a missing record. */
export function notFound(what: keyof typeof refusals): ReturnType<typeof failWith> {
  const [code, detail] = refusals[what];
  return failWith(code, detail);
}

/** Refuses a use beyond the limit of its license. */
export function limitReached(): ReturnType<typeof failWith> {
  return failWith('uses_limit_reached', 'The license has no use left.');
}

/** Refuses a change of a license under a key that was replaced. */
export function keyReplaced(): ReturnType<typeof failWith> {
  return failWith('license_replaced', 'Another license key has taken the place of this one.');
}

/** The fault of a parameter that names a missing account. */
export const unknownAccount: ParameterFault = faultOf('account_id', 'account');

/** The fault of a parameter that names a missing product. */
export const unknownProduct: ParameterFault = faultOf('product_key', 'product');

function faultOf(parameter: string, what: keyof typeof refusals): ParameterFault {
  const [code, detail] = refusals[what];
  return { parameter, code, detail };
}

/** The fault of a parameter that names a product of another account, or a missing product. */
export function foreignProduct(parameter = 'product_key'): ParameterFault {
  return { parameter, code: refusals.product[0], detail: 'The account has no such product.' };
}

/** Nothing is committed for a refusal. */
export function isFailure(result: unknown): boolean {
  return typeof result === 'object' && result !== null && 'ok' in result && result.ok === false;
}
