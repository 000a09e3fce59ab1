import { createHash, randomBytes, randomUUID } from 'node:crypto';
import { KeptClock } from '../../src/daemon/system/clock.ts';
import { isRefusal } from '../../src/service/access/idempotency.ts';
import { runUseCase } from '../../src/service/run.ts';
import type { Database } from '../../src/store/postgres/database.ts';
import { PostgresWriter, type PostgresRun } from '../../src/store/postgres/writer.ts';

/** Another copy of the authority. */
export function writerOn(database: Database, changes: Partial<PostgresRun> = {}): PostgresWriter {
  const clock = new KeptClock(null);
  return new PostgresWriter(database, {
    run: runUseCase,
    isRefusal,
    context: (databaseNow) => ({
      now: databaseNow ?? clock.now(),
      steady: clock.steady(),
      random: { bytes: randomBytes, uuid: () => randomUUID(), draw: () => Math.random() },
      digest: (secret) => createHash('sha256').update(secret).digest('hex'),
      keepsHistory: true,
    }),
    clock,
    random: { draw: () => Math.random() },
    onCredentialsChanged: () => undefined,
    onRepeat: () => undefined,
    onTried: () => undefined,
    timer: () => performance.now(),
    ...changes,
  });
}
