import {
  type Coupon,
  type CouponFilter,
  type CouponTerms,
  couponState,
  foldCouponCode,
} from '../../domain/checkout/coupon.ts';
import { isRefused, type NotApplied } from '../../domain/outbox/outcome.ts';
import { notFound } from '../../domain/problem/not-found.ts';
import { done, refuse, type Result } from '../../domain/problem/problem.ts';
import { freshnessAt, type FreshnessPolicy } from '../../domain/agent/freshness.ts';
import type { CouponResponse, Couponing, CouponList } from '../answers.ts';
import { inKnownCode } from '../checkout/quote.ts';
import { wasAnswered } from '../access/idempotency.ts';
import { afterCommit } from '../after-commit.ts';
import { refuseTakenCode, type QueuedCoupon } from '../outbox/coupon-creation.ts';
import { mirroredSince } from './mirror.ts';
import { provenanceOf } from './provenance.ts';
import type { LocalLists } from '../lists.ts';
import type { Clock, CouponFetch, Idempotency, Log, CouponLookup, WriteOptions } from '../ports.ts';
import type { Writer } from '../writer.ts';
import type { Page } from '../../domain/page.ts';
import type { Reader } from '../tables.ts';
import type { MirroredCoupon } from './tables.ts';
import { defaultAccountId } from '../../domain/access/principal.ts';

/** What the agent's coupon answers depend on; the functions return the configuration in force. */
export type AgentCouponingParts = {
  reader: Reader;
  lists: Pick<LocalLists, 'mirror'>;
  writer: Writer;
  clock: Clock;
  log: Pick<Log, 'error'>;
  fetcher: CouponFetch;
  /** Whether the upstream's API key is configured. */
  isConfigured: () => boolean;
  /** There is something new in the outbox. */
  wake: () => void;
  settings: () => { freshness: FreshnessPolicy; maxPending: number };
};

/** Coupons on an agent: read from a mirror of the upstream's, created there as soon as it can be reached. */
export function agentCouponing(parts: AgentCouponingParts): Couponing {
  return {
    create: (_, terms, writeOptions, signal) => create(parts, terms, writeOptions, signal),
    list: (_, query, signal) => list(parts, query, signal),
    get: (_, id, signal) => get(parts, id, signal),
  };
}

async function create(
  parts: AgentCouponingParts,
  terms: CouponTerms,
  writeOptions: WriteOptions,
  signal: AbortSignal,
): Promise<Result<CouponResponse>> {
  if (!parts.isConfigured()) return couponsNotConfigured();
  const { reader, writer, fetcher, settings } = parts;
  const { idempotency } = writeOptions;
  const isReplay = wasAnswered(reader, idempotency);
  // A request that was answered before is answered from the store, and must not go up again.
  const admission = isReplay ? 'away' : await fetcher.admit(signal);
  if (admission === 'unauthorized') return keyNotAccepted('it was refused before');
  const isAdmitted = admission === 'admitted';
  const { maxPending } = settings();
  const command = { terms, isSentNow: isAdmitted, maxPending };
  const queued = await writer.write('queueCoupon', command, writeOptions);
  const isSent = !isReplay && queued.ok && queued.value.isSent;
  if (isAdmitted && !isSent) fetcher.giveBack();
  if (!queued.ok) return queued;
  const sending = (): Promise<Result<CouponResponse>> => send(parts, queued.value, idempotency);
  const sent = isSent ? await afterCommit(parts.log, sending, null) : null;
  parts.wake();
  return sent ?? done(answer(parts, queued.value, 'miss'));
}

/** Sends a creation that is committed, and gives what the upstream makes of it. */
async function send(
  parts: AgentCouponingParts,
  queued: QueuedCoupon,
  idempotency: Idempotency | null,
): Promise<Result<CouponResponse>> {
  const { reader, fetcher } = parts;
  const outcome = await fetcher.create(queued.operationId, { idempotency });
  if (outcome.outcome === 'not_applied' && isRefused(outcome)) return passOn(outcome);
  // The upstream could not be asked after all, and what is known here holds.
  const sent = reader.operations.get(queued.operationId);
  if (outcome.outcome === 'not_applied' && sent?.progress.state === 'cancelled') return refuseTakenCode();
  const kept =
    outcome.outcome === 'applied' ? { coupon: outcome.value, confirmedAt: outcome.confirmedAt } : queued;
  return done(answer(parts, kept, 'miss'));
}

/** The upstream's refusal, with its status and in its words; one of our own credentials is not the caller's fault. */
function passOn({ reason, status, detail, message = detail, retryAfterMs }: NotApplied): Result<never> {
  if (reason === 'unauthorized') {
    return keyNotAccepted(detail);
  }
  const retryAfterS = retryAfterMs === null ? {} : { retryAfterS: Math.ceil(retryAfterMs / 1000) };
  return refuse('upstream_refused', message, { ...(status === null ? {} : { status }), ...retryAfterS });
}

function keyNotAccepted(detail: string): Result<never> {
  return refuse('upstream_unreachable', `The upstream does not accept our API key: ${detail}`);
}

async function list(
  parts: AgentCouponingParts,
  query: Page & CouponFilter,
  signal: AbortSignal,
): Promise<Result<CouponList>> {
  if (!parts.isConfigured()) return couponsNotConfigured();
  const { reader, lists, fetcher } = parts;
  const before = mirroredSince(reader);
  let since = before;
  if (before === null || isExpired(parts, before)) {
    const found = await fetcher.list(signal);
    since = mirroredSince(reader);
    if (found.found === 'known' && (since ?? 0) < found.confirmedAt)
      return done(unstored(parts, found, query));
    if (since === null) return couponsUnreachable(found);
  } else {
    refreshOlder(parts, before);
  }
  const cache = since === before ? 'hit' : 'miss';
  const filter = await inKnownCode(query, (code) => reader.mirror.byCode(code));
  const mirrored = await lists.mirror.list(filter, filter);
  const coupons = mirrored.map(({ coupon }) => coupon);
  const provenance = provenanceOf(
    { confirmedAt: since, pending: 0, cache },
    parts.settings().freshness,
    parts.clock.now(),
  );
  return done({ coupons, total: await lists.mirror.count(filter), provenance });
}

/** The list as the upstream has just said; the disk is full. */
function unstored(
  parts: AgentCouponingParts,
  { value, confirmedAt }: { value: readonly Coupon[]; confirmedAt: number },
  query: Page & CouponFilter,
): CouponList {
  const source = { confirmedAt, pending: 0, cache: 'miss' } as const;
  const provenance = provenanceOf(source, parts.settings().freshness, parts.clock.now());
  return { ...listUnstored(parts.reader, value, query), provenance };
}

async function get(
  parts: AgentCouponingParts,
  id: number,
  signal: AbortSignal,
): Promise<Result<CouponResponse>> {
  if (!parts.isConfigured()) return couponsNotConfigured();
  const { reader, fetcher } = parts;
  const known = reader.mirror.get(id);
  if (known !== null && !isExpired(parts, known.confirmedAt)) {
    refreshOlder(parts, known.confirmedAt);
    return done(answer(parts, known, 'hit'));
  }
  const found: CouponLookup<Coupon> = id > 0 ? await fetcher.get(id, signal) : { found: 'missing' };
  const fetched =
    found.found === 'known' ? { coupon: found.value, confirmedAt: found.confirmedAt } : reader.mirror.get(id);
  if (fetched !== null) {
    return done(answer(parts, fetched, fetched.confirmedAt === known?.confirmedAt ? 'hit' : 'miss'));
  }
  if (found.found === 'unreachable') {
    return refuse('upstream_unreachable', `Nothing is known of this coupon here: ${found.detail}`);
  }
  return notFound('coupon');
}

function answer(
  parts: AgentCouponingParts,
  { coupon, confirmedAt }: MirroredCoupon,
  cache: 'hit' | 'miss',
): CouponResponse {
  const pending = confirmedAt === null ? 1 : 0;
  return {
    coupon,
    provenance: provenanceOf({ confirmedAt, pending, cache }, parts.settings().freshness, parts.clock.now()),
  };
}

type Aging = Pick<AgentCouponingParts, 'clock' | 'fetcher'> & {
  settings: () => { freshness: FreshnessPolicy };
};

/**
 * Whether the upstream is asked before what it said is told again: past `grace`. Where it does not answer, coupons are
 * told all the same. `confirmedAt`: null while the upstream has not seen a coupon.
 */
export function isExpired({ clock, settings }: Aging, confirmedAt: number | null): boolean {
  return confirmedAt !== null && freshnessAt(confirmedAt, settings().freshness, clock.now()) === 'expired';
}

/** Asks the upstream anew, and waits for nothing, where what it said is no longer fresh. */
export function refreshOlder({ clock, fetcher, settings }: Aging, confirmedAt: number | null): void {
  if (confirmedAt !== null && clock.now() - confirmedAt > settings().freshness.freshMs) fetcher.refresh();
}

/** The upstream's coupons were never seen, and asking for them has not brought them here. */
export function couponsUnreachable(found: CouponLookup<unknown>): Result<never> {
  const answered =
    found.found === 'known' ? 'there is no room to keep them' : 'it answered that there is no such list';
  const detail = found.found === 'unreachable' ? found.detail : answered;
  return refuse('upstream_unreachable', `The upstream's coupons are not known here yet: ${detail}`);
}

/** Coupons are the account's, and this agent has no credential of it. */
export function couponsNotConfigured(): Result<never> {
  return refuse('coupons_not_configured', 'This agent has no API key of the upstream (upstream.api_key).');
}

/** More coupons that wait for their creation are not looked at. */
const maxProvisional = 1_000;

/**
 * A page of the upstream's list as the upstream has just said, for a list that the store could not take. The coupons that
 * the upstream has not seen yet are in the list as well, as they are in the mirror.
 */
function listUnstored(
  reader: Reader,
  listed: readonly Coupon[],
  query: Page & CouponFilter,
): { coupons: Coupon[]; total: number } {
  // Their ids are negative, so that they come first.
  const first = reader.mirror.list({ limit: maxProvisional, offset: 0 });
  const provisional = first.filter(({ confirmedAt }) => confirmedAt === null).map(({ coupon }) => coupon);
  const found = [...provisional, ...listed].filter((coupon) => passes(reader, coupon, query));
  const sorted = found.toSorted((one, other) => one.id - other.id);
  return { coupons: sorted.slice(query.offset, query.offset + query.limit), total: sorted.length };
}

function passes(reader: Reader, coupon: Coupon, { code, productKey, state }: CouponFilter): boolean {
  const ofProduct = coupon.scope.type === 'single' ? coupon.scope.productKey : null;
  if (code !== undefined && foldCouponCode(coupon.code) !== foldCouponCode(code)) return false;
  if (productKey !== undefined && ofProduct !== productKey) return false;
  if (state === undefined) return true;
  const redemptions = reader.redemptions.countOf(defaultAccountId, coupon.id);
  return couponState(coupon, redemptions, state.at) === state.is;
}
