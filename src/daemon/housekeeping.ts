import { StorageError, type Random, type Writer } from '../service/ports.ts';
import type { KeptClock } from './clock.ts';

const tickMs = 10_000;
const ticksPerMark = 6;
const ticksPerPrune = 360;
/** A shorter sleep of the machine changes nothing; nor does a wall clock that is set right by seconds. */
const longSleepMs = 60_000;
/** Agents that wake up together do not ask together, in ms. */
const jitterMs = 5_000;

export type HouseParts = {
  writer: Writer;
  clock: KeptClock;
  random: Random;
  /** Called some seconds after the machine has slept. */
  onSleep: () => void;
};

/** Remembers the time reached, removes what is no longer kept, and notices when the machine has slept. */
export async function keepHouse(parts: HouseParts, signal: AbortSignal): Promise<void> {
  const { clock, random, onSleep } = parts;
  for (let tick = 0; !signal.aborted; tick += 1) {
    if (clock.sleptMs() > longSleepMs) {
      await rest(clock, random.draw() * jitterMs, signal);
      onSleep();
    }
    await writeDown(parts, tick);
    await rest(clock, tickMs, signal);
  }
}

async function writeDown({ writer, clock }: HouseParts, tick: number): Promise<void> {
  try {
    if (tick % ticksPerMark === 0) await writer.write('markTime', { mark: clock.mark() });
    if (tick % ticksPerPrune === 0) await writer.write('prune', {});
  } catch (error) {
    // A full disk passes; the next time tries again.
    if (!(error instanceof StorageError) || error.fault !== 'full') throw error;
  }
}

async function rest(clock: KeptClock, ms: number, signal: AbortSignal): Promise<void> {
  // Ended early only by the signal, which the loop looks at.
  await clock.sleep(ms, signal).catch(() => undefined);
}
