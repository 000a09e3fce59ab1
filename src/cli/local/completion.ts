import { homeDirectory } from '../../config/home.ts';
import { type Command, type CommandEntry, defineCommand } from '../command.ts';
import { exitCode } from '../exit-code.ts';
import type { Term } from '../syntax/declaration.ts';
import { findNext, type Next } from '../syntax/next.ts';
import { scripts, type Shell } from './completion-scripts.ts';

/** `completion bash`, `zsh` and `fish`: a script that asks `completion next` what may follow. */
export function scriptCommand(shell: Shell): Command {
  const { script, example, says } = scripts[shell];
  return defineCommand(
    (syntax) => syntax.example(example, says),
    async (args, output) => {
      if (args.json) output.printJson({ shell, script });
      else output.print(script.trimEnd());
      return exitCode.done;
    },
  );
}

/** `completion next`: silent where nothing is known, since people are typing. */
export function nextCommand(commands: readonly CommandEntry[]): Command {
  return defineCommand(
    (syntax) =>
      syntax
        .positional('words', {
          array: true,
          default: [],
          mayBeBlank: true,
          describe: 'The command line after the word latchkey, up to the cursor',
        })
        .option('quoted', { type: 'boolean', describe: 'The words are quoted as in bash' })
        .example('latchkey completion next -- outbox re', 'what may replace re')
        .epilogue(
          'The first line says what may come next: words, a file, or a folder. Then each word has a line, and a line that describes it.',
        ),
    async (args, output) => {
      const words = args.words.map((word) => expandHome(args.quoted ? unquote(word) : word));
      const next = await findNext(words, commands);
      const kind = next.kind === 'thing' ? 'words' : next.kind;
      const terms = await termsOf(next);
      if (args.json) output.printJson({ kind, words: terms });
      else output.print([kind, ...terms.flatMap(({ term, meaning }) => [term, meaning])].join('\n'));
      return exitCode.done;
    },
  );
}

async function termsOf(next: Next): Promise<readonly Term[]> {
  if (next.kind === 'words') return next.terms;
  if (next.kind !== 'thing') return [];
  const { listThings } = await import('../client/things.ts');
  return await listThings(next.options, next.thing);
}

/** Takes away the quotes and backslashes of a word, as bash does. */
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
