import { once } from 'node:events';
import { StorageError } from '../../service/ports.ts';
import { errorOf, type OutcomeMessage } from './writer-message.ts';
import { startWorker } from './start-worker.ts';

/** Which database is copied, and to which new file. */
export type BackupOrder = { databasePath: string; path: string };

/** Copies a database in a thread of its own, which may take long; rejects when the signal comes first. */
export async function backUpInThread(order: BackupOrder, signal: AbortSignal): Promise<void> {
  const worker = startWorker('backup', order);
  try {
    const [message] = (await once(worker, 'message', { signal })) as [OutcomeMessage];
    const error = errorOf(message);
    if (error instanceof StorageError) throw error;
    if (error !== null) throw new Error('the copy failed', { cause: error });
  } finally {
    // Nothing of it writes any more when this is done.
    await worker.terminate();
  }
}
