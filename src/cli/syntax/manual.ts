import type { Chapter } from './chapter.ts';
import type { Term } from './declaration.ts';
import { wrap } from './help.ts';

/** What the page says besides the commands. */
export interface ManualPage {
  readonly version: string;
  /** When it was written, YYYY-MM-DD. */
  readonly date: string;
  readonly program: Chapter;
  readonly commands: readonly Chapter[];
  /** Further sections by their headings. */
  readonly sections: Readonly<Record<string, readonly Term[]>>;
}

/** Writes latchkey(1): the whole program in one page, a part for each command (man(7)). */
export function formatManual({ version, date, program, commands, sections }: ManualPage): string {
  return [
    `.TH LATCHKEY 1 ${date} "Latchkey ${escape(version)}" "User Commands"`,
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
    ...commands.flatMap(formatCommand),
    ...Object.entries(sections).flatMap(([heading, terms]) => section(heading, terms)),
    '',
  ].join('\n');
}

/** A group has nothing to tell but its commands, which follow. */
function formatCommand({
  usage,
  summary,
  commands,
  operands,
  options,
  examples,
  epilogue,
}: Chapter): string[] {
  if (commands.length > 0) return [];
  return [
    `.SS ${escape(usage)}`,
    ...fill(summary.endsWith('.') ? summary : `${summary}.`),
    ...tags([...operands, ...options]),
    ...(epilogue === null ? [] : ['.PP', ...fill(epilogue)]),
    ...(examples.length === 0 ? [] : ['.PP', examples.length === 1 ? 'Example:' : 'Examples:']),
    ...tags(examples),
  ];
}

function section(heading: string, terms: readonly Term[]): string[] {
  return [`.SH ${heading}`, ...tags(terms)];
}

function tags(terms: readonly Term[]): string[] {
  return terms.flatMap(({ term, meaning }) => ['.TP', `.B ${escape(term)}`, ...fill(meaning)]);
}

/** Text that roff fills lines with; each of its own is short, as roff is written. */
function fill(text: string): readonly string[] {
  return text === '' ? [] : wrap(text, 60).map(escape);
}

/** Writes a text so that roff takes none of it for a request, and keeps its hyphens for those who copy it. */
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
