import { once } from 'node:events';
import { createServer } from 'node:net';
import { dirname, isAbsolute, join, relative, resolve } from 'node:path';
import { homeDirectory } from '../../config/home.ts';
import { localFileName } from '../../config/file/file.ts';
import { findConfigurationFiles, type Machine, stateDirOf } from '../../config/place.ts';
import type { GlobalOptions } from '../command.ts';

const firstPort = 8787;
const portsTried = 10;
const longestSocketPath = 107;

/** Where the configuration is written: the file that is named, else the one of the working directory. */
export function findTarget({ config }: GlobalOptions): string {
  return resolve(config ?? (process.env['LATCHKEY_CONFIG'] || localFileName));
}

/** The state directory of a new configuration; `socket` null: where the machine puts it. */
export interface NewPlaces {
  readonly stateDir: string;
  readonly socket: string | null;
}

/**
 * Chooses where a new daemon keeps its state, and its socket: of a file at a usual place the usual ones, else beside
 * the file, so that several daemons of one user do not meet.
 */
export function choosePlaces(target: string, stateDir: string | undefined): NewPlaces {
  if (stateDir !== undefined) return placesIn(resolve(stateDir));
  const machine: Machine = {
    environment: process.env,
    home: homeDirectory() ?? '/',
    platform: process.platform,
  };
  const [user, system] = findConfigurationFiles(machine);
  if (target === system) return { stateDir: '/var/lib/latchkey', socket: null };
  if (target === user) return { stateDir: stateDirOf(machine, {}), socket: null };
  return placesIn(join(dirname(target), 'latchkey-state'));
}

function placesIn(stateDir: string): NewPlaces {
  const path = join(stateDir, 'latchkey.sock');
  const canBe = process.platform !== 'win32' && Buffer.byteLength(path) <= longestSocketPath;
  return { stateDir, socket: canBe ? path : null };
}

/** The usual address, or the next one that no other process listens on. */
export async function chooseAddress(): Promise<string> {
  const ports = Array.from({ length: portsTried }, (_, index) => firstPort + index);
  for (const port of ports) if (await isFree(port)) return `127.0.0.1:${port}`;
  return `127.0.0.1:${firstPort}`;
}

/** Writes a path as it stands in the file at `target`: relative where it is in that file's folder. */
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
