import { once } from 'node:events';
import { createServer } from 'node:net';
import { dirname, isAbsolute, join, relative, resolve } from 'node:path';
import { homeDirectory, findConfigurationFiles, type Machine, stateDirOf } from '../../config/defaults.ts';
import { localFileName } from '../../config/file/file.ts';
import type { GlobalOptions } from '../command.ts';

const firstPort = 8787;
const portsTried = 10;
const maxSocketPath = 107;

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
 * else in the folder of the file, so that several daemons of one user do not share them.
 */
export function choosePaths(target: string, stateDir: string | undefined): NewPaths {
  if (stateDir !== undefined) return pathsIn(resolve(stateDir));
  const machine: Machine = {
    environment: process.env,
    home: homeDirectory() ?? '/',
    platform: process.platform,
  };
  const [user, system] = findConfigurationFiles(machine);
  if (target === system) return { stateDir: '/var/lib/latchkey', socket: null };
  if (target === user) return { stateDir: stateDirOf(machine, {}), socket: null };
  return pathsIn(join(dirname(target), 'latchkey-state'));
}

function pathsIn(stateDir: string): NewPaths {
  const path = join(stateDir, 'latchkey.sock');
  const canBe = process.platform !== 'win32' && Buffer.byteLength(path) <= maxSocketPath;
  return { stateDir, socket: canBe ? path : null };
}

/** The default address, or the next one that is free. */
export async function chooseAddress(): Promise<string> {
  const ports = Array.from({ length: portsTried }, (_, index) => firstPort + index);
  for (const port of ports) if (await isFree(port)) return `127.0.0.1:${port}`;
  return `127.0.0.1:${firstPort}`;
}

/** Writes a path for the file `target`: relative if it is in that file's folder. */
export function writePath(path: string, target: string): string {
  const near = relative(dirname(target), path);
  return near.startsWith('..') || near === '' || isAbsolute(near) ? path : `./${near}`;
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer();
  try {
    await once(server.listen(port, '127.0.0.1'), 'listening');
    return true;
  } catch {
    return false;
  } finally {
    server.close();
  }
}
