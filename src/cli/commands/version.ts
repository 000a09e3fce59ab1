import { defineCommand } from '../command.ts';
import { formatFields } from '../format.ts';

export const command = defineCommand({
  command: 'version',
  describe: 'Show the version, and what it runs on',
  builder: {},
  examples: [['latchkey version --json', 'for a bug report']],
  handler: async (_args, output) => {
    const { describeBuild } = await import('../../daemon/build.ts');
    const build = describeBuild();
    const { version: latchkey, ...facts } = build;
    return await output.result(build, formatFields({ latchkey, ...facts }));
  },
});
