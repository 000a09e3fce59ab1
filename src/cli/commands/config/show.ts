import { formatKey } from '../../../config/errors.ts';
import { leavesOf } from '../../../config/file/tree.ts';
import { loadConfiguration } from '../../../config/load.ts';
import { effective } from '../../../config/show.ts';
import { defineCommand } from '../../command.ts';
import { configurationError, toLoadOptions } from '../../configuration.ts';
import { formatFields } from '../../format.ts';

export const command = defineCommand({
  command: 'show',
  describe: 'Show the effective configuration, with secrets masked',
  builder: {},
  examples: [['latchkey config show --json', 'is a configuration file itself']],
  handler: async (args, output) => {
    const loaded = loadConfiguration(toLoadOptions(args));
    if (!loaded.ok) throw configurationError(loaded.errors);
    const tree = effective(loaded.configuration);
    const fields = leavesOf(tree).map(([path, value]) => [formatKey(path), String(value)]);
    return await output.result(tree, formatFields(Object.fromEntries(fields) as Record<string, string>));
  },
});
