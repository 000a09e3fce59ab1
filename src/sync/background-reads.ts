import type { Clock, SyncUpstream, Upstream } from '../service/ports.ts';
import type { LicenseSnapshot } from '../domain/agent/license-snapshot.ts';
import type { SyncPolicy } from '../service/outbox/queue.ts';
import type { Reader } from '../service/tables.ts';
import { type KeyedMutex, type Wake, persist } from './waiting.ts';
import { type LicenseFetcher, isUnsent } from './license-fetcher.ts';
import type { Probe, UpstreamLimiter } from './upstream-limiter.ts';
import type { PreloadKey, PreloadOutcome } from '../domain/agent/preload.ts';
import { licenseKeysIn } from '../domain/license.ts';
import { isMissing, isPage } from '../domain/outbox/outcome.ts';
import { isLatchkey } from '../service/outbox/upstream/identity.ts';
import type { Writer } from '../service/writer.ts';

/** The probe reads this key if few license keys are known here: any response shows that the upstream is there. */
const probeKey = 'LATCHKEY-PROBE';
/** How many keys of a product take turns in probes. */
const keysInTurn = 8;

type ProbeParts = {
  reader: Reader;
  writer: Writer;
  upstream: Upstream;
  syncUpstream: SyncUpstream;
  clock: Clock;
  mutex: KeyedMutex;
  limiter: UpstreamLimiter;
  fetcher: LicenseFetcher;
  wake: Wake;
  settings: () => {
    productIds: readonly string[];
    /** After this long without a request, a probe is sent, in ms. */
    probeMs: number;
  };
  lifetime: AbortSignal;
};

/**
 * The probe loop: reads a key when the breaker or a refused credential is due for a probe, or when nothing was sent
 * for a while.
 */
export async function probe(parts: ProbeParts, signal: AbortSignal): Promise<void> {
  const { clock, limiter, wake, settings } = parts;
  for (let turn = 0; !signal.aborted;) {
    const next = limiter.nextProbe(settings().probeMs);
    const waitMs = next.at - clock.monotonic();
    if (waitMs > 0) {
      await wake.wait(waitMs, signal);
    } else if (await probeOnce(parts, { next, turn }, signal)) {
      turn += 1;
    } else {
      await wake.wait(settings().probeMs, signal);
    }
  }
}

/** False if there was nothing to read, or the limiter did not admit it. */
async function probeOnce(
  parts: ProbeParts,
  { next, turn }: { next: Probe; turn: number },
  signal: AbortSignal,
): Promise<boolean> {
  const { upstream, clock, mutex, limiter, fetcher, settings, lifetime } = parts;
  const owner = next.of === 'credential' ? next.owner : undefined;
  if (owner === null) return probeCoupons(parts, signal);
  const target =
    owner === undefined ? productInTurn(acceptedProducts(parts), turn) : { product: owner, turn };
  if (target === null) return settings().productIds.length === 0 && probeCoupons(parts, signal);
  const { product } = target;
  if (owner === undefined && isLatchkey(parts.reader)) return await probeLatchkey(parts, product, signal);
  const licenseKey = keyInTurn(parts, product, target.turn);
  if (licenseKey === probeKey) {
    const admission = await limiter.admitProbe(signal);
    if (!admission.admitted) return false;
    const sentAt = clock.monotonic();
    const outcome = await upstream.verify(product, probeKey, lifetime);
    limiter.observe(outcome, { owner: product, subject: probeKey, sentAt });
    const epoch = outcome.outcome === 'not_applied' ? outcome.epoch : undefined;
    // While the disk is full, the next probe shows it.
    if (epoch !== undefined) await parts.writer.write('nameUpstream', { epoch }).catch(() => undefined);
    return true;
  }
  using _guard = await mutex.enter(licenseKey, ['counter', 'state'], signal);
  const admission = await limiter.admitProbe(signal);
  if (!admission.admitted) return false;
  await fetcher.fetchNow(product, licenseKey);
  return true;
}

/**
 * An agent above answers 503 about a key that it has not seen for too long, although it is there and takes changes. What it
 * says of itself depends on no key.
 */
async function probeLatchkey(
  { upstream, syncUpstream, clock, limiter, lifetime }: ProbeParts,
  product: string,
  signal: AbortSignal,
): Promise<boolean> {
  const admission = await limiter.admitProbe(signal);
  if (!admission.admitted) return false;
  const sentAt = clock.monotonic();
  const outcome = await syncUpstream.probe(product, lifetime);
  if (!isPage(outcome)) {
    limiter.observe(outcome, { owner: product, subject: 'sync', sentAt });
    return true;
  }
  // A gateway hides the change feed, and perhaps lets the API pass.
  const verified = await upstream.verify(product, probeKey, lifetime);
  limiter.observe(verified, { owner: product, subject: probeKey, sentAt });
  return true;
}

/**
 * Products whose secret the upstream is not known to refuse. While the upstream is unavailable, every product will do:
 * a refusal would be a response too.
 */
function acceptedProducts({ limiter, settings }: ProbeParts): readonly string[] {
  const { productIds } = settings();
  const refused = limiter.refusedCredentials();
  const accepted = productIds.filter((id) => !refused.includes(id));
  return accepted.length > 0 || limiter.admission().admitted ? accepted : productIds;
}

/** Probes take the products in turn, and the keys of each product in turn. */
function productInTurn(products: readonly string[], turn: number): { product: string; turn: number } | null {
  const product = products[turn % Math.max(1, products.length)];
  return product === undefined ? null : { product, turn: Math.floor(turn / products.length) };
}

/**
 * For example: the upstream answers 500 about one key, because of a broken record. If each probe read that key, the
 * breaker would never close, and all other keys would wait.
 */
function keyInTurn({ reader }: ProbeParts, product: string, turn: number): string {
  const latest = reader.snapshots.latest(product, keysInTurn);
  const keys = latest.length > 1 ? latest : [...latest, probeKey];
  return keys[turn % keys.length] ?? probeKey;
}

async function probeCoupons(
  { upstream, clock, limiter, lifetime }: ProbeParts,
  signal: AbortSignal,
): Promise<boolean> {
  const admission = await limiter.admitProbe(signal);
  if (!admission.admitted) return false;
  const sentAt = clock.monotonic();
  const outcome = await upstream.listCoupons({ limit: 1, offset: 0 }, lifetime);
  limiter.observe(outcome, { owner: null, subject: 'coupons', sentAt });
  return true;
}

/** How many keys are read at a time. */
const batch = 50;
/** How long to rest when nothing is due, as a fraction of `freshness.refresh`. */
const restPart = 0.05;

type RefreshParts = {
  reader: Reader;
  clock: Clock;
  fetcher: LicenseFetcher;
  limiter: UpstreamLimiter;
  writer: Writer;
  policy: () => SyncPolicy;
};

/** The refresh loop: reads keys whose snapshot is due for a refresh, within the rate's share for refreshes. */
export async function refresh(parts: RefreshParts, signal: AbortSignal): Promise<void> {
  const { reader, clock, fetcher, limiter, policy } = parts;
  while (!signal.aborted) {
    const due = limiter.admission().admitted ? reader.snapshots.toRefresh(clock.monotonic(), batch) : [];
    const confirmed = due.filter((snapshot) => isConfirmed(parts, snapshot));
    await confirm(parts, confirmed, signal);
    const unconfirmed = due.filter((snapshot) => !confirmed.includes(snapshot));
    const outcomes = await Promise.all(
      unconfirmed.map(({ productId, license }) => fetcher.fetch(productId, license.licenseKey, 'refresh')),
    );
    // If nothing was sent, or nothing could be stored on a full disk, the same keys would be due again at once.
    if (due.length < batch || (confirmed.length === 0 && outcomes.every(isUnsent))) {
      // Only the signal ends the sleep early, and the loop condition checks it.
      await clock.sleep(Math.max(1, policy().refreshMs * restPart), signal).catch(() => undefined);
    }
  }
}

/** Whether the upstream has confirmed a followed key within the time of a refresh, so that no read is needed. */
function isConfirmed(
  { reader, clock, policy }: RefreshParts,
  { productId, license }: LicenseSnapshot,
): boolean {
  const { confirmedAt } = reader.follows.get(productId) ?? { confirmedAt: 0 };
  return clock.now() - confirmedAt <= policy().refreshMs && reader.snapshots.isFollowed(license.licenseKey);
}

async function confirm(
  { writer, clock, policy }: RefreshParts,
  snapshots: readonly LicenseSnapshot[],
  signal: AbortSignal,
): Promise<void> {
  if (snapshots.length === 0) return;
  const licenseKeys = snapshots.map(({ license }) => license.licenseKey);
  await persist(clock, signal, () =>
    writer.write('confirmFollowed', { licenseKeys, policy: policy() }),
  ).catch((error: unknown) => {
    if (!signal.aborted) throw error;
  });
}

/** How long to rest, in ms. The rest doubles while every read fails or nothing is left. */
const shortestRestMs = 5_000;
const longestRestMs = 300_000;

type PreloadParts = {
  reader: Reader;
  writer: Writer;
  clock: Clock;
  fetcher: LicenseFetcher;
  limiter: UpstreamLimiter;
  /** Ends a rest early. */
  wake: Wake;
  productIds: () => readonly string[];
};

/** The preload loop: fetches the license keys that an operator has named, within the rate's share for refreshes. */
export async function preload(parts: PreloadParts, signal: AbortSignal): Promise<void> {
  const { reader, writer, clock, limiter, wake } = parts;
  let restMs = shortestRestMs;
  while (!signal.aborted) {
    if (!limiter.admission().admitted) {
      await wake.wait(shortestRestMs, signal);
      continue;
    }
    const left = reader.preload.left(batch);
    const outcomes = await Promise.all(left.map((key) => fetchKey(parts, key)));
    if (outcomes.length > 0) {
      // A full disk must not end the loop. If it is still full at the end, only reads are lost, which can be repeated.
      await persist(clock, signal, () => writer.write('recordPreload', { outcomes })).catch(
        (error: unknown) => {
          if (!signal.aborted) throw error;
        },
      );
    }
    if (outcomes.some(({ found }) => found !== 'unreachable')) {
      restMs = shortestRestMs;
    } else {
      await wake.wait(restMs, signal);
      restMs = Math.min(restMs * 2, longestRestMs);
    }
  }
}

async function fetchKey(
  { fetcher, productIds }: PreloadParts,
  { licenseKey, productId }: PreloadKey,
): Promise<PreloadOutcome> {
  let found: PreloadOutcome['found'] = 'missing';
  const products = productId === null ? productIds() : [productId];
  const reads = licenseKeysIn(licenseKey).flatMap((key) => products.map((product) => ({ key, product })));
  for (const { key, product } of reads) {
    const outcome = await fetcher.fetch(product, key, 'refresh');
    if (outcome.outcome === 'applied') return { licenseKey, found: 'found' };
    // The key may belong to this product, or to another one whose secret works.
    if (!isMissing(outcome)) found = 'unreachable';
  }
  return { licenseKey, found };
}
