import { setTimeout as wait } from 'node:timers/promises';
import { findAddresses, type Address, type AddressOptions } from './address.ts';
import {
  AgentUnavailableError,
  ConfigurationError,
  isTemporary,
  ProblemError,
  type ProblemCode,
  type ProblemDetails,
} from './error.ts';
import { NoReply, Transport, type Reply, type Request } from './transport.ts';
import { member, readProblem, readRetryAfter } from './wire.ts';

/** How long a call may take, and what ends it. */
export interface CallOptions {
  /**
   * Ms until the call gives up, up to 2,147,483,647. Default: 5,000 for a read, 15,000 for a change; at most 2,000 if
   * every connection fails and the last change or quote reached no agent either.
   */
  readonly deadlineMs?: number | undefined;
  /** Ends the call, which rejects with the signal's reason. The agent may have recorded the change anyway. */
  readonly signal?: AbortSignal | undefined;
}

export type RetryOptions = CallOptions & {
  readonly deadlineMs: number;
  /** Null: the request changes nothing. */
  readonly idempotencyKey: string | null;
  /** True: retries until the deadline. False: retries once, and only if a kept connection broke. */
  readonly retriesUntilDeadline: boolean;
  /** Ms until the call gives up if no agent has been reached, up to `deadlineMs`. */
  readonly reachMs: number;
};

/** The longest delay of a timer in Node. */
const maxDeadlineMs = 2 ** 31 - 1;
const firstWaitMs = 50;
const maxWaitMs = 2_000;

/** Sends the same request until the agent answers it. The idempotency key makes sure that a change counts once. */
export class RetryingTransport {
  readonly #options: AddressOptions;
  readonly #transport = new Transport();
  /** One controller for each running call. */
  readonly #running = new Set<AbortController>();
  #addresses: readonly Address[] | null = null;
  /** Whether an agent was there lately. It may be restarting, which takes longer than a refused connection. */
  #wasReached = false;

  constructor(options: AddressOptions) {
    this.#options = options;
  }

  /**
   * Resolves to a 2xx response with data. Rejects with a `ProblemError`, an `AgentUnavailableError`, or the signal's
   * reason.
   */
  async send(request: Request, options: RetryOptions): Promise<Reply> {
    const { deadlineMs, signal } = options;
    if (!isMs(deadlineMs, maxDeadlineMs)) {
      throw new ConfigurationError('deadlineMs must be 0 to 2,147,483,647.');
    }
    // AbortSignal.any() would leak memory for each call on a signal that lives long.
    const ending = new AbortController();
    const end = (): void => {
      ending.abort();
    };
    const timer = setTimeout(() => {
      ending.abort(new Error(`the deadline of ${deadlineMs} ms passed`));
    }, deadlineMs);
    const removeListener = signal === undefined ? null : onAbort(signal, end);
    this.#running.add(ending);
    try {
      return await this.#repeat(request, options, ending.signal);
    } finally {
      clearTimeout(timer);
      removeListener?.();
      this.#running.delete(ending);
    }
  }

  close(): void {
    for (const ending of this.#running) ending.abort(new Error('the client was closed'));
    this.#transport.close();
  }

  async #repeat(
    request: Request,
    { deadlineMs, reachMs, signal, idempotencyKey, retriesUntilDeadline }: RetryOptions,
    ending: AbortSignal,
  ): Promise<Reply> {
    const startedAt = performance.now();
    let isAwaited = this.#wasReached;
    /** The agent that may have recorded the change. Another agent does not know its idempotency key. */
    let recordedBy: string | null = null;
    for (let attempt = 0; ; attempt += 1) {
      signal?.throwIfAborted();
      const result = await this.#attempt(request, recordedBy, ending);
      signal?.throwIfAborted();
      const isReached = receiverOf(result) !== null;
      isAwaited ||= isReached;
      this.#wasReached ||= isReached;
      if (isSuccess(result)) return result;
      const problem = problemOf(result);
      if (idempotencyKey !== null && mayBeRecorded(problem)) recordedBy ??= receiverOf(result);
      const waitMs = backoffMs(attempt, result);
      const isRetried = retriesUntilDeadline
        ? isRetryable(result, problem)
        : attempt === 0 && isConnectionLost(result);
      const endsAt = startedAt + (isAwaited ? deadlineMs : reachMs);
      if (!isRetried || ending.aborted || performance.now() + waitMs >= endsAt) {
        // A read gives up too early to show that the agent is not restarting.
        if (retriesUntilDeadline) this.#wasReached = isReached;
        const details = { idempotencyKey, mayHaveCounted: recordedBy !== null };
        throw problem === null ? unavailable(result, ending, details) : new ProblemError(problem, details);
      }
      await wait(waitMs, undefined, { signal: ending }).catch(() => undefined);
    }
  }

  /** `only`: the only agent to send to. Null: any agent. */
  async #attempt(request: Request, only: string | null, signal: AbortSignal): Promise<Result> {
    const known = this.#addresses;
    const send = (addresses: readonly Address[]): Promise<Result> =>
      this.#sendOnce(
        only === null ? addresses : addresses.filter(({ agent }) => agent === only),
        request,
        signal,
      );
    const result = await send(known ?? this.#find());
    if (isSuccess(result) || problemOf(result) !== null) return result;
    // The agent may have restarted on another port, and another program may own the old port now.
    this.#addresses = null;
    return known === null || receiverOf(result) !== null ? result : await send(this.#find());
  }

  #find(): readonly Address[] {
    this.#addresses = findAddresses(this.#options, process.env);
    return this.#addresses;
  }

  async #sendOnce(addresses: readonly Address[], request: Request, signal: AbortSignal): Promise<Result> {
    try {
      return await this.#transport.send(addresses, request, signal);
    } catch (error) {
      return error as NoReply;
    }
  }
}

type Result = Reply | NoReply;

/** Plain JavaScript may pass a value that is not a number, such as a string from the environment. */
export function isMs(value: unknown, max: number): boolean {
  return typeof value === 'number' && value >= 0 && value <= max;
}

/** The callbacks of each signal. A signal has one listener for all calls: Node 20 warns about more than ten. */
const abortCallbacks = new WeakMap<AbortSignal, Set<() => void>>();

/** Calls back when the signal is aborted. Gives a function that removes the callback. */
function onAbort(signal: AbortSignal, callback: () => void): () => void {
  const callbacks = abortCallbacks.get(signal) ?? new Set();
  if (!abortCallbacks.has(signal)) {
    abortCallbacks.set(signal, callbacks);
    signal.addEventListener('abort', () => {
      for (const each of callbacks) each();
    });
  }
  callbacks.add(callback);
  return () => callbacks.delete(callback);
}

function isSuccess(result: Result): result is Reply {
  if (result instanceof NoReply || result.status < 200 || result.status >= 300) return false;
  return member(result.body, 'data') !== undefined;
}

/** The agent that may have received the request. Null: no agent received it. */
function receiverOf(result: Result): string | null {
  return result instanceof NoReply ? result.sentTo : result.from;
}

/** Problems that leave open whether the change was recorded, or is still being recorded. */
const undecided: ReadonlySet<ProblemCode> = new Set<ProblemCode>([
  'storage_failed',
  'outcome_unknown',
  'idempotency_key_in_use',
]);

/** `problem`: the refusal of the agent. Null: the response does not come from an agent. */
function mayBeRecorded(problem: ProblemDetails | null): boolean {
  return problem === null || undecided.has(problem.code);
}

/** Request Timeout, Too Many Requests. */
const retryableStatuses: ReadonlySet<number> = new Set([408, 429]);

/** Whether the same request may succeed a moment later. */
function isRetryable(result: Result, problem: ProblemDetails | null): boolean {
  if (problem !== null) return isTemporary(problem.code);
  // A proxy in front of the agent answers with pages of its own.
  return result instanceof NoReply || result.status >= 500 || retryableStatuses.has(result.status);
}

/** Whether the connection was lost during the request, as a kept connection is when the agent restarts. */
function isConnectionLost(result: Result): boolean {
  return result instanceof NoReply && result.sentTo !== null;
}

function problemOf(result: Result): ProblemDetails | null {
  return result instanceof NoReply ? null : readProblem(result);
}

/** Doubles with each attempt, with jitter, so that callers do not retry all at once. */
function backoffMs(attempt: number, result: Result): number {
  const maxMs = Math.min(firstWaitMs * 2 ** attempt, maxWaitMs);
  const retryAfterMs = result instanceof NoReply ? null : readRetryAfter(result.headers);
  return Math.max(maxMs * (0.5 + Math.random() / 2), retryAfterMs ?? 0);
}

function unavailable(
  result: Result,
  ending: AbortSignal,
  details: { idempotencyKey: string | null; mayHaveCounted: boolean },
): AgentUnavailableError {
  if (result instanceof NoReply) {
    const { message } = ending.aborted ? (ending.reason as Error) : result;
    return new AgentUnavailableError(`The agent did not answer: ${message}`, { ...details, cause: result });
  }
  return new AgentUnavailableError(
    `The server that answered ${result.status} is not a Latchkey agent.`,
    details,
  );
}
