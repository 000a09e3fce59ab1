import { readFileSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { homes, isWithin, runtimeDirectory, stateRoot } from './systemd-unit.ts';

/** The user id and group ids of a user. */
export interface UnitUser {
  readonly uid: number;
  readonly gids: readonly number[];
}

export interface FileStatus {
  readonly uid: number;
  readonly gid: number;
  readonly mode: number;
}

/** The files that a system unit needs. Paths are absolute. */
export interface UnitNeeds {
  /** The program and its files. */
  readonly program: readonly string[];
  readonly config: string | null;
  readonly stateDir: string;
  readonly socket: string | null;
}

/** The users and file permissions of a machine. */
export interface UnitMachine {
  /** Null if the user does not exist yet. */
  readonly user: UnitUser | null;
  /** Null if the file does not exist. */
  readonly statusOf: (path: string) => FileStatus | null;
}

export function thisMachine(): UnitMachine {
  return { user: readUser('/'), statusOf: readStatus };
}

/** The service user of the system below a root directory; null if it does not exist yet. */
export function readUser(root: string): UnitUser | null {
  return findUser('latchkey', readText(join(root, 'etc/passwd')), readText(join(root, 'etc/group')));
}

function readStatus(path: string): FileStatus | null {
  try {
    return statSync(path, { throwIfNoEntry: false }) ?? null;
  } catch {
    // The file is in a folder that this user cannot enter.
    return { uid: -1, gid: -1, mode: 0 };
  }
}

/** The text of a file; empty if it cannot be read. */
export function readText(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}

/** Finds a user in the texts of /etc/passwd and /etc/group, or null. */
export function findUser(name: string, passwd: string, group: string): UnitUser | null {
  const fields = passwd.split('\n').map((line) => line.split(':'));
  const [, , uid, gid] = fields.find(([of]) => of === name) ?? [];
  if (uid === undefined || gid === undefined) return null;
  const others = group
    .split('\n')
    .map((line) => line.split(':'))
    .filter(([, , , members = '']) => members.split(',').includes(name));
  return { uid: Number(uid), gids: [Number(gid), ...others.map(([, , number]) => Number(number))] };
}

/** Files that a unit cannot access. With `refusals` the service would not run. */
export interface AccessProblems {
  readonly refusals: readonly string[];
  readonly warnings: readonly string[];
}

/** The folders that PrivateTmp= hides. */
const privateFolders = ['/tmp', '/var/tmp'];

/** Finds the files that the user of a system unit could not access in its sandbox. */
export function examineReach(needs: UnitNeeds, machine: UnitMachine): AccessProblems {
  const { program, config, stateDir } = needs;
  const files = config === null ? program : [...program, config];
  const unreadable = program.filter((path) => !canRead(path, machine));
  const refusals = [
    ...files.flatMap((path) => refuseFile(path, machine)),
    ...unreadable.map((path) => `the user latchkey cannot read ${path}: its mode does not permit it`),
    ...refuseState(stateDir, machine),
  ];
  return { refusals, warnings: [...warnOfConfig(config, machine), ...warnOfSocket(needs)] };
}

function refuseFile(path: string, machine: UnitMachine): string[] {
  if (isWithin(path, privateFolders)) return [`${path} is hidden from the service, which has its own /tmp`];
  if (machine.statusOf(path) === null) return [`${path} does not exist`];
  const closed = findClosedFolder(path, machine);
  return closed === null ? [] : [`the user latchkey cannot read ${path}: ${closed} is closed to it`];
}

function refuseState(stateDir: string, machine: UnitMachine): string[] {
  if (isWithin(stateDir, privateFolders)) {
    return [
      `the state directory ${stateDir} would be lost: the service has its own /tmp, which is deleted when it stops`,
    ];
  }
  if (isWithin(stateDir, homes)) {
    return [`the state directory ${stateDir} is in a home directory, where a system service cannot write`];
  }
  if (isWithin(stateDir, [stateRoot])) return [];
  const closed = findClosedFolder(stateDir, machine);
  return closed === null ? [] : [`the user latchkey cannot enter ${stateDir}: ${closed} is closed to it`];
}

/** The administrator gives the file to the user after the installation, so this is only a warning. */
function warnOfConfig(config: string | null, machine: UnitMachine): string[] {
  if (config === null || canRead(config, machine)) return [];
  return [`the user latchkey cannot read ${config} yet`];
}

function warnOfSocket({ socket, stateDir }: UnitNeeds): string[] {
  if (socket === null || isWithin(socket, [runtimeDirectory, stateDir])) return [];
  return [
    `the service cannot create the socket ${socket}: put it into ${runtimeDirectory}, or into the state directory`,
  ];
}

const [read, enter] = [4, 1];

/** The first folder above a path that the user cannot enter. */
function findClosedFolder(path: string, { user, statusOf }: UnitMachine): string | null {
  return foldersAbove(path).find((folder) => !permits(statusOf(folder), user, enter)) ?? null;
}

function canRead(path: string, { user, statusOf }: UnitMachine): boolean {
  return permits(statusOf(path), user, read);
}

function foldersAbove(path: string): readonly string[] {
  const above = dirname(path);
  return above === path ? [] : [...foldersAbove(above), above];
}

function permits(status: FileStatus | null, user: UnitUser | null, right: number): boolean {
  if (status === null) return true;
  const { mode, uid, gid } = status;
  if (user !== null && user.uid === uid) return (mode & (right << 6)) !== 0;
  if (user !== null && user.gids.includes(gid)) return (mode & (right << 3)) !== 0;
  return (mode & right) !== 0;
}
