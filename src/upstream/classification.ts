import { parseDatetime, dayMs, minuteMs } from '../domain/time.ts';
import {
  epochHeader,
  instanceHeader,
  provenanceHeaderNames,
  revisionHeader,
} from '../domain/header-names.ts';
import {
  notApplied,
  type Applied,
  type NotApplied,
  type NotAppliedReason,
  type Outcome,
} from '../domain/outbox/outcome.ts';
import { describeFailure } from '../domain/connection-failure.ts';
import { toOneLine } from '../domain/text.ts';
import type { Dialect, RequestKind } from './dialects.ts';
import { type JsonObject, type Parsed, readObject } from './wire.ts';
import { type CompleteResponse, type Exchange, type FailedExchange, headerOf, tooLarge } from './exchange.ts';

const maxForeignWaitMs = 15 * minuteMs;
/** The highest `Age` of RFC 9111, in seconds. */
const maxAgeS = 2 ** 31;

/** How to understand a response. */
export type ResponseContext<Value> = {
  /** `isLatchkey`: the response has a header that only a Latchkey sends. */
  read: (body: JsonObject, response: { status: number; isLatchkey: boolean }) => Parsed<Value>;
  request: RequestKind;
  dialect: Dialect;
  /** The instance id of this process; null if it has none. */
  self: string | null;
  /** Texts that no detail may repeat: the credential and the license key. */
  hidden: readonly string[];
  /** `Clock.now` and `Clock.confirmed` when the response arrived. */
  now: number;
  confirmed: number | null;
};

/** Requests that a cache may answer, because they change nothing. */
const reads: ReadonlySet<RequestKind> = new Set<RequestKind>([
  'verify',
  'listCoupons',
  'getCoupon',
  'probe',
  'listKeys',
]);

/** Stands for the body of a 204, with which a Latchkey has voided a redemption, or a store has answered. */
export const emptyBody: JsonObject = {};

/** Decides the outcome of a request: applied, not applied or ambiguous (src/sync/PLAIN-UPSTREAM.md, What a response proves). */
export function classify<Value>(exchange: Exchange, context: ResponseContext<Value>): Outcome<Value> {
  return exchange.type === 'failed'
    ? classifyFailure(exchange, context.now)
    : classifyResponse(exchange, context);
}

function classifyFailure(exchange: FailedExchange, now: number): Outcome<never> {
  const detail = describeFailure(exchange.error);
  // `Retry-After` holds also if the body of the response was cut off.
  return exchange.sent
    ? {
        outcome: 'ambiguous',
        status: null,
        detail,
        retryAfterMs: retryAfterOf(exchange, { now, isJson: false }),
        ...(exchange.error === tooLarge && { isTooLarge: true }),
      }
    : notApplied('unreachable', detail);
}

function classifyResponse<Value>(
  response: CompleteResponse,
  context: ResponseContext<Value>,
): Outcome<Value> {
  const { read, request, dialect, self, hidden, now, confirmed } = context;
  const { status } = response;
  if (isOwnResponse(self, response)) return reachedItself;
  // A gateway may send another 204.
  const isVoided = request === 'voidRedemption' && status === 204 && 'epoch' in epochOf(response);
  const body =
    isVoided || dialect.isEmptyAnswer?.(response) === true ? { value: emptyBody } : bodyOf(response);
  const retryAfterMs = retryAfterOf(response, { now, isJson: 'value' in body });
  const ambiguous = (what: string | null): Outcome<never> => ({
    outcome: 'ambiguous',
    status,
    detail: statusText(status, what),
    retryAfterMs,
  });
  const message = 'value' in body ? messageOf(body.value, hidden) : null;
  const problem = 'value' in body ? problemOf(body.value) : {};
  const cachedForMs = cachedForMsOf(response);
  const isCached = cachedForMs > 0;
  if (isCached && !reads.has(request) && status < 500) {
    return ambiguous('a cache answered a request to change something');
  }
  const refused = (because: NotAppliedReason, what: string | null): Outcome<never> => {
    const reason = isCached ? 'cached' : because;
    const detail = statusText(status, isCached ? 'a cache answered, not the upstream' : what);
    const own = isCached ? {} : { ...(message !== null && { message }), ...problem, ...epochOf(response) };
    return { outcome: 'not_applied', reason, status, detail, ...own, retryAfterMs };
  };
  const received = { ...response, body: 'value' in body ? body.value : null };
  const refusal = dialect.refusalOf(received, request);
  if (refusal !== null) return refused(refusal.reason, message ?? refusal.what);
  if ((status >= 200 && status < 300) || dialect.isAnswer?.(received, request) === true) {
    const reading = 'value' in body ? read(body.value, { status, isLatchkey: isOfLatchkey(response) }) : body;
    if ('fault' in reading) return ambiguous(reading.fault);
    const at = isCached ? confirmed : now;
    // Before the upstream itself has answered once, the age of a cached response is unknown.
    if (at === null) return refused('cached', null);
    const { value, shows } = reading;
    const known = provenanceOf(response, cachedForMs, at);
    return { outcome: 'applied', value, isCached, ...known, ...(shows !== undefined && { shows }) };
  }
  if (status >= 400 && status < 500) {
    // Only a JSON object is the upstream's verdict; a firewall sends a page. Whoever answers 429 has done nothing.
    return 'fault' in body && status !== 429
      ? ambiguous(body.fault)
      : refused(isUnderWay(problem) ? 'throttled' : reasonOf(status), message);
  }
  if (status === 304) return ambiguous('a cache answered 304 to an unconditional request');
  return ambiguous(status < 400 ? redirectText(response, hidden) : message);
}

/**
 * When the upstream confirmed a response that arrived at `now`, which instance answered, and whether it may change soon.
 */
function provenanceOf(
  response: CompleteResponse,
  cachedForMs: number,
  now: number,
): Omit<Applied<unknown>, 'outcome' | 'value' | 'isCached'> {
  // By the upstream's Date: a local clock that is ahead would make a cached response look newer than it is.
  const madeAt = cachedForMs > 0 ? (sentAtOf(response) ?? now) : now;
  const confirmedAt = Math.min(confirmedAtOf(response, now), now - cachedForMs, madeAt);
  const instance = instanceOf(response);
  const isPending = Number(headerOf(response.headers, provenanceHeaderNames.pending.toLowerCase())) > 0;
  const nextCursor = nextCursorOf(response);
  return {
    confirmedAt,
    ...(instance !== null && { instance }),
    ...(isPending && { isPending }),
    ...(nextCursor !== null && { nextCursor }),
    // A cache may have kept them from before a restore.
    ...(cachedForMs === 0 && { ...epochOf(response), ...revisionOf(response) }),
  };
}

function epochOf({ headers }: CompleteResponse): Pick<Applied<unknown>, 'epoch'> {
  const epoch = headerOf(headers, epochHeader.toLowerCase()) ?? '';
  return /^[0-9a-f]{32}$/.test(epoch) ? { epoch } : {};
}

function isOfLatchkey(response: CompleteResponse): boolean {
  return 'epoch' in epochOf(response) || instanceOf(response) !== null;
}

function revisionOf({ headers }: CompleteResponse): Pick<Applied<unknown>, 'revision' | 'appliedRevision'> {
  const header = headerOf(headers, revisionHeader.toLowerCase()) ?? '';
  const [, revision, applied] = /^(\d{1,15})(?:; ?applied=(\d{1,15}))?$/.exec(header) ?? [];
  return {
    ...(revision !== undefined && { revision: Number(revision) }),
    ...(applied !== undefined && { appliedRevision: Number(applied) }),
  };
}

/** Codes are logged and stored, so an upstream must not put anything else there. */
const problemCode = /^[a-z][a-z0-9_]{0,63}$/;
const maxReasons = 20;

/** The code of a problem (RFC 9457), and its reasons. */
function problemOf({ code, reasons }: JsonObject): Pick<NotApplied, 'code' | 'reasons'> {
  const isCode = (each: unknown): each is string => typeof each === 'string' && problemCode.test(each);
  if (!isCode(code)) return {};
  const listed = Array.isArray(reasons) ? reasons.filter(isCode).slice(0, maxReasons) : [];
  return { code, ...(listed.length > 0 && { reasons: listed }) };
}

/** An earlier attempt under the same key has not ended: nothing is known about it. */
function isUnderWay({ code }: Pick<NotApplied, 'code'>): boolean {
  return code === 'idempotency_key_in_use';
}

/** Longer than any cursor of Latchkey. */
const maxCursorLength = 1_024;

/** The cursor in a link to the next page (RFC 8288); null if there is no such link. */
function nextCursorOf({ headers }: CompleteResponse): string | null {
  const [, query] = /^<[^<>?]*\?([^<>]*)>; rel="next"$/.exec(headerOf(headers, 'link') ?? '') ?? [];
  const cursor = new URLSearchParams(query ?? '').get('cursor') ?? '';
  return cursor === '' || cursor.length > maxCursorLength ? null : cursor;
}

/**
 * Names the origin that a redirect leads to, so that the address can be corrected. The path is left out: it may quote
 * the request.
 */
function redirectText({ headers }: CompleteResponse, hidden: readonly string[]): string {
  const target = URL.parse(headerOf(headers, 'location') ?? '');
  const detail = 'redirects are not followed';
  if (target === null || !/^https?:$/.test(target.protocol)) return detail;
  return `${detail}: this one leads to ${quote(target.origin, hidden)}`;
}

/** The JSON object of a response. No request asks for compression, and a compressed response is not decompressed. */
function bodyOf({ headers, text }: CompleteResponse): Parsed<JsonObject> {
  const body = readObject(text);
  const coding = headerOf(headers, 'content-encoding') ?? 'identity';
  if ('value' in body || /^identity$/i.test(coding)) return body;
  return { fault: 'the response is compressed, which was not requested: a proxy?' };
}

/** A request that came back to this agent did not reach the upstream, whatever the response says. */
const reachedItself = notApplied(
  'unreachable',
  'this agent’s upstream points to itself: upstream.base_url leads to its own listener; set upstream.connect_to',
);

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

/** Whether the response is from this process; `self` is null if the process has no instance id. */
export function isOwnResponse(self: string | null, response: CompleteResponse): boolean {
  return self !== null && instanceOf(response) === self;
}

function instanceOf({ headers }: CompleteResponse): string | null {
  return headerOf(headers, instanceHeader.toLowerCase());
}

/** When the upstream sent the response by its own clock (epoch ms); null if it does not say. */
export function sentAtOf({ headers }: Pick<CompleteResponse, 'headers'>): number | null {
  return parseHttpDate(headerOf(headers, 'date') ?? '');
}

/** A response that is not JSON may come from a proxy or firewall: it can ask for at most 15 min. */
function retryAfterOf(
  response: Pick<CompleteResponse, 'headers'>,
  { now, isJson }: { now: number; isJson: boolean },
): number | null {
  const header = headerOf(response.headers, 'retry-after');
  if (header === null) return null;
  const waitMs = parseRetryAfter(header, sentAtOf(response) ?? now);
  return waitMs === null || isJson ? waitMs : Math.min(waitMs, maxForeignWaitMs);
}

/**
 * How long a cache had kept the response, in ms (`Age`, RFC 9111 section 5.1); 0 if no cache answered. The `Age` of an
 * agent is the age of its snapshot, not of a cache.
 */
function cachedForMsOf({ headers }: CompleteResponse): number {
  if (headerOf(headers, provenanceHeaderNames.freshness.toLowerCase()) !== null) return 0;
  const ages = [headers['age']].flat().flatMap((text) => text?.split(',') ?? []);
  const seconds = ages.flatMap((text) => (/^\s*\d+\s*$/.test(text) ? [Number(text)] : []));
  return Math.min(Math.max(0, ...seconds), maxAgeS) * 1_000;
}

/** The response of an agent is as old as the agent's snapshot: a chain of agents adds no grace. */
function confirmedAtOf({ headers }: CompleteResponse, now: number): number {
  return parseDatetime(headerOf(headers, provenanceHeaderNames.confirmedAt.toLowerCase()) ?? '') ?? now;
}

/**
 * The upstream's own message: the first string among `detail`, `message` and `error`, then the `detail` of each of its
 * `errors`; null if there is none.
 */
export function messageOf(body: Readonly<Record<string, unknown>>, hidden: readonly string[]): string | null {
  const text = [body['detail'], body['message'], body['error']].find((value) => typeof value === 'string');
  if (text === undefined) return null;
  return quote([...new Set([text, ...errorDetails(body)])].join(' '), hidden) || null;
}

/** A foreign text on one line, at most 200 characters, with `***` in place of every hidden text. */
function quote(text: string, hidden: readonly string[]): string {
  return toOneLine(mask(text, hidden));
}

/** The message for each parameter, from a store that reports them separately, such as Latchkey. */
function errorDetails({ errors }: Readonly<Record<string, unknown>>): string[] {
  if (!Array.isArray(errors)) return [];
  return errors.flatMap((each: unknown) => {
    const hasDetail = typeof each === 'object' && each !== null && 'detail' in each;
    return hasDetail && typeof each.detail === 'string' ? [each.detail] : [];
  });
}

function mask(text: string, hidden: readonly string[]): string {
  const texts = hidden.flatMap((each) => (each === '' ? [] : [each, ...writtenForms(each)]));
  const patterns = texts.map((each) => RegExp.escape(each));
  return patterns.length === 0 ? text : text.replaceAll(new RegExp(patterns.join('|'), 'giu'), '***');
}

/** A text as it is written in a query and in JSON: an upstream may quote the request. */
function writtenForms(text: string): string[] {
  return [
    new URLSearchParams([['', text]]).toString().slice(1),
    encodeURIComponent(text.toWellFormed()),
    encodeURI(text.toWellFormed()),
    JSON.stringify(text).slice(1, -1),
  ];
}

const maxRetryAfterMs = dayMs;

/** Reads an HTTP date in any of its three forms (RFC 9110 section 5.6.7) as epoch ms; null if it is none. */
export function parseHttpDate(text: string): number | null {
  // Date.parse accepts nearly anything as a date; every HTTP date begins with a weekday.
  if (!/^(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*,? /.test(text)) return null;
  const epochMs = Date.parse(text.endsWith('GMT') ? text : `${text} GMT`);
  return Number.isNaN(epochMs) ? null : epochMs;
}

/**
 * Reads `Retry-After` (RFC 9110 section 10.2.3) as a wait in ms, 0 to 24 h; null if it is invalid. A date counts from
 * `now`: the response's own Date, if it has one.
 */
export function parseRetryAfter(text: string, now: number): number | null {
  const value = text.trim();
  if (/^-?\d+$/.test(value)) return bounded(Number(value) * 1_000);
  const date = parseHttpDate(value);
  return date === null ? null : bounded(date - now);
}

function bounded(ms: number): number {
  return Math.min(Math.max(ms, 0), maxRetryAfterMs);
}
