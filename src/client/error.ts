import type { ProblemCode } from './problem-code.ts';
import { member } from './license.ts';

/** What is known of the change that an error is about; nothing was to be changed where there is none. */
interface ErrorDetails {
  readonly idempotencyKey: string | null;
  readonly mayHaveCounted: boolean;
  readonly cause?: unknown;
}

const ofNoChange: ErrorDetails = { idempotencyKey: null, mayHaveCounted: false };

/** What every error of this client is. */
export abstract class LatchkeyError extends Error {
  /** Under which the change was asked for: repeated with the same one, it is counted once. Null: nothing was to be changed. */
  readonly idempotencyKey: string | null;
  /** Whether an agent may have recorded the change all the same: to find out, repeat it under its `idempotencyKey`. */
  readonly mayHaveCounted: boolean;
  /** Whether the same call, under the same key, may be answered otherwise later. */
  abstract readonly isTemporary: boolean;

  constructor(message: string, { idempotencyKey, mayHaveCounted, cause }: ErrorDetails = ofNoChange) {
    super(message, cause === undefined ? {} : { cause });
    this.idempotencyKey = idempotencyKey;
    this.mayHaveCounted = mayHaveCounted;
    this.name = new.target.name;
  }
}

/** There is nothing to send: no token, no product secret, no API key; or an option makes no sense. */
export class ConfigurationError extends LatchkeyError {
  readonly isTemporary: boolean = false;
}

/** The agent did not answer before the deadline: it is not running, not found, or does not speak as Latchkey does. */
export class AgentAwayError extends LatchkeyError {
  readonly isTemporary: boolean = true;
}

/** A fault of one parameter of a request. */
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
  /** By which the agent's log tells of it; null: it has none. */
  readonly requestId: string | null;
  readonly faults: readonly ParameterFault[];
  /** Why a coupon is not redeemable (`coupon_not_redeemable`). */
  readonly reasons: readonly string[];
  /** After which it may be tried again; null: it was not said. */
  readonly retryAfterMs: number | null;
}

/** What says "not now" rather than "no". */
const temporary: ReadonlySet<ProblemCode> = new Set<ProblemCode>([
  'rate_limited',
  'starting',
  'draining',
  'storage_failed',
  'storage_unavailable',
  // Deliveries make room in a full outbox; a disk may get room, and the change is asked for again then.
  'storage_full',
  // It was asked for under an idempotency key, which tells the one answer.
  'outcome_unknown',
  'internal_error',
  'request_timeout',
  'idempotency_key_in_use',
  'upstream_unreachable',
  'verdict_expired',
]);

/** Whether the same request may be answered otherwise a moment later. */
export function isTemporary(code: ProblemCode): boolean {
  return temporary.has(code);
}

/** The agent refused the request. `code` tells which problem it is, and `isProblem` narrows to it. */
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

/** Whether an error is a refusal, or the refusal of this code. */
export function isProblem<Code extends ProblemCode>(
  error: unknown,
  code?: Code,
): error is ProblemError<Code> {
  return error instanceof ProblemError && (code === undefined || error.code === code);
}

/** Reads a refusal; null when it is none of Latchkey's. */
export function readProblem(
  body: unknown,
  { status, retryAfterMs }: { status: number; retryAfterMs: number | null },
): ProblemDetails | null {
  const [code, title, detail] = ['code', 'title', 'detail'].map((name) => member(body, name));
  if (typeof code !== 'string' || typeof title !== 'string' || typeof detail !== 'string') return null;
  const requestId = member(body, 'request_id');
  return {
    code: code as ProblemCode,
    status,
    title,
    detail,
    requestId: typeof requestId === 'string' ? requestId : null,
    faults: list(member(body, 'errors')).map(readFault),
    reasons: list(member(body, 'reasons')).map(String),
    retryAfterMs,
  };
}

function readFault(fault: unknown): ParameterFault {
  const [parameter, code, detail] = ['parameter', 'code', 'detail'].map((name) => member(fault, name));
  return { parameter: String(parameter), code: String(code), detail: String(detail) };
}

function list(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}
