/*
 * The one table of problems: code → HTTP status and title (RFC 9457). Answers, exit codes and the
 * documentation are all made from it.
 */
const table = {
  malformed_body: { status: 400, title: 'The body cannot be read' },
  duplicate_parameter: { status: 400, title: 'A parameter is given twice' },
  malformed_request: { status: 400, title: 'The request is malformed' },
  idempotency_key_malformed: { status: 400, title: 'The idempotency key is malformed' },
  credentials_missing: { status: 401, title: 'Credentials are missing' },
  credentials_invalid: { status: 401, title: 'The credentials are not valid' },
  scope_missing: { status: 403, title: 'The credentials do not carry the scope needed' },
  origin_forbidden: { status: 403, title: 'Web pages may not call this interface' },
  host_forbidden: { status: 403, title: 'The host is not served here' },
  license_not_found: { status: 404, title: 'No such license key' },
  coupon_not_found: { status: 404, title: 'No such coupon' },
  redemption_not_found: { status: 404, title: 'No such redemption' },
  account_not_found: { status: 404, title: 'No such account' },
  product_not_found: { status: 404, title: 'No such product' },
  purchase_not_found: { status: 404, title: 'No such purchase' },
  operation_not_found: { status: 404, title: 'No such operation' },
  token_not_found: { status: 404, title: 'No such token' },
  route_not_found: { status: 404, title: 'No such route' },
  method_not_allowed: { status: 405, title: 'The method is not allowed here' },
  request_timeout: { status: 408, title: 'The request took too long to arrive' },
  coupon_code_taken: { status: 409, title: 'The coupon code is taken' },
  license_key_taken: { status: 409, title: 'The license key is taken' },
  product_key_taken: { status: 409, title: 'The product key is taken' },
  collection_id_taken: { status: 409, title: 'The collection id is taken' },
  coupon_not_redeemable: { status: 409, title: 'The coupon cannot be redeemed' },
  token_of_the_file: { status: 409, title: 'The token is kept in a file' },
  operation_not_open: { status: 409, title: 'The operation is not open to this' },
  not_an_agent: { status: 409, title: 'This is the authority: nothing goes up from here' },
  not_the_authority: { status: 409, title: 'This is an agent: the catalogue lives upstream' },
  idempotency_key_in_use: { status: 409, title: 'A request with this idempotency key is in flight' },
  backup_running: { status: 409, title: 'A backup is running' },
  body_too_large: { status: 413, title: 'The body is too large' },
  unsupported_media_type: { status: 415, title: 'The content type is not supported' },
  parameters_invalid: { status: 422, title: 'Parameters are not valid' },
  product_is_recurring: { status: 422, title: 'The product has a recurring price' },
  order_reused: { status: 422, title: 'The order was redeemed with another cart' },
  import_rejected: { status: 422, title: 'The import is rejected' },
  idempotency_key_reused: { status: 422, title: 'The idempotency key was used for another request' },
  upstream_refused: { status: 422, title: 'The upstream refused' },
  rate_limited: { status: 429, title: 'Too many requests' },
  headers_too_large: { status: 431, title: 'The headers are too large' },
  internal_error: { status: 500, title: 'Something failed here' },
  coupons_not_configured: { status: 501, title: 'Coupons are not configured' },
  upstream_unreachable: { status: 503, title: 'The upstream cannot be reached' },
  verdict_expired: { status: 503, title: 'The last answer of the upstream is too old' },
  starting: { status: 503, title: 'Starting' },
  draining: { status: 503, title: 'Shutting down' },
  storage_failed: { status: 503, title: 'The storage failed' },
  storage_full: { status: 507, title: 'The storage is full' },
} as const;

export type ProblemCode = keyof typeof table;

export const problems: Readonly<Record<ProblemCode, { status: number; title: string }>> = table;

/** One fault of one parameter, as listed in `errors` of a problem answer. */
export type ParameterFault = { parameter: string; code: string; detail: string };

/** An expected refusal: a code of the table with what this case adds to it. */
export type Problem = {
  code: ProblemCode;
  detail: string;
  errors?: readonly ParameterFault[];
  /** Whole seconds for `Retry-After`. */
  retryAfterS?: number;
  /** The upstream's own status where its refusal is passed on. */
  status?: number;
};

/** What a use case gives back: the value, or the problem that stands in its way. */
export type Result<Value> = { ok: true; value: Value } | { ok: false; problem: Problem };

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

/** Refuses with faults of parameters (422 `parameters_invalid`). */
export function refuseParameters(errors: readonly ParameterFault[]): { ok: false; problem: Problem } {
  const names = errors.map((fault) => fault.parameter).join(', ');
  return refuse('parameters_invalid', `Not valid: ${names}.`, { errors });
}
