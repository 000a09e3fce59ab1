import { readFileSync, realpathSync } from 'node:fs';
import type { Configuration } from '../config/configuration.ts';
import type { Writer } from '../service/writer.ts';
import type { Reader } from '../service/tables.ts';
import { sha256 } from './system/random.ts';
import { keepSecretFile } from './system/secret-files.ts';

/**
 * Takes a store into use: writes `admin.token`, and on the first start of an authority `api.key`, before
 * their digests are committed, so that a crash in between leaves no secret that nobody has. Gives the
 * instance id of the store.
 */
export async function startStore(
  { role, stateDir, sync }: Configuration,
  reader: Reader,
  writer: Writer,
): Promise<string> {
  const isFirstOfAuthority = role === 'authority' && reader.accounts.count() === 0;
  const started = await writer.write('start', {
    role,
    adminTokenDigest: sha256(keepSecretFile(stateDir, 'adminToken', 'lk_tok')),
    apiKeyDigest: isFirstOfAuthority ? sha256(keepSecretFile(stateDir, 'apiKey', 'lk_api')) : null,
    place: placeOf(stateDir),
    fenceMs: sync.fenceMs,
  });
  if (!started.ok) throw new Error(started.problem.detail);
  return started.value.instance;
}

/** Tells a copied state directory: the machine, as far as it has an id of its own, and the real path. */
function placeOf(stateDir: string): string {
  return `${machineId()} ${realpathSync(stateDir)}`;
}

function machineId(): string {
  try {
    return readFileSync('/etc/machine-id', 'utf8').trim();
  } catch {
    // Containers, and systems other than Linux, have none: the path must do.
    return '';
  }
}
