import yargs from 'yargs';
import { type Command, type CommandEntry, defineCommand, nameOf } from '../command.ts';
import { exitCode } from '../exit-code.ts';

/** The words that can follow others; `isWhole`: those are a whole command, and arguments may come between. */
interface Place {
  readonly words: readonly string[];
  readonly isWhole: boolean;
  readonly next: readonly string[];
}

const everywhere = ['--config', '--state-dir', '--json', '--help'];

/** `completion …`: a script with all commands and options in it, so that pressing tab does not run the program. */
export function completionCommand(shell: Shell, commands: readonly CommandEntry[]): Command {
  return defineCommand(
    (builder) =>
      builder.example(`source <($0 completion ${shell})`, `for this shell; put it into ~/.${shell}rc`),
    async (_, output) => {
      output.print(formatScript(shell, await listPlaces(commands, [])));
      return exitCode.done;
    },
  );
}

type Shell = 'bash' | 'zsh';

async function listPlaces(entries: readonly CommandEntry[], words: readonly string[]): Promise<Place[]> {
  const inner = await Promise.all(
    entries.map((entry) => {
      const inside = [...words, nameOf(entry)];
      return 'members' in entry ? listPlaces(entry.members, inside) : placeAfter(entry.load, inside);
    }),
  );
  return [{ words, isWhole: false, next: [...entries.map(nameOf), ...everywhere] }, ...inner.flat()];
}

async function placeAfter(load: () => Promise<Command>, words: readonly string[]): Promise<Place> {
  const help = await (await load()).build(yargs([])).getHelp();
  const options = [...help.matchAll(/(?<=^ +(?:-\w, )?)--[\w-]+/gm)].map(([option]) => option);
  return { words, isWhole: true, next: [...new Set([...options, ...everywhere])].filter(isOurs) };
}

/** yargs adds `--version` to every command, but it is an option of the program only. */
function isOurs(option: string): boolean {
  return option !== '--version';
}

function formatScript(shell: Shell, places: readonly Place[]): string {
  const cases = places.map(({ words, isWhole, next }) => {
    const typed = [...words, ''].join(' ');
    return `    '${typed}'${isWhole ? '*' : ''}) offers='${next.join(' ')}' ;;`;
  });
  // zsh runs bash's script, as long as that has no variable `words`: zsh keeps that name for itself.
  const head =
    shell === 'zsh'
      ? ['autoload -U +X compinit && compinit', 'autoload -U +X bashcompinit && bashcompinit']
      : [];
  return [
    ...head,
    '_latchkey() {',
    `  local word="\${COMP_WORDS[COMP_CWORD]}" typed='' offers='' each`,
    '  for each in "${COMP_WORDS[@]:1:$((COMP_CWORD - 1))}"; do',
    '    case "$each" in -*) ;; *) typed="$typed$each " ;; esac',
    '  done',
    '  case "$typed" in',
    ...cases,
    '  esac',
    '  COMPREPLY=($(compgen -W "$offers" -- "$word"))',
    '}',
    'complete -o default -F _latchkey latchkey',
  ].join('\n');
}
