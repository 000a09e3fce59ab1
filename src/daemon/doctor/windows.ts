import { readdirSync } from 'node:fs';
import { win32 } from 'node:path';
import {
  adviceToRestrict,
  checkRights,
  formatAccounts,
  type Rights,
  type WindowsTools,
} from '../../config/file/windows-rights.ts';
import { type Finding, fail, ok, warn } from '../../config/finding.ts';

/** Examines who can access a state directory, and the files in it, by the access rights of Windows. */
export function examineWindowsDirectory(directory: string, tools?: WindowsTools): Finding[] {
  const own = examineWindowsFile(`state directory ${directory}`, directory, 'directory', tools);
  if (own.level === 'warn' || readdirSync(directory).length === 0) return [own];
  const inside = checkRights(win32.join(directory, '*'), tools);
  if (inside.kind !== 'checked') return [own, undetermined(`the files in ${directory}`, inside)];
  const files = inside.files.map((file) => ({
    ...file,
    path: win32.join(directory, win32.basename(file.name)),
  }));
  return [
    own,
    ...files.flatMap(({ path, readers, writers }) => {
      const strangers = unique([...readers, ...writers]);
      return strangers.length === 0 ? [] : [open(path, path, 'file', { strangers, tools })];
    }),
  ];
}

/** Examines who can access a file with a secret. */
export function examineWindowsSecret(path: string, tools?: WindowsTools): Finding {
  return examineWindowsFile(path, path, 'file', tools);
}

function examineWindowsFile(
  name: string,
  path: string,
  kind: 'file' | 'directory',
  tools: WindowsTools | undefined,
): Finding {
  const rights = checkRights(path, tools);
  if (rights.kind !== 'checked') return undetermined(name, rights);
  const strangers = unique(rights.files.flatMap(({ readers, writers }) => [...readers, ...writers]));
  return strangers.length === 0
    ? ok(`${name} is accessible only to this user, SYSTEM and administrators`)
    : open(name, path, kind, { strangers, tools });
}

function undetermined(name: string, rights: Exclude<Rights, { kind: 'checked' }>): Finding {
  return rights.kind === 'denied'
    ? fail(`${name}: ${rights.reason}`, 'run this as the user that runs the daemon, or as an administrator')
    : warn(`who can access ${name} was not checked: ${rights.reason}`, 'look at its properties, Security');
}

function open(
  name: string,
  path: string,
  kind: 'file' | 'directory',
  { strangers, tools }: { strangers: readonly string[]; tools: WindowsTools | undefined },
): Finding {
  const what = `${name} is accessible to other users: ${formatAccounts(strangers)}`;
  return fail(what, adviceToRestrict(path, kind, strangers, tools));
}

function unique(accounts: readonly string[]): string[] {
  return [...new Set(accounts)];
}
