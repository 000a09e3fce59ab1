import type { Clock, Upstream } from '../service/ports.ts';
import type { Reader } from '../service/tables.ts';
import type { KeyLanes } from './key-lanes.ts';
import type { LicensePull } from './pull.ts';
import type { Probe, Uplink } from './uplink.ts';
import type { Wake } from './wake.ts';

/** WriteOptions for when no license key is known here: any answer of the upstream shows that it is there. */
const nobodysKey = 'LATCHKEY-PROBE';

export type ProbeParts = {
  reader: Reader;
  upstream: Upstream;
  clock: Clock;
  lanes: KeyLanes;
  uplink: Uplink;
  reads: LicensePull;
  wake: Wake;
  settings: () => {
    productKeys: readonly string[];
    /** After this long without a request, a read is made. */
    probeMs: number;
  };
  lifetime: AbortSignal;
};

/** Makes a read when the breaker or a paused product is due for one, or when nothing went up for a while. */
export async function probe(parts: ProbeParts, signal: AbortSignal): Promise<void> {
  const { clock, uplink, wake, settings } = parts;
  while (!signal.aborted) {
    const next = uplink.nextProbe(settings().probeMs);
    const waitMs = next.at - clock.steady();
    if (waitMs > 0) {
      await wake.wait(waitMs, signal);
    } else if (!(await probeOnce(parts, next, signal))) {
      await wake.wait(settings().probeMs, signal);
    }
  }
}

/** False when there was nothing to ask, or no way to. */
async function probeOnce(parts: ProbeParts, next: Probe, signal: AbortSignal): Promise<boolean> {
  const { reader, upstream, lanes, uplink, reads, settings, lifetime } = parts;
  if (next.of === 'credential' && next.owner === null) return probeCoupons(parts, signal);
  const product = next.of === 'credential' ? next.owner : acceptedProduct(parts);
  if (product === null) return settings().productKeys.length === 0 && probeCoupons(parts, signal);
  const licenseKey = reader.observations.latest(product);
  if (licenseKey === null) {
    const admission = await uplink.admitProbe(signal);
    if (!admission.admitted) return false;
    uplink.observe(await upstream.verify(product, nobodysKey, lifetime), product);
    return true;
  }
  using _visit = await lanes.enter(licenseKey, ['counter', 'state'], signal);
  const admission = await uplink.admitProbe(signal);
  if (!admission.admitted) return false;
  await reads.readNow(product, licenseKey);
  return true;
}

/**
 * A product whose secret the upstream is not known to refuse; null when there is none. While the upstream
 * is away any will do: its refusal would be an answer.
 */
function acceptedProduct({ uplink, settings }: ProbeParts): string | null {
  const { productKeys } = settings();
  const refused = uplink.refusedCredentials();
  const anyone = uplink.admission().admitted ? null : (productKeys[0] ?? null);
  return productKeys.find((key) => !refused.includes(key)) ?? anyone;
}

async function probeCoupons(
  { upstream, uplink, lifetime }: ProbeParts,
  signal: AbortSignal,
): Promise<boolean> {
  const admission = await uplink.admitProbe(signal);
  if (!admission.admitted) return false;
  uplink.observe(await upstream.listCoupons({ limit: 1, offset: 0 }, lifetime), null);
  return true;
}
