import { homeDirectory } from '../../../config/home.ts';
import { defineCommand, positionalGroup } from '../../command.ts';
import { commands } from '../../commands.ts';
import { exitCode } from '../../exit-code.ts';
import { complete } from './complete.ts';

/** Called by the scripts of the shells. Prints nothing for an unknown command, because people are typing. */
export const command = defineCommand({
  command: 'next [words..]',
  describe: 'List what may come next on a command line, for those scripts',
  builder: {
    words: {
      type: 'string',
      array: true,
      default: [] as string[],
      mayBeBlank: true,
      group: positionalGroup,
      describe: 'The command line after the word latchkey, up to the cursor',
    },
    quoted: { type: 'boolean', describe: 'The words are quoted as in bash' },
  },
  examples: [['latchkey completion next -- outbox re', 'what may replace re']],
  epilogue:
    'The first line is words, file or folder. Then each word has a line, and a line that describes it.',
  handler: async (args, output) => {
    const words = args.words.map((word) => expandHome(args.quoted ? unquote(word) : word));
    const { kind, terms } = await complete(words, commands);
    if (args.json) output.printJson({ kind, words: terms });
    else output.print([kind, ...terms.flatMap(({ term, meaning }) => [term, meaning])].join('\n'));
    return exitCode.done;
  },
});

/** Removes the quotes and backslashes of a word, as bash does. */
function unquote(word: string): string {
  return word.replaceAll(
    /'([^']*)'?|"((?:\\.|[^"\\])*)"?|\\(.)/g,
    (_, single?: string, double?: string, escaped?: string) =>
      single ?? double?.replaceAll(/\\(["\\$`])/g, '$1') ?? escaped ?? '',
  );
}

function expandHome(word: string): string {
  return word.replace(/^~(?=\/|$)/, (tilde) => homeDirectory() ?? tilde);
}
