import { defineCommand, positionalGroup } from '../command.ts';
import { type Called, findCommand, formatHelp } from '../command-line.ts';
import { helpSections, commands } from '../commands.ts';
import { fillLines } from '../format.ts';
import type { Output } from '../output.ts';
import { type ManualPage, readPage } from '../reference.ts';

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
    return await printHelp(await findCommand(args.command, commands), output);
  },
});

export async function printHelp(called: Called, output: Output): Promise<number> {
  const columns = Math.min(maxColumns, process.stdout.columns ?? defaultColumns);
  const page = await readPage(called, commands);
  const { words, found } = called;
  const text = found === null ? formatProgram(page, columns) : await formatHelp(words, found, columns);
  return await output.result(page, text);
}

/** The help of the program, which fits on a screen. */
function formatProgram({ usage, summary, options, general, epilogue }: ManualPage, columns: number): string {
  const filled = Object.entries(helpSections).filter(([, lines]) => lines.length > 0);
  const areas = filled.flatMap(([title, lines]) => [
    `${title}:`,
    ...lines.flatMap(({ names, describe }) => twoColumns(names.join(', '), describe, columns)),
  ]);
  const switches = [...general, ...options].flatMap(({ term, meaning }) =>
    twoColumns(term, meaning, columns),
  );
  return [
    usage,
    '',
    summary,
    '',
    ...areas,
    '',
    'Options:',
    ...switches,
    '',
    ...fillLines(epilogue ?? '', columns),
  ].join('\n');
}

const firstColumn = 27;

function twoColumns(left: string, right: string, columns: number): readonly string[] {
  const [first = '', ...others] = fillLines(right, columns - firstColumn);
  return [`  ${left}`.padEnd(firstColumn) + first, ...others.map((line) => ' '.repeat(firstColumn) + line)];
}
