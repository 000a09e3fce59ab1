import { defineCommand, positionalGroup } from '../command.ts';
import { type Called, findCommand, formatHelp } from '../command-line.ts';
import { commands } from '../commands.ts';
import type { Output } from '../output.ts';
import { readPage } from '../reference.ts';

/** Longer lines are hard to read. */
const maxColumns = 100;
const defaultColumns = 80;

export const command = defineCommand({
  command: 'help [command..]',
  describe: 'Show the help of a command',
  builder: {
    command: {
      type: 'string',
      array: true,
      default: [] as string[],
      describe: 'The words of a command',
      names: 'command',
      group: positionalGroup,
    },
  },
  examples: [['latchkey help outbox retry', 'the same as latchkey outbox retry --help']],
  handler: async (args, output) => {
    return await printHelp(findCommand(args.command, commands), output);
  },
});

export async function printHelp(called: Called, output: Output): Promise<number> {
  const columns = Math.min(maxColumns, process.stdout.columns ?? defaultColumns);
  return await output.result(await readPage(called, commands), await formatHelp(called, commands, columns));
}
