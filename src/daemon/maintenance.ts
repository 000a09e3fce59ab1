import type { RoleName } from '../domain/role.ts';
import type { Result } from '../domain/problem/problem.ts';
import type { TokenUses } from '../service/access/credential.ts';
import { StorageError, type Random, type StorageFault } from '../service/ports.ts';
import type { Writer } from '../service/writer.ts';
import type { FeatureProcess } from './feature-process.ts';
import { minuteMs } from '../domain/time.ts';
import { pause, type PersistentClock } from './system/clock.ts';

const tickMs = 10_000;
const ticksPerMark = 6;
const ticksPerPrune = 360;
/** How many rows one commit removes or changes: a larger commit would delay callers. */
const rowsPerCommit = 500;
/** How many commits run in a row. Further rows wait for the next run, so that the time is recorded in between. */
const maxCommits = 1_000;
/** Shorter sleeps of the machine, and corrections of the wall clock by seconds, are ignored. */
const longSleepMs = minuteMs;
/** Spreads the requests of agents that wake up together, in ms. */
const jitterMs = 5_000;

export type MaintenanceParts = {
  writer: Writer;
  clock: PersistentClock;
  random: Random;
  tokenUses: TokenUses;
  /** An agent has an outbox to prune. */
  role: RoleName;
  /** How long operations that were delivered to a Latchkey are kept (`sync.keep`). */
  syncKeepMs: () => number;
  /** How long changes of licenses are kept (`history.keep`). */
  historyKeepMs: () => number;
  /** Each removes expired rows of a feature. */
  prunes: readonly NonNullable<FeatureProcess['prune']>[];
  /** When the last request to the upstream succeeded, since the start; null: none has. */
  lastSuccessAt: () => number | null;
  /** Called some seconds after the machine has slept. */
  onSleep: () => void;
  /** Checks that the file of the store exists. */
  checkStoreFile: () => void;
  /** Checks that the sockets and `listen.json` exist. */
  checkListeners: () => Promise<void>;
};

/** Records the time, removes expired rows, sets graces, and notices that the machine slept or that the store is gone. */
export async function runMaintenance(parts: MaintenanceParts, signal: AbortSignal): Promise<void> {
  const { clock, random, historyKeepMs, onSleep, checkStoreFile } = parts;
  let lastKeepMs = historyKeepMs();
  for (let tick = 0; !signal.aborted; tick += 1) {
    checkStoreFile();
    const hasJumped = clock.sleptMs() > longSleepMs;
    // Record a jump of the clock at once: a later start must not fall behind it.
    if (clock.checkWall() || hasJumped || tick % ticksPerMark === 0) await markTime(parts);
    if (tick > 0 && (hasJumped || tick % ticksPerMark === 0)) await parts.checkListeners();
    if (hasJumped) {
      await pause(clock, random.fraction() * jitterMs, signal);
      onSleep();
    }
    const keepMs = historyKeepMs();
    // After a reload with a shorter `history.keep`, prune at once.
    if (tick % ticksPerPrune === 0 || keepMs < lastKeepMs) await prune(parts, signal);
    lastKeepMs = keepMs;
    await spreadGraces(parts, signal);
    await pause(clock, tickMs, signal);
  }
  // Setting the clock back before the next start then gains nothing.
  await markTime(parts);
}

/** Records the time. If the time went back, the stored dates go back with it. */
export async function recordTime({
  clock,
  writer,
}: Pick<MaintenanceParts, 'clock' | 'writer'>): Promise<void> {
  await clock.record(async (mark, shifts) => {
    if (shifts.length === 0) await writer.write('markTime', { mark });
    else await writer.write('correctDates', { mark, shifts });
  });
}

async function markTime(parts: MaintenanceParts): Promise<void> {
  const { writer, tokenUses, lastSuccessAt } = parts;
  await ignoreUnavailable(() => recordTime(parts));
  const at = lastSuccessAt();
  if (at !== null) await ignoreUnavailable(() => writer.write('storeLastSuccess', { at }));
  const uses = tokenUses.take();
  if (uses.length > 0) await ignoreUnavailable(() => writer.write('storeTokenUses', { uses }));
}

async function prune(
  { writer, clock, role, syncKeepMs, historyKeepMs, prunes }: MaintenanceParts,
  signal: AbortSignal,
): Promise<void> {
  // If the wall clock jumped ahead and the time is not verified, remove nothing.
  const verifiedNow = clock.verified();
  // If a stored response, or the outcome of an operation, is removed too early, a repeated change counts twice: one wrong
  // clock must not cause that.
  const removalTime = clock.removalTime(role === 'agent');
  const limit = rowsPerCommit;
  /** Each step is one commit, so that writes of callers run in between. */
  const inSteps = (step: () => Promise<Result<{ removed: number }>>): Promise<void> =>
    ignoreUnavailable(async () => {
      for (let count = 0; count < maxCommits && !signal.aborted; count += 1) {
        const pruned = await step();
        if (!pruned.ok || pruned.value.removed < limit) return;
      }
    });
  await ignoreUnavailable(() => writer.write('pruneOldCredentials', { verifiedNow }));
  await inSteps(() => writer.write('pruneIdempotency', { removalTime, limit }));
  if (role === 'agent') {
    const keptMs = syncKeepMs();
    await inSteps(() => writer.write('pruneOperations', { removalTime, limit, keptMs }));
    await inSteps(() => writer.write('pruneActivations', { removalTime, limit }));
  }
  const times = { now: clock.now(), verifiedNow, removalTime, limit };
  for (const pruneOf of prunes) await inSteps(() => pruneOf(times));
  await inSteps(() => writer.write('pruneHistory', { before: verifiedNow - historyKeepMs(), limit }));
}

/** Sets the graces of licenses whose product has another grace. */
async function spreadGraces({ writer, role }: MaintenanceParts, signal: AbortSignal): Promise<void> {
  if (role !== 'authority') return;
  await ignoreUnavailable(async () => {
    for (let count = 0; count < maxCommits && !signal.aborted; count += 1) {
      const step = await writer.write('spreadGrace', { limit: rowsPerCommit });
      if (!step.ok || !step.value.hasStepped) return;
    }
  });
}

/** The faults that end the process. */
const fatalFaults: ReadonlySet<StorageFault> = new Set<StorageFault>(['failed', 'commit_failed']);

/** Ignores a full disk and an unavailable database: the next round tries again. */
export async function ignoreUnavailable(write: () => Promise<unknown>): Promise<void> {
  try {
    await write();
  } catch (error) {
    if (!(error instanceof StorageError) || fatalFaults.has(error.fault)) throw error;
  }
}
