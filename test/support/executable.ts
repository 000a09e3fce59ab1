import { spawnSync } from 'node:child_process';
import { join } from 'node:path';

const root = join(import.meta.dirname, '../..');

/** Where `npm run build:executable` was tried; elsewhere its tests are skipped. */
export const isBuildable: boolean = process.platform === 'linux';

/** Builds the executable as a developer does, and gives its path. */
export function buildExecutable(): string {
  const { status, stderr } = spawnSync('npm', ['run', '--silent', 'build:executable'], {
    cwd: root,
    encoding: 'utf8',
  });
  if (status !== 0) throw new Error(`npm run build:executable ended with ${status}: ${stderr}`);
  return join(root, 'dist/executable/latchkey');
}
