import { existsSync } from 'node:fs';
import {
  adviceToRestrict,
  checkRights,
  formatAccounts,
  restrictToOwner,
  type WindowsTools,
} from '../../config/file/windows-rights.ts';
import { StateDirectoryRefused } from '../../store/sqlite/faults.ts';
import { makeDirectory } from '../../store/sqlite/files/private-file.ts';

/**
 * Creates a state directory on Windows for this user, SYSTEM and administrators alone. Throws `StateDirectoryRefused` if
 * other users can write to an existing one. Does nothing on other systems: there, the modes of files are checked.
 * `onUnchecked` gets the reason if the rights cannot be found out, as under Wine.
 */
export function secureStateDirectory(
  directory: string,
  onUnchecked: (reason: string) => void,
  platform: NodeJS.Platform = process.platform,
  tools?: WindowsTools,
): void {
  if (platform !== 'win32') return;
  if (!existsSync(directory)) {
    makeDirectory(directory, 0o700);
    restrictToOwner(directory, 'directory', tools);
  }
  const rights = checkRights(directory, tools);
  if (rights.kind === 'unchecked') {
    onUnchecked(rights.reason);
    return;
  }
  if (rights.kind === 'denied') {
    throw new StateDirectoryRefused(directory, `${rights.reason}: choose another directory.`);
  }
  const writers = rights.files.flatMap((file) => file.writers);
  if (writers.length === 0) return;
  const advice = adviceToRestrict(directory, 'directory', writers, tools);
  const who = `other users can write to it (${formatAccounts(writers)})`;
  throw new StateDirectoryRefused(
    directory,
    `${who}: choose a new directory, or if all files in it are yours: ${advice}`,
  );
}
