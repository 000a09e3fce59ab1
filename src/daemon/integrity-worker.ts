import { parentPort, workerData } from 'node:worker_threads';
import { findDamage } from '../store/damage.ts';
import type { DamageMessage } from './integrity.ts';

const { databasePath } = workerData as { databasePath: string };
const message: DamageMessage = { damage: findDamage(databasePath) };
parentPort?.postMessage(message);
