import {
  type Coupon,
  type CouponFilter,
  type CouponTerms,
  couponState,
  foldCouponCode,
} from '../../domain/checkout/coupon.ts';
import { isRefused, type NotApplied } from '../../domain/outbox/outcome.ts';
import { notFound, done, failWith, type Result } from '../../domain/problem/problem.ts';
import { freshnessAt } from '../../domain/agent/license-snapshot.ts';
import {
  type AgentSettings,
  type CouponResponse,
  type CouponService,
  type CouponList,
  provenanceNow,
} from '../services.ts';
import { withStoredCouponCode } from '../pasted-keys.ts';
import { hasStoredResponse, refuseIfForgotten } from '../idempotency.ts';
import { afterCommit, type Writer } from '../writer.ts';
import { refuseTakenCode, type QueuedCoupon } from '../outbox/coupon/creation.ts';
import { mirroredSince } from './mirror.ts';
import type { LocalLists, Reader } from '../tables.ts';
import type { MirroredCoupon } from './tables.ts';
import { isLatchkey, isUpstreamKnown } from '../outbox/upstream/identity.ts';
import type {
  Clock,
  CouponFetch,
  CouponLookup,
  Deliveries,
  Idempotency,
  Keyed,
  Log,
  WriteOptions,
} from '../ports.ts';
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
  deliveries: Deliveries;
  /** Whether the upstream's API key is configured. */
  isConfigured: () => boolean;
  settings: () => AgentSettings;
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
  // The list shows whether the upstream carries a change out once.
  if (!isUpstreamKnown(reader) && fetcher.isReachable()) await fetcher.list(signal);
  if (isLatchkey(reader)) return await createAbove(parts, terms, writeOptions, signal);
  const { idempotency } = writeOptions;
  const isReplay = hasStoredResponse(reader, idempotency);
  // A repeated request gets its stored response and must not be sent again.
  const isSendable = !isReplay && isUpstreamKnown(reader);
  const admission = isSendable ? await fetcher.admit(signal) : 'away';
  if (admission === 'unauthorized') return keyNotAccepted('it was rejected before');
  const isAdmitted = admission === 'admitted';
  const { maxPending } = settings();
  const command = { terms, isSentNow: isAdmitted, maxPending };
  const queued = await writer.write('queueCoupon', command, writeOptions);
  const isSent = !isReplay && queued.ok && queued.value.isSent;
  if (isAdmitted && !isSent) fetcher.giveBack();
  if (!queued.ok) return queued;
  const response = isSent
    ? await afterCommit(parts.log, () => send(parts, queued.value, idempotency), null)
    : null;
  parts.deliveries.wake();
  return response ?? done(respond(parts, queued.value, 'miss'));
}

/** Queues the coupon and waits for the upstream's answer. */
async function createAbove(
  parts: AgentCouponParts,
  terms: CouponTerms,
  { idempotency, ...caller }: WriteOptions,
  signal: AbortSignal,
): Promise<Result<CouponResponse>> {
  const keyed = idempotency?.keyed ?? null;
  const { reader, writer, fetcher, deliveries, settings } = parts;
  const current = settings();
  const { maxPending } = current;
  const isReplay = hasStoredResponse(reader, idempotency);
  if (!isReplay && fetcher.isRefused()) return keyNotAccepted('it was rejected before');
  const forgotten = isReplay ? null : await refuseForgotten(reader, keyed);
  if (forgotten !== null) return forgotten;
  const isAwaited = !isReplay && fetcher.isReachable();
  const command = { terms, isSentNow: false, isAwaited, maxPending, below: keyed };
  const queued = await writer.write('queueCoupon', command, isAwaited ? caller : { ...caller, idempotency });
  if (!queued.ok) return queued;
  const { operationId, isSent: _, ...coupon } = queued.value;
  if (!isReplay) deliveries.wake();
  if (!isAwaited) return done(respond(parts, coupon, 'miss'));
  const waitMs = answerWaitMs(current, keyed);
  await deliveries.waitFor(operationId, { waitMs, untilFailure: true }, signal);
  const answer = { operationId, queued: coupon, isAgent: keyed !== null };
  const answered = await writer.write('answerCoupon', answer, { ...caller, idempotency });
  return answered.ok ? done(respond(parts, answered.value, 'miss')) : answered;
}

/** Refuses a repetition of an agent below if nothing shows any more whether the change was carried out. */
export async function refuseForgotten(reader: Reader, keyed: Keyed | null): Promise<Result<never> | null> {
  if (keyed === null || reader.operations.get(keyed.id) !== null) return null;
  return await refuseIfForgotten(reader, keyed);
}

/** How long to wait for the upstream's answer, in ms: half the time for an agent below, which waits for this agent. */
export function answerWaitMs({ timeoutMs }: { timeoutMs: number }, keyed: Keyed | null): number {
  return keyed === null ? timeoutMs : timeoutMs / 2;
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
  const operation = reader.operations.get(queued.operationId);
  if (outcome.outcome === 'not_applied' && operation?.progress.state === 'cancelled')
    return refuseTakenCode();
  const created =
    outcome.outcome === 'applied' ? { coupon: outcome.value, confirmedAt: outcome.confirmedAt } : queued;
  return done(respond(parts, created, 'miss'));
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
    const lookup = await fetcher.list(signal);
    since = mirroredSince(reader);
    if (lookup.found === 'known' && (since ?? 0) < lookup.confirmedAt) {
      const { value, confirmedAt } = lookup;
      const provenance = provenanceNow(parts, { confirmedAt, pending: 0, cache: 'miss' });
      return done({
        ...listUnstored(reader, value, query),
        leftOut: fetcher.unreadable().length,
        provenance,
      });
    }
    if (since === null) return couponsUnreachable(lookup);
  } else {
    refreshOlder(parts, before);
  }
  const cache = since === before ? 'hit' : 'miss';
  const filter = await withStoredCouponCode(query, (code) => reader.mirror.byCode(code));
  const mirrored = await lists.mirror.list(filter, filter);
  const coupons = mirrored.map(({ coupon }) => coupon);
  const provenance = provenanceNow(parts, { confirmedAt: since, pending: 0, cache });
  const total = await lists.mirror.count(filter);
  return done({ coupons, total, leftOut: fetcher.unreadable().length, provenance });
}

async function get(
  parts: AgentCouponParts,
  id: number,
  signal: AbortSignal,
): Promise<Result<CouponResponse>> {
  if (!parts.isConfigured()) return couponsNotConfigured();
  const { reader, fetcher } = parts;
  const mirrored = reader.mirror.get(id);
  if (mirrored !== null && !isExpired(parts, mirrored.confirmedAt)) {
    refreshOlder(parts, mirrored.confirmedAt);
    return done(respond(parts, mirrored, 'hit'));
  }
  const lookup: CouponLookup<Coupon> = id > 0 ? await fetcher.get(id, signal) : { found: 'missing' };
  const latest =
    lookup.found === 'known'
      ? { coupon: lookup.value, confirmedAt: lookup.confirmedAt }
      : reader.mirror.get(id);
  if (latest !== null) {
    return done(respond(parts, latest, latest.confirmedAt === mirrored?.confirmedAt ? 'hit' : 'miss'));
  }
  if (lookup.found !== 'unreachable') return notFound('coupon');
  return failWith(
    'upstream_unreachable',
    `This coupon was never seen here, and the upstream is unreachable: ${lookup.detail}`,
  );
}

function respond(
  parts: AgentCouponParts,
  { coupon, confirmedAt }: MirroredCoupon,
  cache: 'hit' | 'miss',
): CouponResponse {
  const pending = confirmedAt === null ? 1 : 0;
  return { coupon, provenance: provenanceNow(parts, { confirmedAt, pending, cache }) };
}

type Aging = Pick<AgentCouponParts, 'clock' | 'fetcher' | 'settings'>;

/** Whether to ask the upstream first. `confirmedAt`: null if the upstream has not seen the coupon yet. */
export function isExpired({ clock, settings }: Aging, confirmedAt: number | null): boolean {
  return confirmedAt !== null && freshnessAt(confirmedAt, settings().freshness, clock.now()) === 'expired';
}

/** Refreshes in the background if the coupons are no longer fresh. */
export function refreshOlder({ clock, fetcher, settings }: Aging, confirmedAt: number | null): void {
  if (confirmedAt !== null && clock.now() - confirmedAt > settings().freshness.freshMs) fetcher.refresh();
}

export function couponsUnreachable(lookup: CouponLookup<unknown>): Result<never> {
  const details = { known: 'the disk is too full to store them', missing: 'the upstream has no such list' };
  const detail = lookup.found === 'unreachable' ? lookup.detail : details[lookup.found];
  return failWith('upstream_unreachable', `The upstream's coupons were never read: ${detail}`);
}

/** A coupon that may be the one with this code, but cannot be read; null if there is none. */
export function unreadableCoupon(
  fetcher: Pick<CouponFetch, 'unreadable'>,
  code: string,
): Result<never> | null {
  const folded = foldCouponCode(code);
  const found = fetcher
    .unreadable()
    .find((each) => each.code !== null && foldCouponCode(each.code) === folded);
  if (found === undefined) return null;
  return failWith(
    'upstream_unreachable',
    `The upstream has a coupon with this code that cannot be read: ${found.fault}`,
  );
}

/** Coupons belong to the account, and this agent has no credential of the account. */
export function couponsNotConfigured(): Result<never> {
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
  const matching = [...provisional, ...listed].filter((coupon) => matches(reader, coupon, query));
  const sorted = matching.toSorted((one, other) => one.id - other.id);
  return { coupons: sorted.slice(query.offset, query.offset + query.limit), total: sorted.length };
}

function matches(reader: Reader, coupon: Coupon, { code, productKey, state }: CouponFilter): boolean {
  const ofProduct = coupon.scope.type === 'single' ? coupon.scope.productKey : null;
  if (code !== undefined && foldCouponCode(coupon.code) !== foldCouponCode(code)) return false;
  if (productKey !== undefined && ofProduct !== productKey) return false;
  if (state === undefined) return true;
  const redemptions = reader.redemptions.countOf(defaultAccountId, coupon.id);
  return couponState(coupon, redemptions, state.at) === state.is;
}
