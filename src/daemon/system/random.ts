import { hash, randomBytes, randomInt, timingSafeEqual } from 'node:crypto';
import { v7 as uuid } from 'uuid';
import type { Digest, Random, SameDigest } from '../../service/ports.ts';

/** Randomness from the operating system. */
export const systemRandom: Random = {
  bytes: (count) => randomBytes(count),
  uuid: (now) => uuid({ msecs: now, random: nextUuidBytes() }),
  draw: () => randomInt(2 ** 32) / 2 ** 32,
};

const uuidBytes = 16;
/** Fetched for many identifiers at once: a call takes several times as long as building an identifier. */
let uuidPool = randomBytes(0);
let uuidPoolUsed = 0;

function nextUuidBytes(): Uint8Array {
  if (uuidPoolUsed === uuidPool.length) {
    uuidPool = randomBytes(uuidBytes * 256);
    uuidPoolUsed = 0;
  }
  uuidPoolUsed += uuidBytes;
  return uuidPool.subarray(uuidPoolUsed - uuidBytes, uuidPoolUsed);
}

/** SHA-256 as lower-case hexadecimal. */
export const sha256: Digest = (secret) => hash('sha256', secret, 'hex');

/** Compares digests of the same length. All digests of `sha256` have the same length. */
export const isSameDigest: SameDigest = (left, right) =>
  timingSafeEqual(Buffer.from(left, 'hex'), Buffer.from(right, 'hex'));
