import { parentPort, workerData } from 'node:worker_threads';
import { findDamage } from '../../store/sqlite/files/backup.ts';
import type { DamageMessage } from '../store/damage-watch.ts';

const { databasePath } = workerData as { databasePath: string };
const message: DamageMessage = { damage: findDamage(databasePath) };
parentPort?.postMessage(message);
