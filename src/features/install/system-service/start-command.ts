import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { isUnitFor, packagedUnitFolders, unitFolder } from './systemd-unit.ts';
import { isXmlServiceFor } from './xml-service.ts';

/** The command that starts the service of a state directory; null if no service on this machine is for that directory. */
export function startCommandOf(
  stateDir: string,
  platform: NodeJS.Platform = process.platform,
  folders: readonly string[] = serviceFolders(platform),
): string | null {
  const [name, command, isFor] =
    platform === 'win32'
      ? (['latchkey-service.xml', 'sc.exe start latchkey', isXmlServiceFor] as const)
      : platform === 'darwin'
        ? (['latchkey.plist', 'sudo launchctl kickstart system/latchkey', isXmlServiceFor] as const)
        : (['latchkey.service', 'systemctl start latchkey', isUnitFor] as const);
  return folders.some((folder) => isFor(readText(join(folder, name)), stateDir)) ? command : null;
}

function serviceFolders(platform: NodeJS.Platform): readonly string[] {
  if (platform === 'win32')
    return [join(process.env['ProgramFiles'] ?? String.raw`C:\Program Files`, 'Latchkey')];
  return platform === 'darwin' ? ['/Library/LaunchDaemons'] : [unitFolder, ...packagedUnitFolders];
}

function readText(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}
