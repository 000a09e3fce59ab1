import { readFileSync } from 'node:fs';
import { hash, randomBytes, randomInt, timingSafeEqual } from 'node:crypto';
import { runProgram, runWindowsProgram } from '../../config/file/windows-rights.ts';
import type { Digest, Random, SameDigest } from '../../service/ports.ts';

/** Randomness from the operating system. */
export const systemRandom: Random = {
  bytes: (count) => randomBytes(count),
  uuid: (now) => formatUuid(now, nextUuidBytes()),
  fraction: () => randomInt(2 ** 32) / 2 ** 32,
};

const uuidBytes = 16;
/** Fetched for many identifiers at once: a call takes several times as long as building an identifier. */
let uuidPool = randomBytes(0);
let uuidPoolUsed = 0;

/**
 * Formats a UUID of version 7 (RFC 9562). Node's `randomUUIDv7` cannot be given a time; the package `uuid` would add 20
 * files to a start.
 */
function formatUuid(now: number, bytes: Buffer): string {
  bytes.writeUIntBE(now, 0, 6);
  // The version is in the upper half of a byte, the variant in the two upper bits of another.
  bytes[6] = 0x70 | (bytes.readUInt8(6) & 0x0f);
  bytes[8] = 0x80 | (bytes.readUInt8(8) & 0x3f);
  return bytes.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
}

function nextUuidBytes(): Buffer {
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

const registryKey = String.raw`HKLM\SOFTWARE\Microsoft\Cryptography`;

type IdSource = { read: () => string; pattern: RegExp };

const unix: IdSource = { read: () => readFileSync('/etc/machine-id', 'utf8'), pattern: /^(\S*)$/ };

/** How each system shows its id, and what is the id in the text. */
const idSources: Readonly<Partial<Record<NodeJS.Platform, IdSource>>> = {
  win32: {
    read: () => runWindowsProgram('reg.exe', ['query', registryKey, '/v', 'MachineGuid', '/reg:64']),
    pattern: /\bMachineGuid {1,9}REG_SZ {1,9}([0-9a-f-]{32,36})\b/i,
  },
  darwin: {
    read: () => runProgram('/usr/sbin/ioreg', ['-rd1', '-c', 'IOPlatformExpertDevice']),
    pattern: /"IOPlatformUUID" = "([0-9A-F-]{36})"/i,
  },
};

const foundIds = new Map<NodeJS.Platform, string>();

/** An id that no other machine has; empty where the system has none, for example in a container. */
export function machineId(platform: NodeJS.Platform = process.platform): string {
  const found = foundIds.get(platform) ?? parseMachineId(platform, readIdSource(platform));
  foundIds.set(platform, found);
  return found;
}

/** Takes the id from what a system shows about itself. */
export function parseMachineId(platform: NodeJS.Platform, text: string): string {
  return (idSources[platform] ?? unix).pattern.exec(text.trim())?.[1] ?? '';
}

function readIdSource(platform: NodeJS.Platform): string {
  try {
    return (idSources[platform] ?? unix).read();
  } catch {
    return '';
  }
}
