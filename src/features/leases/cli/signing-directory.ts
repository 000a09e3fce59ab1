import { lstatSync, statSync } from 'node:fs';
import { isInFolder } from '../../../config/defaults.ts';
import { formatReason } from '../../../config/errors.ts';
import { restrictToOwner } from '../../../config/file/windows-rights.ts';
import { locateDaemon } from '../../../config/load.ts';
import type { Address } from '../../../config/value/address.ts';
import type { Ownership } from '../issuer/signing-files.ts';
import { makeDirectory } from '../../../store/sqlite/files/private-file.ts';
import { CommandError, type GlobalOptions } from '../../../cli/command.ts';
import { configurationError, toLoadOptions } from '../../../cli/configuration.ts';

/** The signing directory of the issuer that this command line names, and whose new files in it are. */
export interface SigningPlace {
  readonly directory: string;
  readonly stateDir: string;
  /** `listen.tcp` of the issuer. */
  readonly tcp: readonly Address[];
  readonly ownership: Ownership;
}

/** Finds the signing directory. The commands work on its files, with or without a running daemon. */
export function locateSigningDirectory(args: GlobalOptions): SigningPlace {
  const located = locateDaemon(toLoadOptions(args));
  if (!located.ok) throw configurationError(located.errors);
  const { stateDir, signingDir: directory, hasIssuer, tcp } = located.location;
  if (hasIssuer) {
    throw new CommandError([
      'latchkey: this configuration is for a holder (leases.issuer), which signs no leases',
    ]);
  }
  return {
    directory,
    stateDir,
    tcp,
    ownership: { owner: ownerOf(stateDir, directory), restrict: restrictOutside(stateDir) },
  };
}

/** Creates the state directory if no daemon has run. Root does not: the daemon runs as another user, as a rule. */
export function createStateDirectory({ stateDir, ownership }: SigningPlace): void {
  if (statSync(stateDir, { throwIfNoEntry: false }) !== undefined) return;
  if (process.getuid?.() === 0) {
    throw new CommandError([
      `latchkey: ${stateDir} does not exist yet: start the daemon once, so that the directory belongs to its user`,
    ]);
  }
  makeDirectory(stateDir, 0o700);
  ownership.restrict(stateDir, 'directory');
}

/** The owner of the state directory, if this is root. A link could lead root to another directory. */
function ownerOf(stateDir: string, directory: string): Ownership['owner'] {
  if (process.getuid?.() !== 0) return null;
  const state = statSync(stateDir, { throwIfNoEntry: false });
  if (state === undefined || state.uid === 0) return null;
  const link = lstatSync(directory, { throwIfNoEntry: false });
  if (link?.isSymbolicLink() === true && link.uid !== 0) {
    throw new CommandError([
      `latchkey: ${directory} is a link of user ${link.uid}: put the directory itself there`,
    ]);
  }
  return { uid: state.uid, gid: state.gid };
}

/** On Windows, files in the state directory inherit its rights, which name the account of the service. */
function restrictOutside(stateDir: string): Ownership['restrict'] {
  return (path, kind) => {
    if (process.platform === 'win32' && (path === stateDir || !isInFolder(path, stateDir, process.platform)))
      restrictToOwner(path, kind);
  };
}

/** Runs an action on keys, and reports what it refuses and which files cannot be used. `what`: the begin of the line. */
export async function changeKeys<Value>(what: string, action: () => Promise<Value>): Promise<Value> {
  const { SigningFilesRefused } = await import('../issuer/signing-files.ts');
  try {
    return await action();
  } catch (error) {
    if (error instanceof SigningFilesRefused) throw new CommandError([`latchkey: ${what}: ${error.message}`]);
    if (!(error instanceof Error && 'syscall' in error)) throw error;
    const path = 'path' in error ? ` (${String(error.path)})` : '';
    throw new CommandError([`latchkey: ${what}: ${formatReason(error)}${path}`]);
  }
}
