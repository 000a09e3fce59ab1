import { version } from '../../config/version.ts';
import { type Command, type CommandEntry, defineCommand } from '../command.ts';
import { exitCode } from '../exit-code.ts';
import { explanations } from '../explanation.ts';
import { readChapters } from '../syntax/chapter.ts';
import type { Term } from '../syntax/declaration.ts';
import { formatManual } from '../syntax/manual.ts';

const environment: readonly Term[] = [
  {
    term: 'LATCHKEY_TOKEN',
    meaning: 'The token that commands send, instead of the one in admin.token of the state directory.',
  },
  { term: 'LATCHKEY_CONFIG', meaning: 'The configuration file, unless --config names one.' },
  {
    term: 'LATCHKEY_STATE_DIR and so on',
    meaning:
      'Any setting: its key in capitals, with two underscores between levels, as in LATCHKEY_LISTEN__TCP.',
  },
  { term: 'NO_COLOR, FORCE_COLOR', meaning: 'Turn colours off or on.' },
];

const files: readonly Term[] = [
  {
    term: './latchkey.yaml, ~/.config/latchkey/config.yaml, /etc/latchkey/config.yaml',
    meaning: 'The configuration, searched in this order unless one is named.',
  },
  {
    term: '~/.local/state/latchkey',
    meaning: 'The state directory, unless another is configured. Commands send the token in its admin.token.',
  },
];

/** `man`: the manual page, as roff. */
export function manualCommand(commands: readonly CommandEntry[]): Command {
  return defineCommand(
    (syntax) =>
      syntax
        .example('latchkey man | man -l -', 'shows it here')
        .example('latchkey man > /usr/local/share/man/man1/latchkey.1', 'installs it'),
    async (args, output) => {
      const [program, ...chapters] = await readChapters({ words: [], entry: null }, commands);
      if (program === undefined) return exitCode.failed;
      const roff = formatManual({
        version,
        date: dateOfPrint(),
        program,
        commands: chapters,
        sections: { 'EXIT STATUS': exitStatus(), ENVIRONMENT: environment, FILES: files },
      });
      if (args.json) output.printJson({ roff });
      else output.print(roff.trimEnd());
      return exitCode.done;
    },
  );
}

function exitStatus(): readonly Term[] {
  return explanations.flatMap(({ kind, name, title, remedy }) =>
    kind === 'exit_code'
      ? [{ term: name, meaning: [`${title}.`, ...(remedy === null ? [] : [remedy])].join(' ') }]
      : [],
  );
}

/** Today, or the day that a reproducible build sets (https://reproducible-builds.org/specs/source-date-epoch/). */
function dateOfPrint(): string {
  const seconds = Number(process.env['SOURCE_DATE_EPOCH'] ?? Number.NaN);
  return new Date(Number.isNaN(seconds) ? Date.now() : seconds * 1000).toISOString().slice(0, 10);
}
