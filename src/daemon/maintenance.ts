import type { Result } from '../domain/problem/problem.ts';
import type { TokenUses } from '../service/access/token-use.ts';
import { StorageError, type Random, type StorageFault } from '../service/ports.ts';
import type { Writer } from '../service/writer.ts';
import type { PersistentClock } from './system/clock.ts';

const tickMs = 10_000;
const ticksPerMark = 6;
const ticksPerPrune = 360;
/** What one commit removes: a larger one would keep callers waiting. */
const prunedAtOnce = 500;
/** How many commits in a row; what is left then waits for the next time, and the mark of the time does not. */
const mostSteps = 1_000;
/** A shorter sleep of the machine changes nothing; nor does a wall clock that is set right by seconds. */
const longSleepMs = 60_000;
/** Agents that wake up together do not ask together, in ms. */
const jitterMs = 5_000;

export type MaintenanceParts = {
  writer: Writer;
  clock: PersistentClock;
  random: Random;
  tokenUses: TokenUses;
  /** An agent has an outbox to prune. */
  isAgent: boolean;
  /** How long changes of licenses are remembered (`history.keep`), as configured now. */
  historyKeepMs: () => number;
  /** When the upstream last did what was asked, since the start; null: not yet. */
  lastSuccessAt: () => number | null;
  /** Called some seconds after the machine has slept. */
  onSleep: () => void;
  /** Looks whether the store is where it was opened. */
  lookForStore: () => void;
  /** Looks whether the listeners are where they were announced. */
  checkListeners: () => Promise<void>;
};

/** Remembers the time reached, removes what is no longer kept, and notices that the machine slept, or its store is gone. */
export async function runMaintenance(parts: MaintenanceParts, signal: AbortSignal): Promise<void> {
  const { clock, random, historyKeepMs, onSleep, lookForStore } = parts;
  let keptMs = historyKeepMs();
  for (let tick = 0; !signal.aborted; tick += 1) {
    lookForStore();
    const hasJumped = clock.sleptMs() > longSleepMs;
    // A time that was jumped to is as good as one that was lived through: what follows must not forget it.
    if (hasJumped || tick % ticksPerMark === 0) await markTime(parts);
    if (tick > 0 && (hasJumped || tick % ticksPerMark === 0)) await parts.checkListeners();
    if (hasJumped) {
      await rest(clock, random.draw() * jitterMs, signal);
      onSleep();
    }
    const keepMs = historyKeepMs();
    // What a reload no longer keeps does not wait for the hour.
    if (tick % ticksPerPrune === 0 || keepMs < keptMs) await prune(parts, signal);
    keptMs = keepMs;
    await rest(clock, tickMs, signal);
  }
  // The next start may find the clock turned back.
  await markTime(parts);
}

async function markTime({ writer, clock, tokenUses, lastSuccessAt }: MaintenanceParts): Promise<void> {
  await unlessFull(() => writer.write('markTime', { mark: clock.mark() }));
  const at = lastSuccessAt();
  if (at !== null) await unlessFull(() => writer.write('keepLastSuccess', { at }));
  const uses = tokenUses.take();
  if (uses.length > 0) await unlessFull(() => writer.write('keepTokenUses', { uses }));
}

async function prune(
  { writer, clock, isAgent, historyKeepMs }: MaintenanceParts,
  signal: AbortSignal,
): Promise<void> {
  // A wall clock that jumped ahead, and is not believed, removes nothing.
  const verifiedNow = clock.verified();
  // A change whose stored answer is removed too early would be counted twice: one wrong clock is not enough for that.
  const removalTime = clock.removalTime(isAgent);
  const limit = prunedAtOnce;
  /** Each step is a commit of its own: what callers write meanwhile goes in between. */
  const inSteps = (step: () => Promise<Result<{ removed: number }>>): Promise<void> =>
    unlessFull(async () => {
      for (let count = 0; count < mostSteps && !signal.aborted; count += 1) {
        const pruned = await step();
        if (!pruned.ok || pruned.value.removed < limit) return;
      }
    });
  await unlessFull(() => writer.write('pruneOldCredentials', { verifiedNow }));
  await inSteps(() => writer.write('pruneIdempotency', { removalTime, limit }));
  if (isAgent) await inSteps(() => writer.write('pruneOperations', { removalTime, limit }));
  await inSteps(() => writer.write('pruneHistory', { before: verifiedNow - historyKeepMs(), limit }));
}

/** What ends the process. */
const endings: ReadonlySet<StorageFault> = new Set<StorageFault>(['failed', 'commit_failed']);

/** A full disk passes, and so does a database that is away; the next time tries again. */
async function unlessFull(write: () => Promise<unknown>): Promise<void> {
  try {
    await write();
  } catch (error) {
    if (!(error instanceof StorageError) || endings.has(error.fault)) throw error;
  }
}

async function rest(clock: PersistentClock, ms: number, signal: AbortSignal): Promise<void> {
  // Ended early only by the signal, which the loop looks at.
  await clock.sleep(ms, signal).catch(() => undefined);
}
