import { type Command, defineCommand } from '../command.ts';
import { version } from '../../config/version.ts';
import { exitCode } from '../exit-code.ts';
import { formatFields } from '../format.ts';
import type { Output } from '../output.ts';

/** `version`: what a bug report needs. */
export const versionCommand: Command = defineCommand(
  (syntax) => syntax.example('latchkey version --json', 'what a bug report needs'),
  async (args, output) => {
    const { describeBuild } = await import('../../daemon/build.ts');
    const build = describeBuild();
    const { version: latchkey, ...facts } = build;
    if (args.json) output.printJson(build);
    else await output.show(formatFields({ latchkey, ...facts }));
    return exitCode.done;
  },
);

/** `--version`: the number alone. */
export function printVersion(isJson: boolean, output: Output): number {
  if (isJson) output.printJson({ version });
  else output.print(version);
  return exitCode.done;
}
