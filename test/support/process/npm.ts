import { execFile, execFileSync, spawnSync } from 'node:child_process';
import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';
import { promisify } from 'node:util';

const root = join(import.meta.dirname, '../../..');

/** The PATH of this machine without the folders that npm adds for the scripts of this package. */
export const machinePath: string = (process.env['PATH'] ?? '')
  .split(delimiter)
  .filter((folder) => !folder.includes('node_modules'))
  .join(delimiter);

/** npm's cache, so that npm downloads nothing twice. */
const cache = execFileSync('npm', ['config', 'get', 'cache'], { encoding: 'utf8' }).trim();

/** The environment of a user who runs npm with an empty home, without npm's variables for this process. */
export function machineEnvironment(home: string): NodeJS.ProcessEnv {
  const given = Object.entries(process.env).filter(([name]) => !name.startsWith('npm_'));
  return { ...Object.fromEntries(given), PATH: machinePath, HOME: home, npm_config_cache: cache };
}

/** Runs npm with an empty home directory; returns its output. */
export async function npm(home: string, ...argv: string[]): Promise<string> {
  const { stdout } = await promisify(execFile)('npm', argv, { env: machineEnvironment(home), cwd: home });
  return stdout;
}

/** Packs this package as it would be published; returns the path of the tarball. */
export function packPackage(folder: string): string {
  const argv = ['pack', '--json', '--pack-destination', folder];
  const { status, stdout, stderr } = spawnSync('npm', argv, { cwd: root, encoding: 'utf8' });
  if (status !== 0) throw new Error(`npm pack ended with ${status}: ${stderr}`);
  return join(folder, /latchkey-[\d.]+\.tgz/.exec(stdout)?.[0] ?? '');
}

/** The Node of this machine, other than the Node of this package. Null: there is none. */
export function machineNode(): string | null {
  const files = machinePath.split(delimiter).map((folder) => join(folder, 'node'));
  return files.find(isExecutable) ?? null;
}

function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
