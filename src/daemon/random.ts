import { hash, randomBytes } from 'node:crypto';
import { v7 as uuid } from 'uuid';
import type { Digest, Random } from '../service/ports.ts';

/** Randomness from the operating system. */
export const systemRandom: Random = {
  bytes: (count) => randomBytes(count),
  uuid: (now) => uuid({ msecs: now }),
  draw: () => randomBytes(4).readUInt32LE() / 2 ** 32,
};

/** SHA-256 as lower-case hexadecimal. */
export const sha256: Digest = (secret) => hash('sha256', secret, 'hex');
