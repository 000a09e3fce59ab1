import { readNamedFile } from '../config/file/named-file.ts';
import { formatReason } from '../config/fault/fault.ts';
import { exitCode } from './exit-code.ts';
import type { Output } from './output.ts';

/**
 * Runs a command with the secret in the file that an option names, `undefined` where it names none.
 *
 * On the command line itself a secret would be seen by every user of the machine.
 */
export async function withSecretOf(
  file: string | undefined,
  output: Output,
  run: (secret: string | undefined) => Promise<number>,
): Promise<number> {
  let secret: string | undefined;
  try {
    secret = file === undefined ? undefined : readNamedFile(file).trim();
  } catch (error) {
    output.complain([`latchkey: cannot read ${file}: ${formatReason(error)}`]);
    return exitCode.failed;
  }
  return await run(secret);
}
