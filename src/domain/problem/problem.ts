import type { ProblemCode } from './problem-table.ts';

/** What stands before the code in the `type` of a problem (RFC 9457). */
export const problemTypePrefix = 'urn:latchkey:problem:';

/** One fault of one parameter, as listed in `errors` of a problem answer. */
export type ParameterFault = { parameter: string; code: string; detail: string };

/** An expected refusal: a code of the table with what this case adds to it. */
export type Problem = {
  code: ProblemCode;
  detail: string;
  errors?: readonly ParameterFault[];
  /** Of `coupon_not_redeemable`: every rule that refuses it. */
  reasons?: readonly string[];
  /** Whole seconds for `Retry-After`. */
  retryAfterS?: number;
  /** The upstream's own status where its refusal is passed on. */
  status?: number;
};

/** What a use case gives back: the value, or the problem that stands in its way. */
export type Result<Value> =
  | {
      ok: true;
      value: Value;
      /** Everything was already as asked for. */
      unchanged?: true;
    }
  | { ok: false; problem: Problem };

/** Wraps a value as a successful result. */
export function done<Value>(value: Value): { ok: true; value: Value } {
  return { ok: true, value };
}

/** Refuses with a problem of the table. */
export function refuse(
  code: ProblemCode,
  detail: string,
  more: Omit<Problem, 'code' | 'detail'> = {},
): { ok: false; problem: Problem } {
  return { ok: false, problem: { code, detail, ...more } };
}

/** How many faults an answer lists: every line of a long list may have some. */
export const maximumFaults: number = 50;

/** Refuses with faults of parameters (422 `parameters_invalid`). */
export function refuseParameters(errors: readonly ParameterFault[]): { ok: false; problem: Problem } {
  const listed = errors.slice(0, maximumFaults);
  const names = listed.map((fault) => fault.parameter).join(', ');
  const more = errors.length > maximumFaults ? `, and ${errors.length - maximumFaults} more` : '';
  return refuse('parameters_invalid', `Not valid: ${names}${more}.`, { errors: listed });
}
