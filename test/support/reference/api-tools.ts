import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';

/*
 * Tools that read the description of the interface. `.ci/run` installs them beside the dependencies, since they are
 * many times as large as what they are used for here.
 */

const inModules = (path: string): string =>
  fileURLToPath(new URL(`../../../node_modules/${path}`, import.meta.url));

/** Where `.ci/run` puts the packages of Python. */
export const pythonPackages: string = inModules('.python');

/** Where `.ci/run` puts the packages of npm. */
export const npmTools: string = inModules('.tools/node_modules');

/** Where `.ci/run` puts the programs of Go. */
export const goPrograms: string = inModules('.go/bin');

/** Loads one of them; it is there when `isThere(…)` is ''. */
export const requireTool: NodeJS.Require = createRequire(`${npmTools}/`);

/** Why a test is skipped that needs a tool; '' when the tool is there. */
export function missingTool(path: string): string {
  return existsSync(path) ? '' : ` (skipped: there is no ${path}: .ci/run installs it)`;
}
