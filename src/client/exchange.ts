import { setTimeout as wait } from 'node:timers/promises';
import { findAddresses, type Address, type AddressOptions } from './address.ts';
import {
  AgentAwayError,
  ConfigurationError,
  isTemporary,
  ProblemError,
  readProblem,
  type ProblemDetails,
} from './error.ts';
import { member } from './license.ts';
import type { ProblemCode } from './problem-code.ts';
import { NoReply, Transport, type Reply, type Request } from './transport.ts';

/** How long a call may take, and what ends it. */
export interface CallOptions {
  /** Ms until the call gives up, up to 2,147,483,647; default: 5,000 to ask, 15,000 to change. */
  readonly deadlineMs?: number | undefined;
  /** Ends the call: it rejects with the signal's reason. What was sent may have been recorded all the same. */
  readonly signal?: AbortSignal | undefined;
}

export type Exchanging = CallOptions & {
  readonly deadlineMs: number;
  /** Null: nothing is changed. */
  readonly idempotencyKey: string | null;
  /** Whether it is tried again until the deadline; else only where a kept connection broke. */
  readonly persists: boolean;
};

/** What a timer of Node can wait. */
const longestDeadlineMs = 2 ** 31 - 1;
const firstWaitMs = 50;
const longestWaitMs = 2_000;

/** Makes requests until one is answered, each attempt the same one: what is changed is counted once. */
export class Exchange {
  readonly #options: AddressOptions;
  readonly #transport = new Transport();
  /** What ends each call that is under way. */
  readonly #underWay = new Set<AbortController>();
  #addresses: readonly Address[] | null = null;

  constructor(options: AddressOptions) {
    this.#options = options;
  }

  /** Resolves to a 2xx answer with data. Rejects with a `ProblemError`, an `AgentAwayError`, or the signal's reason. */
  async make(request: Request, asking: Exchanging): Promise<Reply> {
    const { deadlineMs, signal } = asking;
    if (!isMs(deadlineMs, longestDeadlineMs)) {
      throw new ConfigurationError('deadlineMs is 0 to 2,147,483,647.');
    }
    // Not by AbortSignal.any(), which leaves something of each call on a signal that lives long.
    const ending = new AbortController();
    const end = (): void => {
      ending.abort();
    };
    const timer = setTimeout(() => {
      ending.abort(new Error(`the time of ${deadlineMs} ms ran out`));
    }, deadlineMs);
    const forget = signal === undefined ? null : endWith(signal, end);
    this.#underWay.add(ending);
    try {
      return await this.#repeat(request, asking, ending.signal);
    } finally {
      clearTimeout(timer);
      forget?.();
      this.#underWay.delete(ending);
    }
  }

  close(): void {
    for (const ending of this.#underWay) ending.abort(new Error('the client was closed'));
    this.#transport.close();
  }

  async #repeat(
    request: Request,
    { deadlineMs, signal, idempotencyKey, persists }: Exchanging,
    ending: AbortSignal,
  ): Promise<Reply> {
    const endsAt = performance.now() + deadlineMs;
    /** The agent that may have counted it; another one does not know its idempotency key. */
    let countedBy: string | null = null;
    for (let attempt = 0; ; attempt += 1) {
      signal?.throwIfAborted();
      const answer = await this.#attempt(request, countedBy, ending);
      signal?.throwIfAborted();
      if (isDone(answer)) return answer;
      const problem = problemOf(answer);
      if (idempotencyKey !== null && mayBeRecorded(problem)) countedBy ??= sentTo(answer);
      const waitMs = waitOf(attempt, answer);
      const isRepeated = persists ? mayPass(answer, problem) : attempt === 0 && isBroken(answer);
      if (!isRepeated || ending.aborted || performance.now() + waitMs >= endsAt) {
        const details = { idempotencyKey, mayHaveCounted: countedBy !== null };
        throw problem === null ? away(answer, ending, details) : new ProblemError(problem, details);
      }
      await wait(waitMs, undefined, { signal: ending }).catch(() => undefined);
    }
  }

  /** `only`: the one agent that may be asked; null: any. */
  async #attempt(request: Request, only: string | null, signal: AbortSignal): Promise<Reply | NoReply> {
    const known = this.#addresses;
    const send = (addresses: readonly Address[]): Promise<Reply | NoReply> =>
      this.#send(
        only === null ? addresses : addresses.filter(({ agent }) => agent === only),
        request,
        signal,
      );
    const answer = await send(known ?? this.#find());
    if (isDone(answer) || isRefused(answer)) return answer;
    // It may have started again elsewhere since, and another program have taken its port.
    this.#addresses = null;
    return known === null || sentTo(answer) !== null ? answer : await send(this.#find());
  }

  #find(): readonly Address[] {
    this.#addresses = findAddresses(this.#options, process.env);
    return this.#addresses;
  }

  async #send(
    addresses: readonly Address[],
    request: Request,
    signal: AbortSignal,
  ): Promise<Reply | NoReply> {
    try {
      return await this.#transport.send(addresses, request, signal);
    } catch (error) {
      return error as NoReply;
    }
  }
}

/** Plain JavaScript may give what is no number, such as a text of the environment. */
export function isMs(given: unknown, longest: number): boolean {
  return typeof given === 'number' && given >= 0 && given <= longest;
}

/** What each signal ends. It has one listener for all calls, since Node 20 warns of more than ten. */
const endings = new WeakMap<AbortSignal, Set<() => void>>();

/** Gives what forgets it again. */
function endWith(signal: AbortSignal, end: () => void): () => void {
  const ends = endings.get(signal) ?? new Set();
  if (!endings.has(signal)) {
    endings.set(signal, ends);
    signal.addEventListener('abort', () => {
      for (const each of ends) each();
    });
  }
  ends.add(end);
  return () => ends.delete(end);
}

/** Whether it is what was asked for. */
function isDone(answer: Reply | NoReply): answer is Reply {
  if (answer instanceof NoReply || answer.status < 200 || answer.status >= 300) return false;
  return member(answer.body, 'data') !== undefined;
}

/** Whether it is an agent's "no". */
function isRefused(answer: Reply | NoReply): boolean {
  return problemOf(answer) !== null;
}

/** The agent that may have received the request; null: none. */
function sentTo(answer: Reply | NoReply): string | null {
  return answer instanceof NoReply ? answer.sentTo : answer.from;
}

/** The refusals after which what was asked for may still have been recorded, or be recorded now. */
const undecided: ReadonlySet<ProblemCode> = new Set<ProblemCode>([
  'storage_failed',
  'outcome_unknown',
  'idempotency_key_in_use',
]);

/** `problem`: what an agent refused with; null: no agent did. */
function mayBeRecorded(problem: ProblemDetails | null): boolean {
  return problem === null || undecided.has(problem.code);
}

/** Request Timeout, Too Many Requests. */
const passing: ReadonlySet<number> = new Set([408, 429]);

/** Whether the same request may be answered otherwise a moment later. */
function mayPass(answer: Reply | NoReply, problem: ProblemDetails | null): boolean {
  if (problem !== null) return isTemporary(problem.code);
  // A proxy before the agent has pages of its own for what passes.
  return answer instanceof NoReply || answer.status >= 500 || passing.has(answer.status);
}

/** Whether a connection was lost under the request, as a kept one is when the agent starts anew. */
function isBroken(answer: Reply | NoReply): boolean {
  return answer instanceof NoReply && answer.sentTo !== null;
}

function problemOf(answer: Reply | NoReply): ProblemDetails | null {
  if (answer instanceof NoReply) return null;
  return readProblem(answer.body, { status: answer.status, retryAfterMs: retryAfterOf(answer) });
}

/** What was said of it in seconds; null: nothing. */
function retryAfterOf({ headers }: Reply): number | null {
  const seconds = Number(headers['retry-after'] ?? Number.NaN);
  return Number.isFinite(seconds) ? seconds * 1_000 : null;
}

/** Grows with each attempt, at random so that callers do not come all at once. */
function waitOf(attempt: number, answer: Reply | NoReply): number {
  const longest = Math.min(firstWaitMs * 2 ** attempt, longestWaitMs);
  const asked = answer instanceof NoReply ? null : retryAfterOf(answer);
  return Math.max(longest * (0.5 + Math.random() / 2), asked ?? 0);
}

function away(
  answer: Reply | NoReply,
  ending: AbortSignal,
  details: { idempotencyKey: string | null; mayHaveCounted: boolean },
): AgentAwayError {
  if (answer instanceof NoReply) {
    const { message } = ending.aborted ? (ending.reason as Error) : answer;
    return new AgentAwayError(`The agent did not answer: ${message}`, { ...details, cause: answer });
  }
  return new AgentAwayError(`What answered ${answer.status} is no Latchkey agent.`, details);
}
