import { spawnSync } from 'node:child_process';

/** Whether a program is installed and prints its version. */
export function hasProgram(program: string, versionArgument: string = '--version'): boolean {
  return spawnSync(program, [versionArgument], { stdio: 'ignore' }).status === 0;
}
