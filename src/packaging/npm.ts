/**
 * Builds in `dist` what the npm package holds: the compiled program, its launcher as it is, and its man page.
 * `npm run build` calls it, and so does `npm pack`.
 */
import { execFileSync } from 'node:child_process';
import { copyFileSync, globSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const root = join(import.meta.dirname, '../..');
const inRoot = (path: string): string => join(root, path);

// Of files that are no longer in src nothing stays.
for (const file of globSync(inRoot('dist/**/*.{js,d.ts}'))) rmSync(file);
const compiler = [inRoot('node_modules/typescript/bin/tsc'), '--project', inRoot('src')];
execFileSync(process.execPath, compiler, { stdio: 'inherit' });
copyFileSync(inRoot('src/cli/launcher.js'), inRoot('dist/cli/launcher.js'));
const manual = execFileSync(process.execPath, [inRoot('dist/cli/main.js'), 'man']);
writeFileSync(inRoot('dist/latchkey.1'), manual);
