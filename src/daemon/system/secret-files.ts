import { join } from 'node:path';
import { newSecret, minSecretLength, type SecretPrefix } from '../../service/access/credential.ts';
import { StateDirectoryRefused } from '../../store/sqlite/faults.ts';
import { readOwnFile, replaceFile } from '../../store/sqlite/files/private-file.ts';
import { stateFiles } from '../../store/sqlite/files/state-directory.ts';
import { systemRandom } from './machine.ts';

/** Returns the secret in a file, or creates one. Throws `StateDirectoryRefused` if the secret could be guessed. */
export function ensureSecretFile(
  directory: string,
  file: 'adminToken' | 'apiKey',
  prefix: SecretPrefix,
): string {
  const path = join(directory, stateFiles[file]);
  const secret = readSecretFile(directory, file) ?? '';
  if (secret !== '') {
    if (secret.length >= minSecretLength) return secret;
    const reason = `${stateFiles[file]} in it has fewer than ${minSecretLength} characters: write a longer one, or remove it for a new one.`;
    throw new StateDirectoryRefused(directory, reason);
  }
  const created = newSecret(prefix, systemRandom);
  replaceFile(path, `${created}\n`);
  return created;
}

/** The secret in a file of the state directory; null if there is none. */
export function readSecretFile(directory: string, file: 'adminToken' | 'apiKey'): string | null {
  return readOwnFile(join(directory, stateFiles[file]))?.trim() ?? null;
}

/** Replaces the secret in a file of the state directory. Does not create a removed file. */
export function replaceSecretFile(directory: string, file: 'apiKey', secret: string): void {
  const path = join(directory, stateFiles[file]);
  if (readOwnFile(path) !== null) replaceFile(path, `${secret}\n`);
}
