import { isRefusal } from '../service/idempotency.ts';
import { rememberedTime } from '../service/mark-time.ts';
import { runUseCase } from '../service/use-cases.ts';
import { openWriting } from '../store/connection.ts';
import { DatabaseRefused, StateDirectoryHeld, StateDirectoryUnusable } from '../store/faults.ts';
import { localWriter } from '../store/local-writer.ts';
import { holdDirectory } from '../store/lock.ts';
import { openStore } from '../store/open.ts';
import { putBack } from '../store/put-back.ts';
import { KeptClock } from './clock.ts';
import { sha256, systemRandom } from './random.ts';

/**
 * Puts a backup back into a state directory that no process uses, as a store of its own whose unfinished
 * operations are all to be read back. Resolves to null, or to why it was refused.
 */
export async function restoreBackup(backup: string, stateDir: string): Promise<string | null> {
  try {
    {
      using _ = holdDirectory(stateDir);
      putBack(backup, stateDir);
    }
    using store = openStore({ directory: stateDir });
    using connection = openWriting(store.databasePath);
    const clock = new KeptClock(rememberedTime(connection.transaction));
    const writer = localWriter(connection, {
      run: runUseCase,
      isRefusal,
      context: () => ({ now: clock.now(), steady: clock.steady(), random: systemRandom, digest: sha256 }),
    });
    await writer.write('restore', {});
    return null;
  } catch (error) {
    const isExpected =
      error instanceof DatabaseRefused ||
      error instanceof StateDirectoryHeld ||
      error instanceof StateDirectoryUnusable;
    if (!isExpected) throw error;
    return error.message;
  }
}
