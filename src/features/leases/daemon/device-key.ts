import { join } from 'node:path';
import type { Configuration } from '../../../config/configuration.ts';
import { formatReason } from '../../../config/errors.ts';
import { readNamedFile } from '../../../config/file/named-file.ts';
import { type KeyPair, newKey, readPrivateKey } from '../documents.ts';
import { StateDirectoryRefused } from '../../../store/sqlite/faults.ts';
import { readOwnFile, replaceFile } from '../../../store/sqlite/files/private-file.ts';
import { stateFiles } from '../../../store/sqlite/files/state-directory.ts';

/**
 * Reads the key of this device, or makes one at the first start. The key is the identity of the device: a directory that is
 * moved or copied keeps it. Throws `StateDirectoryRefused` if the file has no such key.
 */
export async function ensureDeviceKey({
  stateDir,
  leases,
}: Pick<Configuration, 'stateDir' | 'leases'>): Promise<KeyPair> {
  const { deviceKeyFile } = leases;
  const path = deviceKeyFile ?? join(stateDir, stateFiles.deviceKey);
  let text = deviceKeyFile === null ? readOwnFile(path) : readGiven(deviceKeyFile, stateDir);
  if (text === null) {
    text = `${JSON.stringify(await newKey())}\n`;
    replaceFile(path, text);
  }
  const key = await readPrivateKey(text);
  if (key !== null) return key;
  const name = deviceKeyFile === null ? `${stateFiles.deviceKey} in it` : `leases.device_key_file ${path}`;
  const reason = `${name} is not a private P-256 key (JWK). Put the key back, or remove the file: this machine is then another device, and needs a seat of its own.`;
  throw new StateDirectoryRefused(stateDir, reason);
}

function readGiven(path: string, stateDir: string): string {
  try {
    return readNamedFile(path);
  } catch (error) {
    throw new StateDirectoryRefused(
      stateDir,
      `leases.device_key_file: cannot read ${path}: ${formatReason(error)}.`,
    );
  }
}
