import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { newSecret } from '../../service/access/secret.ts';
import { systemRandom } from './random.ts';

/** The secret in a file of the state directory; a new one is made, for its owner alone, where there is none. */
export function keepSecretFile(
  directory: string,
  name: 'admin.token' | 'api.key',
  prefix: Parameters<typeof newSecret>[0],
): string {
  const path = join(directory, name);
  const kept = readIfThere(path)?.trim();
  if (kept !== undefined && kept !== '') return kept;
  const secret = newSecret(prefix, systemRandom);
  writeWhole(path, `${secret}\n`);
  return secret;
}

/** Writes a file of the state directory in one step, so that nobody reads half of it; for its owner alone. */
export function writeWhole(path: string, text: string): void {
  writeFileSync(`${path}.new`, text, { mode: 0o600, flush: true });
  renameSync(`${path}.new`, path);
}

function readIfThere(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined;
    throw error;
  }
}
