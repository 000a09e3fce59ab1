import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';

/*
 * Tools that read the OpenAPI description. `.ci/run` installs them, but they are not dependencies, because
 * they are very large for their purpose.
 */

const inModules = (path: string): string =>
  fileURLToPath(new URL(`../../../node_modules/${path}`, import.meta.url));

/** The folder in which `.ci/run` installs Python packages. */
export const pythonPackages: string = inModules('.python');

/** The folder in which `.ci/run` installs npm packages. */
export const npmTools: string = inModules('.tools/node_modules');

/** The folder in which `.ci/run` installs Go programs. */
export const goPrograms: string = inModules('.go/bin');

/** Loads a tool. Check with `missingTool` first. */
export const requireTool: NodeJS.Require = createRequire(`${npmTools}/`);

/** The reason why a test that needs a tool is skipped; '' if the tool is installed. */
export function missingTool(path: string): string {
  return existsSync(path) ? '' : ` (skipped: there is no ${path}: .ci/run installs it)`;
}
