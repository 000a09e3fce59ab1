import { parentPort, workerData } from 'node:worker_threads';
import { backUp, findDamage } from '../../store/sqlite/files/backup.ts';
import { outcomeMessage, type OutcomeMessage } from './worker.ts';

/** A database to copy, or (without `copyTo`) to check for damage. */
export type FileTask = { databasePath: string; copyTo?: string };

function carryOut({ databasePath, copyTo }: FileTask): OutcomeMessage {
  try {
    if (copyTo === undefined) return { result: findDamage(databasePath) };
    backUp(databasePath, copyTo);
    return { result: null };
  } catch (error) {
    return outcomeMessage({ error });
  }
}

parentPort?.postMessage(carryOut(workerData as FileTask));
