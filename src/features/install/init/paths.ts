import { resolve } from 'node:path';
import {
  findConfigurationFiles,
  homeDirectory,
  type Machine,
  pathsOf,
  stateDirOf,
  systemStateDir,
} from '../../../config/defaults.ts';
import { localFileName } from '../../../config/file/configuration-file.ts';
import { maxSocketLength } from '../../../domain/socket-path.ts';
import type { GlobalOptions } from '../../../cli/command.ts';

/** Where the configuration is written: to the file that is named, or else into the working directory. */
export function findTarget({ config }: GlobalOptions): string {
  return resolve(config ?? (process.env['LATCHKEY_CONFIG'] || localFileName));
}

/** The paths of a new configuration. `socket` null: the default of the machine. */
export interface NewPaths {
  readonly stateDir: string;
  readonly socket: string | null;
}

/**
 * Chooses the state directory and the socket of a new daemon: the defaults if the configuration file has a default path,
 * else in the folder of the file, so that several daemons of one user do not share them. On Windows the default pipe
 * belongs to the state directory.
 */
export function choosePaths(
  target: string,
  stateDir: string | undefined,
  machine: Machine = thisMachine(),
): NewPaths {
  const { dirname, join } = pathsOf(machine.platform);
  if (stateDir !== undefined) return pathsIn(resolve(stateDir), machine);
  const [user, system] = findConfigurationFiles(machine);
  if (target === system) return { stateDir: systemStateDir(machine), socket: null };
  if (target === user) return { stateDir: stateDirOf(machine, {}), socket: null };
  return pathsIn(join(dirname(target), 'latchkey-state'), machine);
}

function thisMachine(): Machine {
  return { environment: process.env, home: homeDirectory() ?? '/', platform: process.platform };
}

function pathsIn(stateDir: string, { platform }: Machine): NewPaths {
  const path = pathsOf(platform).join(stateDir, 'latchkey.sock');
  const canBe = platform !== 'win32' && Buffer.byteLength(path) <= maxSocketLength(platform);
  return { stateDir, socket: canBe ? path : null };
}

/** Writes a path for the file `target`: relative if it is in that file's folder. */
export function writePath(
  path: string,
  target: string,
  platform: NodeJS.Platform = process.platform,
): string {
  const { dirname, isAbsolute, relative, sep } = pathsOf(platform);
  const near = relative(dirname(target), path);
  return near.startsWith('..') || near === '' || isAbsolute(near) ? path : `.${sep}${near}`;
}
