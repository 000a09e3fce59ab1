import type { Log } from '../../service/ports.ts';
import { StorageError } from '../../service/ports.ts';
import type { Database } from '../../store/postgres/database.ts';
import { storageErrorOf } from '../../store/postgres/faults.ts';
import { migrate } from '../../store/postgres/migrations.ts';
import { PostgresAway, PostgresRefused, reasonOf } from '../../store/postgres/refusal.ts';
import type { TimeSource } from '../system/clock.ts';

/** For how long a start waits for its database, in ms: less than systemd gives a start (90 s). */
const patienceMs = 60_000;
/** How often it is tried, in ms. */
const tryMs = 1_000;

/**
 * Migrates a database as soon as it can be used: whoever starts a copy may have started the database beside it.
 * Rejects with `PostgresRefused` at once, with `PostgresAway` when it has waited long enough, and with the signal's
 * reason.
 */
export async function migrateWhenUsable(
  database: Database,
  { time, log, signal }: { time: TimeSource; log: Log; signal: AbortSignal },
): Promise<void> {
  const endsAt = time.read().monotonic + patienceMs;
  for (let count = 1; ; count += 1) {
    try {
      await migrate(database);
      return;
    } catch (error) {
      const mayPass = !(error instanceof PostgresRefused) && storageErrorOf(error) instanceof StorageError;
      if (!mayPass) throw error;
      if (time.read().monotonic >= endsAt) throw new PostgresAway(database.place, error);
      if (count === 1) tell(log, database, error);
    }
    await time.sleep(tryMs, signal).catch(() => undefined);
    signal.throwIfAborted();
  }
}

function tell(log: Log, { place }: Database, error: unknown): void {
  log.warn({ database: place, error: reasonOf(error) }, 'the database cannot be used yet: waiting for it');
}
