import { dirname } from 'node:path';
import { StorageError } from '../../service/ports.ts';
import {
  DatabaseRefused,
  restoreAdvice,
  StateDirectoryUnusable,
  storageFault,
} from '../../store/sqlite/faults.ts';
import { findDamage } from '../../store/sqlite/files/damage.ts';

/** Why a start failed on this database: that it is damaged, or why its directory takes no writes. */
export function explainFailedStart(error: unknown, databasePath: string): unknown {
  if (!(error instanceof StorageError) && storageFault(error) === null) return error;
  const damage = damageOf(databasePath);
  if (damage !== null) {
    return new DatabaseRefused(databasePath, `it is damaged (${damage}): ${restoreAdvice}`, error);
  }
  const cause = error instanceof StorageError ? (error.cause ?? error) : error;
  return new StateDirectoryUnusable(dirname(databasePath), cause);
}

/** Null also where it cannot be looked at: what kept the start from it says why. */
function damageOf(databasePath: string): string | null {
  try {
    return findDamage(databasePath);
  } catch {
    return null;
  }
}
