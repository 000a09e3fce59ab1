import { execFile } from 'node:child_process';
import { copyFile, mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);
const root = join(import.meta.dirname, '../../..');

/** Installs the compiled client in the directory of a program, as `npm install latchkey` does. */
export async function installClient(directory: string): Promise<void> {
  const installed = join(directory, 'node_modules/latchkey');
  const commonJs = join(installed, 'dist/client/cjs');
  await mkdir(commonJs, { recursive: true });
  await copyFile(join(root, 'package.json'), join(installed, 'package.json'));
  const source = join(root, 'src/client');
  // `npm run build:client` checks the types.
  await Promise.all([
    compile(
      '--noCheck',
      '--project',
      join(source, 'tsconfig.json'),
      '--outDir',
      join(installed, 'dist/client'),
    ),
    compile('--noCheck', '--project', join(source, 'commonjs.json'), '--outDir', commonJs),
  ]);
  await writeFile(join(commonJs, 'package.json'), '{"type":"commonjs"}');
}

/** Runs the TypeScript compiler. Rejects with its output. */
export async function compile(...options: string[]): Promise<void> {
  const compiler = join(root, 'node_modules/typescript/bin/tsc');
  await run(process.execPath, [compiler, ...options]).catch((error: unknown) => {
    throw new Error((error as { stdout: string }).stdout);
  });
}
