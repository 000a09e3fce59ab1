/**
 * Builds `dist`, the content of the npm package: declarations by tsc, the program, and the manual page. `npm run build` and
 * `npm pack` call this script.
 *
 * `npm pack` adds the dependencies as they are in node_modules (`bundleDependencies` in package.json), so that users get
 * the tested versions: npm reads no lock file of a tarball.
 *
 * With one file for each source, `latchkey serve` would start 40 ms later.
 */
import { execFileSync } from 'node:child_process';
import { globSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { buildProgram } from './program.ts';

const root = join(import.meta.dirname, '../..');
const inRoot = (path: string): string => join(root, path);

// Remove what an earlier build made from sources that are gone.
for (const file of globSync(inRoot('dist/**/*.{js,d.ts}'))) rmSync(file);
const compiler = [inRoot('node_modules/typescript/bin/tsc'), '--project', inRoot('src')];
execFileSync(process.execPath, [...compiler, '--emitDeclarationOnly'], { stdio: 'inherit' });
await buildProgram(inRoot('dist'), { index: 'src/index.ts', testing: 'src/testing.ts' });
const manual = execFileSync(process.execPath, [inRoot('dist/cli/main.js'), 'man']);
writeFileSync(inRoot('dist/latchkey.1'), manual);
