import { accessSync, constants, readdirSync, statSync } from 'node:fs';
import { join, win32 } from 'node:path';
import { formatReason } from '../../config/errors.ts';
import {
  adviceToRestrict,
  checkRights,
  formatAccounts,
  type Rights,
  type WindowsTools,
} from '../../config/file/windows-rights.ts';
import { type Finding, fail, ok, warn } from '../../domain/finding.ts';
import { freeBytes } from '../../store/sqlite/reserve.ts';
import { databaseIn, findSafetyProblem, stateFiles } from '../../store/sqlite/files/state-directory.ts';

const ownerOnly = 0o700;
const ownerWrite = 0o600;
const groupBits = 0o070;
const groupWrite = 0o020;
const otherBits = 0o007;
const root = 0;
/** The advice if this user has no permission. */
export const isWindows: boolean = process.platform === 'win32';
export const asItsUser: string = `run this as the user that runs the daemon, or as ${isWindows ? 'an administrator' : 'root'}`;
/** With less free space than this, the doctor warns, in bytes. */
const minFreeBytes = 64 * 1024 * 1024;

/** Examines who can read the state, the secrets and the configuration, and the free space. */
export function examineFiles(
  places: {
    stateDir: string;
    secretFiles: readonly string[];
    /** The configuration file, if it has secrets. */
    fileWithSecrets: string | null;
  },
  start: string,
): Finding[] {
  const { stateDir, secretFiles, fileWithSecrets } = places;
  const secrets = fileWithSecrets === null ? secretFiles : [...secretFiles, fileWithSecrets];
  return [
    ...examineStateDirectory(stateDir, start),
    ...secrets.map((path) => examineSecret(path, groupOf(stateDir))),
  ];
}

function examineStateDirectory(directory: string, start: string): Finding[] {
  const name = `state directory ${directory}`;
  try {
    const files = readdirSync(directory);
    return [
      ...(isWindows ? examineWindowsDirectory(directory) : examineModes(directory, files)),
      ...examineOwners(directory),
      ...[directory, databaseIn(directory), join(directory, stateFiles.lock)].flatMap(examineWritable),
      examineDiskSpace(directory),
    ];
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') {
      return [warn(`${name} does not exist yet`, `the first start creates it: ${start}`)];
    }
    const isFile = error instanceof Error && 'code' in error && error.code === 'ENOTDIR';
    const advice = isFile ? 'choose another state_dir: a file is in its place' : asItsUser;
    return [fail(`${name}: ${formatReason(error)}`, advice)];
  }
}

function examineModes(directory: string, files: readonly string[]): Finding[] {
  const name = `state directory ${directory}`;
  const open = files.filter((file) => isOpen(join(directory, file), groupBits | otherBits));
  return [
    isOpen(directory, groupBits | otherBits)
      ? fail(`${name} is accessible to other users`, `chmod ${ownerOnly.toString(8)} ${directory}`)
      : ok(`${name} is accessible only to its owner`),
    ...open.map((file) => {
      const path = join(directory, file);
      const mode = statSync(path).isDirectory() ? ownerOnly.toString(8).padStart(4, '0') : '0600';
      return fail(`${path} can be read by other users`, `chmod ${mode} ${path}`);
    }),
  ];
}

/** Examines as the owner of the directory, who runs the daemon: this process may be root. */
function examineOwners(directory: string): Finding[] {
  const user = isWindows ? null : statSync(directory).uid;
  const intrusion = findSafetyProblem(directory, user);
  return intrusion === null
    ? []
    : [fail(`${directory} cannot be used: ${intrusion}`, 'correct that, and start again')];
}

/** Examines whether the owner of a file or directory can write to it: a start refuses what cannot be written. */
function examineWritable(path: string): Finding[] {
  const status = statSync(path, { throwIfNoEntry: false });
  if (status === undefined) return [];
  const bits = status.isDirectory() ? ownerOnly : ownerWrite;
  if (!isWindows && (status.mode & bits) !== bits)
    return [fail(`${path} cannot be written: its mode forbids that`, `chmod u+rwX ${path}`)];
  try {
    accessSync(path, constants.W_OK);
    return [];
  } catch (error) {
    const isReadOnly = error instanceof Error && 'code' in error && error.code === 'EROFS';
    const advice = isReadOnly ? 'mount its file system writable: changes are refused' : asItsUser;
    return [fail(`${path} cannot be written: ${formatReason(error)}`, advice)];
  }
}

function examineDiskSpace(directory: string): Finding {
  const free = freeBytes(directory);
  const mebibytes = Math.floor(free / 1024 ** 2);
  return free < minFreeBytes
    ? warn(
        `only ${mebibytes} MiB are free on the disk of the state directory`,
        'free some space: changes are refused on a full disk',
      )
    : ok(`${mebibytes} MiB are free on the disk of the state directory`);
}

/** Examines who can read a file with a secret. `service`: the group of the daemon. */
export function examineSecret(path: string, service: number | null): Finding {
  if (isWindows) return examineWindowsSecret(path);
  if (isOpen(path, otherBits))
    return fail(`${path} can be read by every user of this machine`, `chmod 0600 ${path}`);
  if (isOpen(path, groupBits) && isOfRootFor(path, service)) {
    return ok(`${path} can be read only by root and the service`);
  }
  if (isOpen(path, groupBits)) return warn(`${path} can be read by its group`, `chmod 0600 ${path}`);
  return ok(`${path} can be read only by its owner`);
}

function groupOf(directory: string): number | null {
  try {
    return statSync(directory).gid;
  } catch {
    return null;
  }
}

/** A file of root that the group of the service can only read, as the Debian package installs it. */
function isOfRootFor(path: string, service: number | null): boolean {
  const { uid, gid, mode } = statSync(path);
  return uid === root && gid === service && gid !== root && (mode & groupWrite) === 0;
}

/** Ignores sockets, whose mode is configured. */
function isOpen(path: string, bits: number): boolean {
  const status = statSync(path, { throwIfNoEntry: false });
  if (status === undefined || status.isSocket()) return false;
  return (status.mode & bits) !== 0;
}

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
      return strangers.length === 0 ? [] : [openToOthers(path, path, 'file', { strangers, tools })];
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
    : openToOthers(name, path, kind, { strangers, tools });
}

function undetermined(name: string, rights: Exclude<Rights, { kind: 'checked' }>): Finding {
  return rights.kind === 'denied'
    ? fail(`${name}: ${rights.reason}`, 'run this as the user that runs the daemon, or as an administrator')
    : warn(`who can access ${name} was not checked: ${rights.reason}`, 'look at its properties, Security');
}

function openToOthers(
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
