import { hostname } from 'node:os';
import { join } from 'node:path';
import type { Configuration } from '../../config/configuration.ts';
import type { RevokeToken } from '../../service/access/token.ts';
import { apiKeyKeptAt, type StartAuthority } from '../../service/lifecycle/start.ts';
import type { Log } from '../../service/ports.ts';
import { runUseCase } from '../../service/run.ts';
import type { AuthorityReader } from '../../service/tables.ts';
import type { Writer } from '../../service/writer.ts';
import type { PostgresRun } from '../../store/postgres/writer.ts';
import { stateFiles } from '../../store/sqlite/files/state-directory.ts';
import { firstApiKey, isApiKeyKnown, placeOfDirectory } from './start-store.ts';
import { sha256 } from '../system/random.ts';
import { keepSecretFile } from '../system/secret-files.ts';

/** The place of a store that all copies share: it is the same wherever a copy runs. */
const sharedPlace = 'postgres';
/** How much of a digest names a copy. */
const copyNameLength = 12;

/**
 * Runs the use cases of a copy, whose admin token lies in a file here. Of those that start together on an empty
 * database, one makes the first account: who that is, is known only under the lock of the start, so that `api.key` is
 * written there and nowhere else.
 */
export function copyRun(stateDir: string): PostgresRun['run'] {
  const copy = copyNameOf(stateDir);
  return (transaction, request, context) => {
    if (request.name === 'revokeToken') {
      const command = { ...(request.command as RevokeToken), copy };
      return runUseCase(transaction, { ...request, command }, context);
    }
    if (request.name !== 'startAuthority') return runUseCase(transaction, request, context);
    return firstApiKey(stateDir, transaction).then((apiKeyDigest) => {
      const command = { ...(request.command as StartAuthority), apiKeyDigest };
      return runUseCase(transaction, { ...request, command }, context);
    });
  };
}

/** Names a copy among those that share a database. Containers differ in nothing but the name of their host. */
export function copyNameOf(stateDir: string, host: string = hostname()): string {
  return sha256(`${host} ${placeOfDirectory(stateDir)}`).slice(0, copyNameLength);
}

/**
 * Takes the store that copies share into use, with an admin token of this copy; gives its instance id. `writer` runs
 * as `copyRun` does.
 */
export async function startCopy({ stateDir }: Configuration, writer: Writer): Promise<string> {
  const started = await writer.write('startAuthority', {
    adminTokenDigest: sha256(keepSecretFile(stateDir, 'adminToken', 'lk_tok')),
    copy: copyNameOf(stateDir),
    place: sharedPlace,
    apiKeyDigest: null,
    apiKeyKeptAt: keptAt(stateDir),
  });
  if (!started.ok) throw new Error(started.problem.detail);
  return started.value.instance;
}

/** Says where the first API key was written, if not here; warns where the key that is here is no account's. */
export async function tellOfApiKey(stateDir: string, reader: AuthorityReader, log: Log): Promise<void> {
  const isKnown = await isApiKeyKnown(stateDir, reader);
  if (isKnown === null) {
    const at = await apiKeyKeptAt(reader);
    if (at !== null && at !== keptAt(stateDir)) log.info({ at }, 'the first API key is at another copy');
  }
  if (isKnown !== false) return;
  const hint = 'it was rolled since, or another copy has made the first one: write the key in force into it';
  log.warn({ hint }, 'the key in api.key is of no account');
}

function keptAt(stateDir: string): string {
  return `${hostname()}:${join(stateDir, stateFiles.apiKey)}`;
}
