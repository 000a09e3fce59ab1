import { spawnSync } from 'node:child_process';
import { copyFileSync } from 'node:fs';
import { join } from 'node:path';
import { buildOnce } from '../build-once.ts';
import { sourcesDigest } from './built-program.ts';

const root = join(import.meta.dirname, '../../..');

/** The systems on which `npm run build:executable` is supported. Elsewhere its tests are skipped. */
export const isBuildable: boolean = process.platform === 'linux';

/** Options of the build, the name of its file, and the name of the copy that tests share. */
const targets = {
  linux: { options: [], output: 'latchkey', name: 'executable' },
  win32: { options: ['--platform', 'win32'], output: 'latchkey.exe', name: 'windows-executable' },
  arm64: { options: ['--arch', 'arm64'], output: 'latchkey-arm64', name: 'arm64-executable' },
};

/**
 * Builds the executable as a developer does, once for the same sources; returns its path. The file must not
 * be changed. `arm64`: on another machine.
 */
export function buildExecutable(target: keyof typeof targets = 'linux'): string {
  const { options, output, name } = targets[target];
  return buildOnce(name, sourcesDigest(), (file) => {
    const command = ['run', '--silent', 'build:executable', '--', ...options];
    const { status, stderr } = spawnSync('npm', command, { cwd: root, encoding: 'utf8' });
    if (status !== 0) throw new Error(`npm run build:executable ended with ${status}: ${stderr}`);
    copyFileSync(join(root, 'dist/executable', output), file);
  });
}
