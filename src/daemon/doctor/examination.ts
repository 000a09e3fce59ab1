import type { Configuration } from '../../config/configuration.ts';
import { examineCertificate, examineListeners } from './listeners.ts';
import { examineFiles } from './files.ts';
import { examineRole, examineStore } from './store.ts';
import type { Finding } from '../../config/fault/finding.ts';

/** What the doctor is to look at. */
export type DoctorInput = {
  configuration: Configuration;
  secretFiles: readonly string[];
  /** The configuration file, if secrets stand in it. */
  fileWithSecrets: string | null;
  /** A daemon that runs looks through its store itself; where none does, a start could come next. */
  presence: 'running' | 'absent' | 'unknown';
  /** The instance id of the daemon; null: it is not known, because none has run. */
  instance: string | null;
  /** When the certificate ends that the running daemon shows; null: none is shown. */
  shownUntil: string | null;
  /** Writes the command line of a command, by its words. */
  hint: (words: string) => string;
  /** What starts the daemon. */
  start: string;
};

/** Looks at files, store or database, and upstream; changes nothing. */
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
    ...(configuration.role === 'agent' ? await examineWayUp(configuration, instance) : []),
  ];
}

function examineLocalStore(
  { stateDir, role }: Configuration,
  { presence, ...advice }: Pick<DoctorInput, 'presence' | 'hint' | 'start'>,
): Finding[] {
  return [...(presence === 'running' ? [] : examineStore(stateDir, advice)), ...examineRole(stateDir, role)];
}

/** Loaded where there is one alone: the driver takes time, too. */
async function examineSharedStore(configuration: Configuration): Promise<readonly Finding[]> {
  const { examineDatabase } = await import('./database.ts');
  return await examineDatabase(configuration);
}

/** Loaded for agents alone: the client of an upstream takes most of the time that a short command has. */
async function examineWayUp(
  configuration: Configuration,
  instance: string | null,
): Promise<readonly Finding[]> {
  const { examineUpstream } = await import('./upstream.ts');
  return (await examineUpstream(configuration, instance)).findings;
}
