import type { Configuration } from '../config/configuration.ts';
import type { Writer } from '../service/ports.ts';
import type { Reader } from '../service/tables.ts';
import { sha256 } from './random.ts';
import { keepSecretFile } from './secret-files.ts';

/**
 * Takes a store into use: writes `admin.token`, and on the first start of an authority `api.key`, before
 * their digests are committed, so that a crash in between leaves no secret that nobody has. Gives the
 * instance id of the store.
 */
export async function takeIntoUse(
  { role, stateDir, sync }: Configuration,
  reader: Reader,
  writer: Writer,
): Promise<string> {
  const isFirstOfAuthority = role === 'authority' && reader.accounts.count() === 0;
  const started = await writer.write('start', {
    role,
    adminTokenDigest: sha256(keepSecretFile(stateDir, 'admin.token', 'lk_tok')),
    apiKeyDigest: isFirstOfAuthority ? sha256(keepSecretFile(stateDir, 'api.key', 'lk_api')) : null,
    fenceMs: sync.fenceMs,
  });
  if (!started.ok) throw new Error(started.problem.detail);
  return started.value.instance;
}
