import { version } from '../../config/version.ts';
import { defineCommand } from '../command.ts';
import { exitCode } from '../exit-code.ts';
import { formatFields } from '../format.ts';
import type { Output } from '../output.ts';

export const versionCommand = defineCommand({
  command: 'version',
  describe: 'Show the version, and what it runs on',
  builder: {},
  examples: [['latchkey version --json', 'for a bug report']],
  handler: async (args, output) => {
    const { describeBuild } = await import('../../daemon/build.ts');
    const build = describeBuild();
    const { version: latchkey, ...facts } = build;
    if (args.json) output.printJson(build);
    else await output.show(formatFields({ latchkey, ...facts }));
    return exitCode.done;
  },
});

/** `--version` prints the number alone. */
export function printVersion(isJson: boolean, output: Output): number {
  if (isJson) output.printJson({ version });
  else output.print(version);
  return exitCode.done;
}
