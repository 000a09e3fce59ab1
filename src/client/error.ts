/** Every problem that an agent can answer with. src/http/PROBLEMS.md explains each of them. */
export type ProblemCode =
  | 'malformed_body'
  | 'duplicate_parameter'
  | 'malformed_request'
  | 'idempotency_key_malformed'
  | 'credentials_missing'
  | 'credentials_invalid'
  | 'token_expired'
  | 'scope_missing'
  | 'session_read_only'
  | 'operator_only'
  | 'origin_forbidden'
  | 'host_forbidden'
  | 'license_not_found'
  | 'coupon_not_found'
  | 'coupon_code_not_found'
  | 'account_not_found'
  | 'product_not_found'
  | 'collection_not_found'
  | 'purchase_not_found'
  | 'redemption_not_found'
  | 'operation_not_found'
  | 'act_not_found'
  | 'token_not_found'
  | 'webhook_not_found'
  | 'event_not_found'
  | 'activation_not_found'
  | 'lease_not_found'
  | 'sign_in_not_found'
  | 'agent_not_found'
  | 'route_not_found'
  | 'method_not_allowed'
  | 'request_timeout'
  | 'coupon_redeemed'
  | 'coupon_code_taken'
  | 'coupon_not_redeemable'
  | 'license_key_taken'
  | 'product_key_taken'
  | 'product_archived'
  | 'collection_id_taken'
  | 'token_of_the_file'
  | 'operation_not_open'
  | 'not_an_agent'
  | 'configuration_invalid'
  | 'embedded'
  | 'not_the_authority'
  | 'idempotency_key_in_use'
  | 'backup_running'
  | 'console_off'
  | 'backed_up_by_the_database'
  | 'no_seat_left'
  | 'no_move_left'
  | 'out_of_sequence'
  | 'activation_blocked'
  | 'lease_request_unanswered'
  | 'not_a_holder'
  | 'not_an_issuer'
  | 'body_too_large'
  | 'unsupported_media_type'
  | 'parameters_invalid'
  | 'lease_request_invalid'
  | 'lease_invalid'
  | 'import_rejected'
  | 'product_is_recurring'
  | 'order_reused'
  | 'idempotency_key_reused'
  | 'license_revoked'
  | 'license_expired'
  | 'license_replaced'
  | 'uses_limit_reached'
  | 'other_store'
  | 'too_old_to_know'
  | 'upstream_refused'
  | 'rate_limited'
  | 'headers_too_large'
  | 'internal_error'
  | 'coupons_not_configured'
  | 'not_offered_by_holder'
  | 'not_offered_by_store'
  | 'leases_not_set_up'
  | 'clock_suspect'
  | 'upstream_unreachable'
  | 'verdict_expired'
  | 'starting'
  | 'draining'
  | 'storage_failed'
  | 'storage_unavailable'
  | 'outcome_unknown'
  | 'storage_full'
  | 'too_many_agents'
  | 'too_many_keys'
  | 'loop_detected';

/** What is known about the change that failed. A call that changes nothing has no key. */
interface ErrorDetails {
  readonly idempotencyKey: string | null;
  readonly mayHaveCounted: boolean;
  readonly cause?: unknown;
}

const ofNoChange: ErrorDetails = { idempotencyKey: null, mayHaveCounted: false };

/**
 * The base class of every error of this client.
 *
 * @example
 * try {
 *   await latchkey.use(licenseKey, { idempotencyKey });
 * } catch (error) {
 *   if (!(error instanceof LatchkeyError && error.isTemporary)) throw error;
 *   retryLater(error.idempotencyKey);
 * }
 */
export abstract class LatchkeyError extends Error {
  /** The key of the change. A change that is repeated with the same key counts once. Null: the call changes nothing. */
  readonly idempotencyKey: string | null;
  /** Whether an agent may have recorded the change anyway. To find out, repeat the change with its `idempotencyKey`. */
  readonly mayHaveCounted: boolean;
  /** Whether the same call, with the same key, may succeed later. */
  abstract readonly isTemporary: boolean;

  constructor(message: string, { idempotencyKey, mayHaveCounted, cause }: ErrorDetails = ofNoChange) {
    super(message, cause === undefined ? {} : { cause });
    this.idempotencyKey = idempotencyKey;
    this.mayHaveCounted = mayHaveCounted;
    this.name = new.target.name;
  }
}

/** There is no credential to send, or an option is not valid. */
export class ConfigurationError extends LatchkeyError {
  readonly isTemporary: boolean = false;
}

/** The agent did not answer before the deadline: it is not running, was not found, or is not a Latchkey agent. */
export class AgentUnavailableError extends LatchkeyError {
  readonly isTemporary: boolean = true;
}

/** Why a lease is not to be believed. */
export type LeaseErrorCode =
  /** A document is not one that an issuer or a device signs. */
  | 'malformed'
  /** Another document was sent in place of this one. */
  | 'wrong_type'
  | 'wrong_issuer'
  | 'wrong_product'
  | 'wrong_license'
  /** The document is about another device, or another device has signed the proof. */
  | 'wrong_device'
  /** The notice is about another activation than the lease that the program has. */
  | 'wrong_activation'
  /** The nonce of the program was not signed: the answer may be a recorded one. */
  | 'wrong_nonce'
  /** The key that has signed is not known. */
  | 'unknown_key'
  | 'bad_signature'
  /** The key statement is older than one that this program has seen. */
  | 'old_keys'
  /** The document is valid for longer than the key that has signed it. */
  | 'outlives_key'
  /** The lease has expired by the clock of this machine. */
  | 'expired';

/** What was answered does not prove that the license is valid, or that it is not. `code` is the one reason. */
export class LeaseError extends LatchkeyError {
  readonly isTemporary: boolean;
  readonly code: LeaseErrorCode;

  constructor(code: LeaseErrorCode, message: string) {
    super(message);
    this.code = code;
    // The holder may have a newer lease soon.
    this.isTemporary = code === 'expired';
  }
}

/** An error in one parameter of a request. */
export interface ParameterFault {
  readonly parameter: string;
  readonly code: string;
  readonly detail: string;
}

/** What the agent refused, and why (RFC 9457). */
export interface ProblemDetails<Code extends ProblemCode = ProblemCode> {
  readonly code: Code;
  readonly status: number;
  readonly title: string;
  readonly detail: string;
  /** The id of the request in the agent's log. Null: the request has no id. */
  readonly requestId: string | null;
  readonly faults: readonly ParameterFault[];
  /** Why a coupon is not redeemable (`coupon_not_redeemable`). */
  readonly reasons: readonly string[];
  /** How long to wait before the next attempt. Null: the agent does not say. */
  readonly retryAfterMs: number | null;
}

/** The problems that mean "not now" rather than "no". */
const temporary: ReadonlySet<ProblemCode> = new Set<ProblemCode>([
  'rate_limited',
  'starting',
  'draining',
  'storage_failed',
  'storage_unavailable',
  // Deliveries make room in a full outbox, and a disk may get room.
  'storage_full',
  // A repetition with the same idempotency key gets the real outcome.
  'outcome_unknown',
  'internal_error',
  'request_timeout',
  'idempotency_key_in_use',
  'upstream_unreachable',
  'verdict_expired',
  'leases_not_set_up',
  'clock_suspect',
]);

/** Whether the same request may succeed a moment later. */
export function isTemporary(code: ProblemCode): boolean {
  return temporary.has(code);
}

/** The agent refused the request. `code` is the stable name of the problem; `isProblem` narrows the type to a code. */
export class ProblemError<Code extends ProblemCode = ProblemCode>
  extends LatchkeyError
  implements ProblemDetails<Code>
{
  readonly isTemporary: boolean;
  readonly code: Code;
  readonly status: number;
  readonly title: string;
  readonly detail: string;
  readonly requestId: string | null;
  readonly faults: readonly ParameterFault[];
  readonly reasons: readonly string[];
  readonly retryAfterMs: number | null;

  constructor(problem: ProblemDetails<Code>, details: ErrorDetails = ofNoChange) {
    super(`${problem.title} (${problem.code}): ${problem.detail}`, details);
    this.isTemporary = isTemporary(problem.code);
    this.code = problem.code;
    this.status = problem.status;
    this.title = problem.title;
    this.detail = problem.detail;
    this.requestId = problem.requestId;
    this.faults = problem.faults;
    this.reasons = problem.reasons;
    this.retryAfterMs = problem.retryAfterMs;
  }
}

/**
 * Whether an error is a refusal by the agent; with a code, whether it is this refusal.
 *
 * @example
 * if (isProblem(error, 'license_not_found')) askForTheKeyAgain();
 */
export function isProblem<Code extends ProblemCode>(
  error: unknown,
  code?: Code,
): error is ProblemError<Code> {
  return error instanceof ProblemError && (code === undefined || error.code === code);
}
