import type { PreloadKey, PreloadOutcome } from '../domain/agent/preload.ts';
import { parsePlainLicenseKey } from '../domain/license-key.ts';
import { isMissing } from '../domain/outbox/outcome.ts';
import type { Clock } from '../service/ports.ts';
import type { Reader } from '../service/tables.ts';
import type { Writer } from '../service/writer.ts';
import { persist } from './persist.ts';
import type { LicensePull } from './pull.ts';
import type { Uplink } from './uplink/uplink.ts';
import type { Wake } from './wake.ts';

/** How many keys are fetched at a time. */
const batch = 50;
/** How long to rest while nothing may go up, nothing is left, or nothing of it was answered; the latter two longer each time, in ms. */
const shortestRestMs = 5_000;
const longestRestMs = 300_000;

export type PreloadParts = {
  reader: Reader;
  writer: Writer;
  clock: Clock;
  reads: LicensePull;
  uplink: Uplink;
  /** Ends a rest early. */
  wake: Wake;
  productIds: () => readonly string[];
};

/** Fetches the license keys that an operator has named, as fast as the rate's share for refreshes allows. */
export async function preload(parts: PreloadParts, signal: AbortSignal): Promise<void> {
  const { reader, writer, clock, uplink, wake } = parts;
  let restMs = shortestRestMs;
  while (!signal.aborted) {
    if (!uplink.admission().admitted) {
      await wake.wait(shortestRestMs, signal);
      continue;
    }
    const left = reader.preload.left(batch);
    const outcomes = await Promise.all(left.map((key) => fetchKey(parts, key)));
    if (outcomes.length > 0) {
      // A full disk must not end the loops; one that is full at the end only loses what can be asked again.
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
  { reads, productIds }: PreloadParts,
  { licenseKey, productKey }: PreloadKey,
): Promise<PreloadOutcome> {
  let found: PreloadOutcome['found'] = 'missing';
  const plain = parsePlainLicenseKey(licenseKey) ?? licenseKey;
  const spellings = plain === licenseKey ? [licenseKey] : [licenseKey, plain];
  const products = productKey === null ? productIds() : [productKey];
  const questions = spellings.flatMap((key) => products.map((product) => ({ key, product })));
  for (const { key, product } of questions) {
    const outcome = await reads.read(product, key, 'refresh');
    if (outcome.outcome === 'applied') return { licenseKey, found: 'found' };
    // It may be a key of this product, or of another whose secret is not refused.
    if (!isMissing(outcome)) found = 'unreachable';
  }
  return { licenseKey, found };
}
