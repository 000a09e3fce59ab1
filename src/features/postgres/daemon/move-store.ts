import type { Configuration } from '../../../config/configuration.ts';
import { roleOf } from '../../../service/lifecycle/start.ts';
import { type Contents, move, MoveUnequal, type Progress, openSource } from '../store/move/move.ts';
import { MoveInDoubt } from '../store/move/target.ts';
import { PostgresAway, PostgresRefused } from '../store/faults.ts';
import { openReading } from '../../../store/sqlite/connection.ts';
import { DatabaseRefused } from '../../../store/sqlite/faults.ts';
import { claimDirectory } from '../../../store/sqlite/files/open.ts';
import { checkBackup, draftFrom } from '../../../store/sqlite/files/backup.ts';
import { databaseIn } from '../../../store/sqlite/files/state-directory.ts';
import { directAddressOf, type PostgresSettings } from './database-settings.ts';
import { isStoreRefusal, makeOwn } from '../../../daemon/store/restore.ts';
import { onEndingSignal } from '../../../daemon/system/process.ts';
import { makeTemporaryDirectory } from '../../../daemon/system/temporary-directory.ts';

export type StoreMove = {
  configuration: Configuration;
  postgres: PostgresSettings;
  /** The backup to move; null: the store in the state directory. */
  backup: string | null;
  onProgress: (progress: Progress) => void;
};

/** The content of each table, the same on both sides, or why nothing was moved. `isConfigured`: the configuration is wrong. */
export type Moving =
  | { ok: true; from: string; instance: string; tables: ReadonlyMap<string, Contents> }
  | { ok: false; lines: readonly string[]; isConfigured: boolean };

/** A signal ended the move. */
class Stopped extends Error {}

/**
 * Copies an authority from SQLite to an empty schema of PostgreSQL. The source is only read: a draft copy is migrated to
 * the newest schema. A backup becomes a new instance, as a restore does. A state directory keeps its instance, which its
 * agents know.
 */
export async function moveStore(options: StoreMove): Promise<Moving> {
  const stopping = new AbortController();
  const stopListening = onEndingSignal((signal) =>
    stopping.abort(new Stopped(`It was stopped (${signal}).`)),
  );
  try {
    return { ok: true, ...(await moveFromDraft(options, stopping.signal)) };
  } catch (error) {
    if (!isExpected(error)) throw error;
    return {
      ok: false,
      lines: [
        error.message,
        error instanceof MoveInDoubt
          ? 'Run it again: if the move was completed, the schema is refused.'
          : 'Nothing was changed.',
      ],
      isConfigured: error instanceof PostgresRefused && error.isConfigured,
    };
  } finally {
    stopListening();
  }
}

async function moveFromDraft(
  { configuration: { stateDir }, postgres, backup, onProgress }: StoreMove,
  signal: AbortSignal,
): Promise<Omit<Extract<Moving, { ok: true }>, 'ok'>> {
  using stack = new DisposableStack();
  const from = backup ?? databaseIn(stateDir);
  checkBackup(from);
  // The daemon may keep running while a backup is moved, to try the move.
  const directory = backup === null ? stateDir : stack.use(makeTemporaryDirectory('latchkey-move-')).path;
  if (backup === null) stack.use(claimDirectory(stateDir));
  const { path } = stack.use(draftFrom(from, directory));
  if (backup !== null) await makeOwn(path);
  const instance = instanceIn(path, from);
  const source = stack.use(openSource(path));
  // Without a pooler.
  const address = directAddressOf(postgres);
  const { schema } = postgres;
  return { from, instance, tables: await move({ source, address, schema, onProgress, signal }) };
}

/** The instance of the store of an authority. Throws `DatabaseRefused` for any other store. */
function instanceIn(path: string, from: string): string {
  using connection = openReading(path);
  const instance = connection.reader.settings.get('instance');
  const role = roleOf(connection.reader);
  if (role === 'agent') throw new DatabaseRefused(from, "it is an agent's, which is always of one process.");
  if (role === null || instance === null)
    throw new DatabaseRefused(from, 'no authority was ever started on it.');
  return instance;
}

/** Whether an error is not a bug of this program. */
function isExpected(error: unknown): error is Error {
  return (
    error instanceof Stopped ||
    error instanceof PostgresRefused ||
    error instanceof PostgresAway ||
    error instanceof MoveUnequal ||
    error instanceof MoveInDoubt ||
    isStoreRefusal(error)
  );
}
