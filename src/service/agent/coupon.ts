import {
  type Coupon,
  type CouponFilter,
  type CouponTerms,
  couponState,
  foldCouponCode,
} from '../../domain/checkout/coupon.ts';
import { isRefused, type NotApplied } from '../../domain/outbox/outcome.ts';
import { notFound, done, failWith, type Result } from '../../domain/problem/problem.ts';
import { freshnessAt, type FreshnessPolicy } from '../../domain/agent/license-snapshot.ts';
import {
  type CouponResponse,
  type CouponService,
  type CouponList,
  provenanceOf,
  type CheckoutService,
  type Provenance,
  type QuoteResponse,
  type RedemptionResponse,
  type Source,
} from '../services.ts';
import { withStoredCouponCode, storedCouponCode, quoteMirroredCoupon } from '../checkout.ts';
import { hasStoredResponse } from '../access/records.ts';
import { afterCommit, type Writer } from '../writer.ts';
import { refuseTakenCode, type QueuedCoupon } from '../outbox/coupon-creation.ts';
import { mirroredSince } from './mirror.ts';
import type { LocalLists, Reader } from '../tables.ts';
import type { MirroredCoupon } from './tables.ts';
import type { Clock, CouponFetch, Idempotency, Log, CouponLookup, WriteOptions } from '../ports.ts';
import type { Page } from '../../domain/page.ts';
import { defaultAccountId } from '../../domain/access/principal.ts';

/** `settings` and `isConfigured` return the current configuration. */
export type AgentCouponParts = {
  reader: Reader;
  lists: Pick<LocalLists, 'mirror'>;
  writer: Writer;
  clock: Clock;
  log: Pick<Log, 'error'>;
  fetcher: CouponFetch;
  /** Whether the upstream's API key is configured. */
  isConfigured: () => boolean;
  /** Call it when the outbox has a new operation. */
  wake: () => void;
  settings: () => { freshness: FreshnessPolicy; maxPending: number };
};

/** An agent reads coupons from its mirror, and creates them at the upstream as soon as the upstream can be reached. */
export function agentCouponService(parts: AgentCouponParts): CouponService {
  return {
    create: (_, terms, writeOptions, signal) => create(parts, terms, writeOptions, signal),
    list: (_, query, signal) => list(parts, query, signal),
    get: (_, id, signal) => get(parts, id, signal),
  };
}

async function create(
  parts: AgentCouponParts,
  terms: CouponTerms,
  writeOptions: WriteOptions,
  signal: AbortSignal,
): Promise<Result<CouponResponse>> {
  if (!parts.isConfigured()) return couponsNotConfigured();
  const { reader, writer, fetcher, settings } = parts;
  const { idempotency } = writeOptions;
  const isReplay = hasStoredResponse(reader, idempotency);
  // A repeated request gets its stored response and must not be sent again.
  const admission = isReplay ? 'away' : await fetcher.admit(signal);
  if (admission === 'unauthorized') return keyNotAccepted('it was rejected before');
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

async function send(
  parts: AgentCouponParts,
  queued: QueuedCoupon,
  idempotency: Idempotency | null,
): Promise<Result<CouponResponse>> {
  const { reader, fetcher } = parts;
  const outcome = await fetcher.create(queued.operationId, { idempotency });
  if (outcome.outcome === 'not_applied' && isRefused(outcome)) return passOn(outcome);
  // If the upstream could not be reached, the response is the queued coupon.
  const sent = reader.operations.get(queued.operationId);
  if (outcome.outcome === 'not_applied' && sent?.progress.state === 'cancelled') return refuseTakenCode();
  const kept =
    outcome.outcome === 'applied' ? { coupon: outcome.value, confirmedAt: outcome.confirmedAt } : queued;
  return done(answer(parts, kept, 'miss'));
}

/** Passes the upstream's refusal on. If the upstream rejects our own credential, the caller is not at fault. */
function passOn({ reason, status, detail, message = detail, retryAfterMs }: NotApplied): Result<never> {
  if (reason === 'unauthorized') {
    return keyNotAccepted(detail);
  }
  const retryAfterS = retryAfterMs === null ? {} : { retryAfterS: Math.ceil(retryAfterMs / 1000) };
  return failWith('upstream_refused', message, { ...(status === null ? {} : { status }), ...retryAfterS });
}

function keyNotAccepted(detail: string): Result<never> {
  return failWith('upstream_unreachable', `The upstream does not accept our API key: ${detail}`);
}

async function list(
  parts: AgentCouponParts,
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
  const filter = await withStoredCouponCode(query, (code) => reader.mirror.byCode(code));
  const mirrored = await lists.mirror.list(filter, filter);
  const coupons = mirrored.map(({ coupon }) => coupon);
  const provenance = provenanceOf(
    { confirmedAt: since, pending: 0, cache },
    parts.settings().freshness,
    parts.clock.now(),
  );
  return done({ coupons, total: await lists.mirror.count(filter), provenance });
}

/** The list that the upstream just sent, if the disk is too full to store it. */
function unstored(
  parts: AgentCouponParts,
  { value, confirmedAt }: { value: readonly Coupon[]; confirmedAt: number },
  query: Page & CouponFilter,
): CouponList {
  const source = { confirmedAt, pending: 0, cache: 'miss' } as const;
  const provenance = provenanceOf(source, parts.settings().freshness, parts.clock.now());
  return { ...listUnstored(parts.reader, value, query), provenance };
}

async function get(
  parts: AgentCouponParts,
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
    return failWith(
      'upstream_unreachable',
      `This coupon was never seen here, and the upstream is unreachable: ${found.detail}`,
    );
  }
  return notFound('coupon');
}

function answer(
  parts: AgentCouponParts,
  { coupon, confirmedAt }: MirroredCoupon,
  cache: 'hit' | 'miss',
): CouponResponse {
  const pending = confirmedAt === null ? 1 : 0;
  return {
    coupon,
    provenance: provenanceOf({ confirmedAt, pending, cache }, parts.settings().freshness, parts.clock.now()),
  };
}

type Aging = Pick<AgentCouponParts, 'clock' | 'fetcher'> & {
  settings: () => { freshness: FreshnessPolicy };
};

/**
 * Whether a coupon is older than `grace`: the upstream is asked first. If the upstream does not answer, the old coupon
 * is used. `confirmedAt`: null if the upstream has not seen the coupon yet.
 */
function isExpired({ clock, settings }: Aging, confirmedAt: number | null): boolean {
  return confirmedAt !== null && freshnessAt(confirmedAt, settings().freshness, clock.now()) === 'expired';
}

/** Refreshes in the background if the coupons are no longer fresh. */
function refreshOlder({ clock, fetcher, settings }: Aging, confirmedAt: number | null): void {
  if (confirmedAt !== null && clock.now() - confirmedAt > settings().freshness.freshMs) fetcher.refresh();
}

function couponsUnreachable(found: CouponLookup<unknown>): Result<never> {
  const answered =
    found.found === 'known' ? 'the disk is too full to store them' : 'the upstream has no such list';
  const detail = found.found === 'unreachable' ? found.detail : answered;
  return failWith('upstream_unreachable', `The upstream's coupons were never read: ${detail}`);
}

/** Coupons belong to the account, and this agent has no credential of the account. */
function couponsNotConfigured(): Result<never> {
  return failWith('coupons_not_configured', 'This agent has no API key of the upstream (upstream.api_key).');
}

const maxProvisional = 1_000;

/** A page of a list that the store could not take, with the provisional coupons of the mirror. */
function listUnstored(
  reader: Reader,
  listed: readonly Coupon[],
  query: Page & CouponFilter,
): { coupons: Coupon[]; total: number } {
  // Provisional coupons come first, because their ids are negative.
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

/** `settings` and `isConfigured` return the current configuration. */
export type AgentCheckoutParts = Pick<
  AgentCouponParts,
  'reader' | 'writer' | 'clock' | 'fetcher' | 'isConfigured'
> & {
  /** `unknownMs`: how long an agent waits until it asks the upstream again for unknown codes. */
  settings: () => { freshness: FreshnessPolicy; unknownMs: number };
};

/** An agent quotes coupons from its mirror of the upstream's list, and stores redemptions itself. */
export function agentCheckoutService(parts: AgentCheckoutParts): CheckoutService {
  const { reader, writer, clock } = parts;
  const spelled = (code: string): Promise<string> =>
    storedCouponCode(code, (each) => reader.mirror.byCode(each));
  return {
    async quote(accountId, sent, signal): Promise<Result<QuoteResponse>> {
      const looked = await lookUp(parts, await spelled(sent.code), signal);
      if (!looked.ok) return looked;
      const cart = { ...sent, code: await spelled(sent.code) };
      const quote = quoteMirroredCoupon(reader, { accountId, cart, now: clock.now() });
      return done({ quote, provenance: looked.value });
    },
    async redeem(command, writeOptions, signal): Promise<Result<RedemptionResponse>> {
      const looked = await lookUp(parts, await spelled(command.cart.code), signal);
      if (!looked.ok) return looked;
      const cart = { ...command.cart, code: await spelled(command.cart.code) };
      const redeemed = await writer.write('redeemMirroredCoupon', { ...command, cart }, writeOptions);
      return redeemed.ok ? done({ ...redeemed.value, provenance: looked.value }) : redeemed;
    },
  };
}

/**
 * Reads the upstream's list if the mirror does not have the code, or if the coupon is older than its grace. Unknown
 * codes cause at most one read in `unknownMs`, whatever their number.
 */
async function lookUp(
  parts: AgentCheckoutParts,
  code: string,
  signal: AbortSignal,
): Promise<Result<Provenance>> {
  const { reader, clock, fetcher, isConfigured, settings } = parts;
  if (!isConfigured()) return couponsNotConfigured();
  const known = reader.mirror.byCode(code);
  if (known !== null && !isExpired(parts, known.confirmedAt)) {
    const { confirmedAt } = known;
    refreshOlder(parts, confirmedAt);
    return done(worth(parts, { confirmedAt, pending: confirmedAt === null ? 1 : 0, cache: 'hit' }));
  }
  const before = mirroredSince(reader);
  if (before !== null && clock.now() - before <= settings().unknownMs) {
    const { confirmedAt } = known ?? { confirmedAt: before };
    return done(worth(parts, { confirmedAt, pending: 0, cache: 'hit' }));
  }
  const found = await fetcher.list(signal);
  const since = mirroredSince(reader);
  if (since === null) return couponsUnreachable(found);
  const { confirmedAt } = reader.mirror.byCode(code) ?? { confirmedAt: since };
  return done(worth(parts, { confirmedAt, pending: 0, cache: since === before ? 'hit' : 'miss' }));
}

function worth({ clock, settings }: AgentCheckoutParts, source: Source): Provenance {
  return provenanceOf(source, settings().freshness, clock.now());
}
