import { type Command, type CommandEntry, defineCommand } from '../command.ts';
import { exitCode } from '../exit-code.ts';
import type { Output } from '../output.ts';
import { readChapter } from '../syntax/chapter.ts';
import { formatHelp } from '../syntax/help.ts';
import { followWords, type Place } from '../syntax/place.ts';

/** Beyond so many columns a line is hard to read. */
const widest = 100;
const usual = 80;

/** `help`. */
export function helpCommand(commands: readonly CommandEntry[]): Command {
  return defineCommand(
    (syntax) =>
      syntax
        .positional('command', {
          array: true,
          default: [],
          describe: 'The words of a command',
          names: 'command',
        })
        .example('latchkey help outbox retry', 'the same as latchkey outbox retry --help'),
    async (args, output) =>
      await printHelp(followWords(args.command, commands), commands, { json: args.json === true, output }),
  );
}

/** Prints the help of a place of the command line; with `--json` as a value. */
export async function printHelp(
  place: Place,
  commands: readonly CommandEntry[],
  { json, output }: { readonly json: boolean; readonly output: Output },
): Promise<number> {
  const chapter = await readChapter(place, commands);
  if (json) output.printJson(chapter);
  else output.print(formatHelp(chapter, Math.min(widest, process.stdout.columns ?? usual)));
  return exitCode.done;
}
