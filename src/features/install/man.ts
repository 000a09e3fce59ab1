import { version } from '../../config/version.ts';
import { defineCommand, type Term } from '../../cli/command.ts';
import { commands } from '../../cli/commands.ts';
import { explanations } from '../../cli/explanation.ts';
import { fillLines } from '../../cli/format.ts';
import { type ManualPage, readPages } from '../../cli/reference.ts';

const environment: readonly Term[] = [
  {
    term: 'LATCHKEY_TOKEN',
    meaning:
      'The token that commands send, instead of the one in admin.token of the state directory. The daemon must still prove that it knows the one in the file.',
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
  {
    term: '~/Library/Application Support/Latchkey',
    meaning: 'On macOS: the state directory and config.yaml. The machine has the same folder in /Library.',
  },
  {
    term: String.raw`%LOCALAPPDATA%\Latchkey, %ProgramData%\Latchkey`,
    meaning: 'On Windows: the state directory and config.yaml of the user, and of the machine.',
  },
];

export const command = defineCommand({
  command: 'man',
  describe: 'Print the manual page',
  builder: {},
  examples: [
    ['latchkey man | man -l -', 'shows it here'],
    ['latchkey man > /usr/local/share/man/man1/latchkey.1', 'installs it'],
  ],
  handler: async (_args, output) => {
    const [program, ...pages] = await readPages(commands);
    if (program === undefined) throw new Error('there is no program');
    const roff = formatManual(program, pages);
    return await output.result({ roff }, roff);
  },
});

/** Writes latchkey(1) as roff (man(7)), with a subsection for each command. */
function formatManual(program: ManualPage, pages: readonly ManualPage[]): string {
  return [
    `.TH LATCHKEY 1 ${dateOfPage()} "Latchkey ${escape(version)}" "User Commands"`,
    '.SH NAME',
    'latchkey \\- verifies license keys and counts their uses beside your software',
    '.SH SYNOPSIS',
    `.B ${escape(program.usage)}`,
    '.SH DESCRIPTION',
    ...fill(program.summary),
    ...(program.epilogue === null ? [] : ['.PP', ...fill(program.epilogue)]),
    ...section('OPTIONS WITHOUT A COMMAND', program.options),
    ...section('OPTIONS OF EVERY COMMAND', program.general),
    '.SH COMMANDS',
    ...pages.filter((page) => page.commands.length === 0).flatMap(formatCommand),
    ...section('EXIT STATUS', exitStatus()),
    ...section('ENVIRONMENT', environment),
    ...section('FILES', files),
  ].join('\n');
}

/** Today, or the day of a reproducible build (https://reproducible-builds.org/specs/source-date-epoch/). */
function dateOfPage(): string {
  const seconds = Number(process.env['SOURCE_DATE_EPOCH'] ?? Number.NaN);
  return new Date(Number.isNaN(seconds) ? Date.now() : seconds * 1000).toISOString().slice(0, 10);
}

function formatCommand({ usage, summary, positionals, options, examples, epilogue }: ManualPage): string[] {
  return [
    `.SS ${escape(usage)}`,
    ...fill(summary.endsWith('.') ? summary : `${summary}.`),
    ...tags([...positionals, ...options]),
    ...(epilogue === null ? [] : ['.PP', ...fill(epilogue)]),
    ...(examples.length === 0 ? [] : ['.PP', examples.length === 1 ? 'Example:' : 'Examples:']),
    ...tags(examples),
  ];
}

function exitStatus(): readonly Term[] {
  return explanations.flatMap(({ kind, name, title, remedy }) =>
    kind === 'exit_code'
      ? [{ term: name, meaning: [`${title}.`, ...(remedy === null ? [] : [remedy])].join(' ') }]
      : [],
  );
}

function section(heading: string, terms: readonly Term[]): string[] {
  return [`.SH ${heading}`, ...tags(terms)];
}

function tags(terms: readonly Term[]): string[] {
  return terms.flatMap(({ term, meaning }) => ['.TP', `.B ${escape(term)}`, ...fill(meaning)]);
}

/** Breaks text into short lines. roff joins them again. */
function fill(text: string): readonly string[] {
  return fillLines(text, 60)
    .filter((line) => line !== '')
    .map(escape);
}

/** Escapes text for roff. The hyphens stay ASCII, so that people can copy options. */
function escape(text: string): string {
  return text
    .replaceAll('\\', String.raw`\e`)
    .replaceAll('-', String.raw`\-`)
    .replaceAll('"', String.raw`\(dq`)
    .replaceAll("'", String.raw`\(aq`)
    .replaceAll(/^\./g, String.raw`\&.`)
    .replaceAll(/[^\n -~]/gu, (letter) => `\\[u${toCode(letter)}]`);
}

function toCode(letter: string): string {
  return (letter.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0');
}
