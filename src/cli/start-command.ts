import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { GlobalOptions } from './command.ts';
import { hintFor } from './hint.ts';
import { isUnitFor, packagedUnitFolders, unitFolder } from './local/service/systemd-unit.ts';

/**
 * What starts the daemon of a state directory: systemd, where a unit of this machine is for it. `serve` would be
 * refused there, since the state belongs to the user of the service, or run beside the service manager.
 */
export function startCommand(
  options: GlobalOptions,
  stateDir: string,
  folders: readonly string[] = [unitFolder, ...packagedUnitFolders],
): string {
  return folders.some((folder) => isUnitFor(readUnit(folder), stateDir))
    ? 'systemctl start latchkey'
    : hintFor(options)('serve');
}

function readUnit(folder: string): string {
  try {
    return readFileSync(join(folder, 'latchkey.service'), 'utf8');
  } catch {
    return '';
  }
}
