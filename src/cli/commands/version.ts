import { defineCommand } from '../command.ts';
import { exitCode } from '../exit-code.ts';
import { formatFields } from '../format.ts';

export const command = defineCommand({
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
