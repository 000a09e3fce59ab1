import { readFileSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { homes, isWithin, runtimeDirectory, stateRoot } from './systemd-unit.ts';

/** A user as the system knows it: its number, and those of its groups. */
export interface UnitUser {
  readonly uid: number;
  readonly gids: readonly number[];
}

/** What a file's permissions are made of. */
export interface FileStatus {
  readonly uid: number;
  readonly gid: number;
  readonly mode: number;
}

/** What a unit of the machine needs to reach. Paths are absolute. */
export interface UnitNeeds {
  /** The program and the files that it is made of. */
  readonly program: readonly string[];
  /** Null: none is named. */
  readonly config: string | null;
  readonly stateDir: string;
  /** Null: there is none. */
  readonly socket: string | null;
}

/** This machine, as far as it decides what the unit's user can reach. */
export interface UnitMachine {
  /** Null: there is no such user yet. */
  readonly user: UnitUser | null;
  /** Null: there is no such file. */
  readonly statusOf: (path: string) => FileStatus | null;
}

/** The machine that this runs on. */
export function thisMachine(): UnitMachine {
  return { user: readUser('/'), statusOf: readStatus };
}

/** The user of a unit in the system below a root directory; null: there is no such user yet. */
export function readUser(root: string): UnitUser | null {
  return findUser('latchkey', readText(join(root, 'etc/passwd')), readText(join(root, 'etc/group')));
}

function readStatus(path: string): FileStatus | null {
  try {
    return statSync(path, { throwIfNoEntry: false }) ?? null;
  } catch {
    // In a folder that is closed to whoever asks.
    return { uid: -1, gid: -1, mode: 0 };
  }
}

function readText(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}

/** Looks a user up in the texts of /etc/passwd and /etc/group; null: it is in none. */
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

/** What a unit cannot reach: nothing would run (`refusals`), or something would not work (`warnings`). */
export interface Tenant {
  readonly refusals: readonly string[];
  readonly warnings: readonly string[];
}

/** Hidden by PrivateTmp=. */
const privatePlaces = ['/tmp', '/var/tmp'];

/** Says what the user of a unit of the machine, in its sandbox, could not reach of what it needs. */
export function examineReach(needs: UnitNeeds, machine: UnitMachine): Tenant {
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
  if (isWithin(path, privatePlaces)) return [`${path} is hidden from the service, which has its own /tmp`];
  if (machine.statusOf(path) === null) return [`${path} does not exist`];
  const closed = findClosedFolder(path, machine);
  return closed === null ? [] : [`the user latchkey cannot read ${path}: ${closed} is closed to it`];
}

function refuseState(stateDir: string, machine: UnitMachine): string[] {
  if (isWithin(stateDir, privatePlaces)) {
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

/** A file that is closed by itself alone is given to the user after it is installed. */
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

/** The first folder on the way to a path that keeps the user out. */
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
