import { join } from 'node:path';
import { newSecret } from '../../service/access/secret.ts';
import { readOwnFile, replaceFile } from '../../store/files/private-file.ts';
import { stateFiles } from '../../store/files/state-directory.ts';
import { systemRandom } from './random.ts';

/** The secret in a file of the state directory; a new one is made, for its owner alone, where there is none. */
export function keepSecretFile(
  directory: string,
  file: 'adminToken' | 'apiKey',
  prefix: Parameters<typeof newSecret>[0],
): string {
  const path = join(directory, stateFiles[file]);
  const kept = readOwnFile(path)?.trim() ?? '';
  if (kept !== '') return kept;
  const secret = newSecret(prefix, systemRandom);
  replaceFile(path, `${secret}\n`);
  return secret;
}
