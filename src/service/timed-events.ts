import { features } from '../features.ts';
import type { Writer } from './writer.ts';

declare module '../feature.ts' {
  interface Feature {
    /** Records the events that only the time causes. Called once a minute while somebody gets events. */
    readonly timedEvents?: (writer: Writer) => Promise<unknown>;
  }
}

/** Records the events that only the time causes. `expiringMs`: how long before its end a license is reported. */
export async function recordTimedEvents(
  writer: Writer,
  { expiringMs }: { expiringMs: number },
): Promise<void> {
  await writer.write('recordLicenseEnds', { expiringMs });
  for (const { timedEvents } of features) await timedEvents?.(writer);
}
