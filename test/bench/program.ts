import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import type { Argv } from './process.ts';

export const root: string = join(import.meta.dirname, '../..');

/** The form of the program that is measured. */
export type Form = 'build' | 'executable' | 'source';

/** The program in one of its forms, as people start it. */
export const programs: Readonly<Record<Form, Argv>> = {
  build: [process.execPath, join(root, 'dist/cli/launcher.js')],
  executable: [join(root, 'dist/executable/latchkey')],
  source: [process.execPath, join(root, 'src/cli/launcher.js')],
};

export function isThere(form: Form): boolean {
  return existsSync(programs[form].at(-1) ?? '');
}

/** Whether the form exists and is newer than every source. */
export function isFresh(form: Form): boolean {
  const file = programs[form].at(-1) ?? '';
  return existsSync(file) && statSync(file).mtimeMs > latestChange();
}

/** Builds the npm package if it is missing or older than a source. */
export function buildWhereStale(): void {
  if (isFresh('build')) return;
  process.stderr.write('npm run build …\n');
  const { status, stderr } = spawnSync('npm', ['run', '--silent', 'build'], { cwd: root, encoding: 'utf8' });
  if (status !== 0) throw new Error(`npm run build ended with ${status}: ${stderr}`);
}

/** The time of the newest source, in epoch ms. */
function latestChange(): number {
  const entries = readdirSync(join(root, 'src'), { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile());
  const times = files.map(({ parentPath, name }) => statSync(join(parentPath, name)).mtimeMs);
  return Math.max(...times, statSync(join(root, 'package.json')).mtimeMs);
}
