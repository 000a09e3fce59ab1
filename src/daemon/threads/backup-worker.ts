import { parentPort, workerData } from 'node:worker_threads';
import { backUp } from '../../store/sqlite/files/backup.ts';
import type { BackupOrder } from '../store/backups.ts';
import { outcomeMessage, type OutcomeMessage } from './worker.ts';

/** Only the fields of an error are sent to another thread. */
function carryOut({ databasePath, path }: BackupOrder): OutcomeMessage {
  try {
    backUp(databasePath, path);
    return outcomeMessage({ result: null });
  } catch (error) {
    return outcomeMessage({ error });
  }
}

parentPort?.postMessage(carryOut(workerData as BackupOrder));
