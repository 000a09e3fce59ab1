import { StorageError } from '../../service/ports.ts';
import { DatabaseRefused, restoreAdvice, storageFault } from '../../store/sqlite/faults.ts';
import { findDamage } from '../../store/sqlite/files/damage.ts';

/** Why a start failed on this database: the error as it came, unless the database is damaged. */
export function explainFailedStart(error: unknown, databasePath: string): unknown {
  const isOfStorage = error instanceof StorageError || storageFault(error) === 'failed';
  const damage = isOfStorage ? findDamage(databasePath) : null;
  if (damage === null) return error;
  return new DatabaseRefused(databasePath, `it is damaged (${damage}): ${restoreAdvice}`, error);
}
