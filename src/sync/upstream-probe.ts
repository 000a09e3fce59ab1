import type { Clock, Upstream } from '../service/ports.ts';
import type { Reader } from '../service/tables.ts';
import type { KeyLanes } from './key-lanes.ts';
import type { LicensePull } from './pull.ts';
import type { Probe, Uplink } from './uplink/uplink.ts';
import type { Wake } from './wake.ts';

/** Asked for when few license keys are known here: any answer of the upstream shows that it is there. */
const probeKey = 'LATCHKEY-PROBE';
/** How many keys of a product the probes go round. */
const keysInTurn = 8;

export type ProbeParts = {
  reader: Reader;
  upstream: Upstream;
  clock: Clock;
  lanes: KeyLanes;
  uplink: Uplink;
  reads: LicensePull;
  wake: Wake;
  settings: () => {
    productIds: readonly string[];
    /** After this long without a request, a read is made. */
    probeMs: number;
  };
  lifetime: AbortSignal;
};

/** Makes a read when the breaker or a paused product is due for one, or when nothing went up for a while. */
export async function probe(parts: ProbeParts, signal: AbortSignal): Promise<void> {
  const { clock, uplink, wake, settings } = parts;
  for (let turn = 0; !signal.aborted;) {
    const next = uplink.nextProbe(settings().probeMs);
    const waitMs = next.at - clock.steady();
    if (waitMs > 0) {
      await wake.wait(waitMs, signal);
    } else if (await probeOnce(parts, { next, turn }, signal)) {
      turn += 1;
    } else {
      await wake.wait(settings().probeMs, signal);
    }
  }
}

/** False when there was nothing to ask, or no way to. */
async function probeOnce(
  parts: ProbeParts,
  { next, turn }: { next: Probe; turn: number },
  signal: AbortSignal,
): Promise<boolean> {
  const { upstream, clock, lanes, uplink, reads, settings, lifetime } = parts;
  const owner = next.of === 'credential' ? next.owner : undefined;
  if (owner === null) return probeCoupons(parts, signal);
  const asked = owner === undefined ? productInTurn(acceptedProducts(parts), turn) : { product: owner, turn };
  if (asked === null) return settings().productIds.length === 0 && probeCoupons(parts, signal);
  const { product } = asked;
  const licenseKey = keyInTurn(parts, product, asked.turn);
  if (licenseKey === probeKey) {
    const admission = await uplink.admitProbe(signal);
    if (!admission.admitted) return false;
    const sentAt = clock.steady();
    const outcome = await upstream.verify(product, probeKey, lifetime);
    uplink.observe(outcome, { owner: product, subject: probeKey, sentAt });
    return true;
  }
  using _lanes = await lanes.enter(licenseKey, ['counter', 'state'], signal);
  const admission = await uplink.admitProbe(signal);
  if (!admission.admitted) return false;
  await reads.readNow(product, licenseKey);
  return true;
}

/**
 * Products whose secret the upstream is not known to refuse. While the upstream is away any will do: its
 * refusal would be an answer.
 */
function acceptedProducts({ uplink, settings }: ProbeParts): readonly string[] {
  const { productIds } = settings();
  const refused = uplink.refusedCredentials();
  const accepted = productIds.filter((id) => !refused.includes(id));
  return accepted.length > 0 || uplink.admission().admitted ? accepted : productIds;
}

/** Probes go round over the products, and each product's over its keys. */
function productInTurn(products: readonly string[], turn: number): { product: string; turn: number } | null {
  const product = products[turn % Math.max(1, products.length)];
  return product === undefined ? null : { product, turn: Math.floor(turn / products.length) };
}

/**
 * For example: the upstream answers 500 about one key, because of a broken record there. Were the probe
 * always about that key, the breaker would never close, and all other keys would wait with it.
 */
function keyInTurn({ reader }: ProbeParts, product: string, turn: number): string {
  const known = reader.observations.latest(product, keysInTurn);
  const keys = known.length > 1 ? known : [...known, probeKey];
  return keys[turn % keys.length] ?? probeKey;
}

async function probeCoupons(
  { upstream, clock, uplink, lifetime }: ProbeParts,
  signal: AbortSignal,
): Promise<boolean> {
  const admission = await uplink.admitProbe(signal);
  if (!admission.admitted) return false;
  const sentAt = clock.steady();
  const outcome = await upstream.listCoupons({ limit: 1, offset: 0 }, lifetime);
  uplink.observe(outcome, { owner: null, subject: 'coupons', sentAt });
  return true;
}
