import { findDamage } from '../../store/files/damage.ts';
import { findDatabase } from '../../store/files/database-file.ts';
import { databaseIn } from '../../store/files/state-directory.ts';
import { DatabaseRefused } from '../../store/faults.ts';
import { fail, ok, type Finding } from '../../config/finding.ts';

/** Looks through a store that no daemon uses, and changes nothing in it. */
export function examineStore(stateDir: string): Finding[] {
  const path = databaseIn(stateDir);
  const advice = 'put a backup back: latchkey restore FILE';
  try {
    if (!findDatabase(path)) return [];
    const damage = findDamage(path);
    return [
      damage === null
        ? ok(`the store ${path} is sound`)
        : fail(`the store ${path} is damaged: ${damage}`, advice),
    ];
  } catch (error) {
    if (!(error instanceof DatabaseRefused)) throw error;
    return [fail(error.message, advice)];
  }
}
