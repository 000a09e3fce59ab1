import type { Configuration } from '../../config/configuration.ts';
import { examineCertificate, examineListeners } from './listeners.ts';
import { examineFiles } from './files.ts';
import { examineRole, examineStore } from './store.ts';
import type { Finding } from '../../config/finding.ts';

/** The input of the doctor. */
export type DoctorInput = {
  configuration: Configuration;
  secretFiles: readonly string[];
  /** The configuration file, if it has secrets. */
  fileWithSecrets: string | null;
  /** A running daemon checks its store itself. Without a daemon, the doctor checks whether a start would work. */
  presence: 'running' | 'absent' | 'unknown';
  /** The instance id of the daemon; null: no daemon has run. */
  instance: string | null;
  /** When the certificate of the running daemon expires; null: it has none. */
  shownUntil: string | null;
  /** Returns the command line of a command. */
  hint: (words: string) => string;
  /** The command that starts the daemon. */
  start: string;
};

/** Examines files, store or database, and upstream. Changes nothing. */
export async function examine({
  configuration,
  presence,
  instance,
  shownUntil,
  hint,
  start,
  ...files
}: DoctorInput): Promise<readonly Finding[]> {
  const { stateDir } = configuration;
  return [
    ...examineFiles({ stateDir, ...files }, start),
    ...examineCertificate(configuration, shownUntil),
    ...(presence === 'absent' ? await examineListeners(configuration) : []),
    ...(configuration.store.postgres === null
      ? examineLocalStore(configuration, { presence, hint, start })
      : await examineSharedStore(configuration)),
    ...(configuration.role === 'agent' ? await examineUpstreamOf(configuration, instance) : []),
  ];
}

function examineLocalStore(
  { stateDir, role }: Configuration,
  { presence, ...advice }: Pick<DoctorInput, 'presence' | 'hint' | 'start'>,
): Finding[] {
  return [...(presence === 'running' ? [] : examineStore(stateDir, advice)), ...examineRole(stateDir, role)];
}

/** Loads the driver only if there is a database. */
async function examineSharedStore(configuration: Configuration): Promise<readonly Finding[]> {
  const { examineDatabase } = await import('./database.ts');
  return await examineDatabase(configuration);
}

/** Loads the client of the upstream for agents only: loading takes most of the time of the command. */
async function examineUpstreamOf(
  configuration: Configuration,
  instance: string | null,
): Promise<readonly Finding[]> {
  const { examineUpstream } = await import('./upstream.ts');
  return (await examineUpstream(configuration, instance)).findings;
}
