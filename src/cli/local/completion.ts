import yargs from 'yargs';
import { type Command, type CommandEntry, defineCommand, entry } from '../command.ts';
import { exitCode } from '../exit-code.ts';

/** What can follow a beginning of a command line; `isWhole`: the command is complete, and arguments may follow. */
interface Place {
  readonly words: readonly string[];
  readonly isWhole: boolean;
  readonly next: readonly string[];
}

const everywhere = ['--config', '--state-dir', '--json', '--help'];

/** `completion …`: a script for the shell, made of the table of commands, so that nothing runs at a key press. */
export function completionCommands(entries: readonly CommandEntry[]): readonly CommandEntry[] {
  return [
    entry('bash', 'Print the script for bash', completionFor('bash', entries)),
    entry('zsh', 'Print the script for zsh', completionFor('zsh', entries)),
  ];
}

type Shell = 'bash' | 'zsh';

function completionFor(shell: Shell, entries: readonly CommandEntry[]): Command {
  return defineCommand(
    (builder) =>
      builder.example(`source <($0 completion ${shell})`, `for this shell; put it into ~/.${shell}rc`),
    async (_, output) => {
      output.print(formatScript(shell, await listPlaces(entries, [])));
      return exitCode.done;
    },
  );
}

async function listPlaces(entries: readonly CommandEntry[], words: readonly string[]): Promise<Place[]> {
  const names = entries.map(nameOf);
  const inner = await Promise.all(entries.map((each) => listPlacesOf(each, [...words, nameOf(each)])));
  return [{ words, isWhole: false, next: [...names, ...everywhere] }, ...inner.flat()];
}

async function listPlacesOf({ load }: CommandEntry, words: readonly string[]): Promise<Place[]> {
  const loaded = await load();
  if (!('build' in loaded)) return listPlaces(loaded, words);
  const help = await loaded.build(yargs([])).getHelp();
  const options = [...help.matchAll(/(?<=^ +(?:-\w, )?)--[\w-]+/gm)].map(([option]) => option);
  return [{ words, isWhole: true, next: [...new Set([...options, ...everywhere])].filter(isOurs) }];
}

function nameOf({ usage }: CommandEntry): string {
  return usage.split(' ', 1)[0] ?? usage;
}

/** Every yargs has it, and only the program as a whole means it. */
function isOurs(option: string): boolean {
  return option !== '--version';
}

function formatScript(shell: Shell, places: readonly Place[]): string {
  const cases = places.map(({ words, isWhole, next }) => {
    const typed = [...words, ''].join(' ');
    return `    '${typed}'${isWhole ? '*' : ''}) offers='${next.join(' ')}' ;;`;
  });
  // zsh can use what is made for bash, but for a variable called `words`, which is its own.
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
