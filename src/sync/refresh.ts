import type { Clock } from '../service/ports.ts';
import type { Reader } from '../service/tables.ts';
import type { LicenseReads } from './pull.ts';
import type { Uplink } from './uplink.ts';

/** How many keys are looked up in the store at a time. */
const batch = 50;
/** How long to rest when nothing is due, as a part of `freshness.refresh`. */
const restPart = 0.05;

export type RefreshParts = {
  reader: Reader;
  clock: Clock;
  reads: LicenseReads;
  uplink: Uplink;
  draw: () => number;
  settings: () => { refreshMs: number; graceMs: number };
};

/**
 * Refreshes every key that was asked for in the last `grace`, oldest observation first, once it is
 * `refresh` old (±20 %), as fast as the rate's share for refreshes allows.
 */
export async function refresh(parts: RefreshParts, signal: AbortSignal): Promise<void> {
  const { reader, clock, reads, uplink, draw, settings } = parts;
  while (!signal.aborted) {
    const { refreshMs, graceMs } = settings();
    const now = clock.now();
    const confirmedBefore = now - refreshMs * (0.8 + 0.4 * draw());
    const due = uplink.admission().admitted
      ? reader.observations.toRefresh({ askedSince: now - graceMs, confirmedBefore }, batch)
      : [];
    const asked = due.map(({ productKey, license }) => reads.read(productKey, license.licenseKey, 'refresh'));
    const outcomes = await Promise.all(asked);
    const anyNews = outcomes.some(({ outcome }) => outcome === 'applied');
    if (!anyNews) {
      // Ended early only by the signal, which the loop looks at.
      await clock.sleep(Math.max(1, refreshMs * restPart), signal).catch(() => undefined);
    }
  }
}
