import type { Clock } from '../service/ports.ts';
import type { Reader } from '../service/tables.ts';
import { isUnsent, type LicensePull } from './pull.ts';
import type { Uplink } from './uplink/uplink.ts';

/** How many keys are looked up in the store at a time. */
const batch = 50;
/** How long to rest when nothing is due, as a part of `freshness.refresh`. */
const restPart = 0.05;

export type RefreshParts = {
  reader: Reader;
  clock: Clock;
  reads: LicensePull;
  uplink: Uplink;
  refreshMs: () => number;
};

/** Reads every key that is due for it in the background, as fast as the rate's share for refreshes allows. */
export async function refresh(parts: RefreshParts, signal: AbortSignal): Promise<void> {
  const { reader, clock, reads, uplink, refreshMs } = parts;
  while (!signal.aborted) {
    const due = uplink.admission().admitted ? reader.observations.toRefresh(clock.steady(), batch) : [];
    const outcomes = await Promise.all(
      due.map(({ productKey, license }) => reads.read(productKey, license.licenseKey, 'refresh')),
    );
    // Where nothing could be asked, or recorded as on a full disk, the same keys would be due again at once.
    if (due.length < batch || outcomes.every(isUnsent)) {
      // Ended early only by the signal, which the loop looks at.
      await clock.sleep(Math.max(1, refreshMs() * restPart), signal).catch(() => undefined);
    }
  }
}
