import { parseDatetime } from '../domain/datetime.ts';
import { instanceHeader, provenanceHeaderNames } from '../domain/header-names.ts';
import type { NotAppliedReason, Outcome } from '../domain/outcome.ts';
import { describeFailure, messageOf } from './detail.ts';
import { type Answered, type Exchange, type Failed, headerOf } from './exchange.ts';
import { parseHttpDate, parseRetryAfter } from './http-date.ts';

/** What a body turned out to say: the value, or what is wrong with it. */
export type Parsed<Value> = { value: Value } | { fault: string };

const longestForeignWaitMs = 15 * 60_000;
/** The highest `Age` of RFC 9111, in seconds. */
const longestAgeS = 2 ** 31;

type JsonObject = Readonly<Record<string, unknown>>;

/** How an answer is to be understood. */
export type Understanding<Value> = {
  read: (body: JsonObject) => Parsed<Value>;
  /** Whether the request was a read: a cache may answer one, but cannot have changed anything. */
  isRead: boolean;
  /** Texts that no detail may repeat: the credential, the license key. */
  hidden: readonly string[];
  /** Epoch ms at which the answer came. */
  now: number;
};

/** Tells what became of a request: applied, not applied, or nobody can tell (src/sync/README.md, A lost answer). */
export function classify<Value>(came: Exchange, understanding: Understanding<Value>): Outcome<Value> {
  return came.type === 'failed' ? classifyFailure(came) : classifyAnswer(came, understanding);
}

function classifyFailure({ sent, error }: Failed): Outcome<never> {
  const detail = describeFailure(error);
  return sent
    ? { outcome: 'ambiguous', status: null, detail, retryAfterMs: null }
    : { outcome: 'not_applied', reason: 'unreachable', status: null, detail, retryAfterMs: null };
}

function classifyAnswer<Value>(
  answer: Answered,
  { read, isRead, hidden, now }: Understanding<Value>,
): Outcome<Value> {
  const { status } = answer;
  const body = readObject(answer.text);
  const retryAfterMs = retryAfterOf(answer, { now, isJson: 'value' in body });
  const ambiguous = (what: string | null): Outcome<never> => ({
    outcome: 'ambiguous',
    status,
    detail: statusText(status, what),
    retryAfterMs,
  });
  const message = 'value' in body ? messageOf(body.value, hidden) : null;
  const cachedForMs = cachedForMsOf(answer);
  const isCached = cachedForMs > 0;
  if (isCached && !isRead && status < 500) return ambiguous('a cache answered a request to change something');
  if (status >= 200 && status < 300) {
    const reading = 'value' in body ? read(body.value) : body;
    if ('fault' in reading) return ambiguous(reading.fault);
    // When it was made the upstream said in its Date; by a clock here that is ahead it would look newer.
    const madeAt = isCached ? (sentAtOf(answer) ?? now) : now;
    const confirmedAt = Math.min(confirmedAtOf(answer, now), now - cachedForMs, madeAt);
    const instance = headerOf(answer.headers, instanceHeader.toLowerCase());
    const named = instance === null ? {} : { instance };
    return { outcome: 'applied', value: reading.value, confirmedAt, isCached, ...named };
  }
  if (status >= 400 && status < 500) {
    // A firewall's page is not the upstream's verdict: only a JSON object is.
    if ('fault' in body) return ambiguous(body.fault);
    const detail = statusText(status, isCached ? 'a cache answered, not the upstream' : message);
    const reason = isCached ? 'cached' : reasonOf(status);
    return { outcome: 'not_applied', reason, status, detail, retryAfterMs };
  }
  return ambiguous(status < 400 ? 'redirects are not followed' : message);
}

function statusText(status: number, what: string | null): string {
  return what === null ? `HTTP ${status}` : `HTTP ${status}: ${what}`;
}

function reasonOf(status: number): NotAppliedReason {
  switch (status) {
    case 400:
    case 422:
      return 'refused';
    case 401:
    case 403:
      return 'unauthorized';
    case 404:
      return 'missing';
    case 429:
      return 'throttled';
    default:
      return 'rejected';
  }
}

function readObject(text: string): Parsed<JsonObject> {
  if (text.trim() === '') return { fault: 'the answer is empty' };
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? { value } : { fault: 'the answer is not a JSON object' };
  } catch {
    const isHtml = /^\s*<(?:!doctype|html|head|body|\?xml)/i.test(text);
    return {
      fault: isHtml ? 'the answer is HTML, not JSON: a firewall or proxy?' : 'the answer is not JSON',
    };
  }
}

function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** When the upstream sent the answer by its own clock, in epoch ms; null when it does not say. */
export function sentAtOf({ headers }: Answered): number | null {
  return parseHttpDate(headerOf(headers, 'date') ?? '');
}

/** What is no JSON object came from a proxy or a firewall perhaps: it cannot ask for more than 15 min of quiet. */
function retryAfterOf(answer: Answered, { now, isJson }: { now: number; isJson: boolean }): number | null {
  const waitMs = parseRetryAfter(headerOf(answer.headers, 'retry-after') ?? '', sentAtOf(answer) ?? now);
  return waitMs === null || isJson ? waitMs : Math.min(waitMs, longestForeignWaitMs);
}

/**
 * How long a cache on the way had kept the answer, in ms (`Age`, RFC 9111 section 5.1); 0 when none did.
 * An agent's `Age` is that of its own observation, and its answers count its pending changes.
 */
function cachedForMsOf({ headers }: Answered): number {
  if (headerOf(headers, provenanceHeaderNames.freshness.toLowerCase()) !== null) return 0;
  const ages = [headers['age']].flat().flatMap((text) => text?.split(',') ?? []);
  const seconds = ages.flatMap((text) => (/^\s*\d+\s*$/.test(text) ? [Number(text)] : []));
  return Math.min(Math.max(0, ...seconds), longestAgeS) * 1_000;
}

/** An agent's answer is as old as its own observation: a chain of agents adds no grace. */
function confirmedAtOf({ headers }: Answered, now: number): number {
  const confirmedAt = parseDatetime(headerOf(headers, provenanceHeaderNames.confirmedAt.toLowerCase()) ?? '');
  return Math.min(confirmedAt ?? now, now);
}
