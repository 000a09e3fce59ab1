import { type CommandEntry, nameOf } from '../command.ts';
import { type Declaration, type Slot, slotsOf, type Term, type Value } from './declaration.ts';
import { globalOptions, letters, programOptions } from './global-options.ts';
import type { Place } from './place.ts';

/** What a place of the command line is and takes: what its help, the manual and the book are made of. */
export interface Chapter {
  /** The line that calls it: `latchkey outbox retry <id>`. */
  readonly usage: string;
  readonly summary: string;
  /** The commands below it, by what follows to call each. */
  readonly commands: readonly Term[];
  readonly operands: readonly Term[];
  readonly options: readonly Term[];
  readonly general: readonly Term[];
  readonly examples: readonly Term[];
  readonly epilogue: string | null;
}

const programSummary = 'Verifies license keys and counts their uses beside your software.';
const programEpilogue =
  'Start with: latchkey init, or latchkey demo. Put an argument that begins with a dash after --, as in: latchkey verify -- -KEY-';
const nothing: Declaration = { options: new Map(), operands: new Map(), examples: [], epilogue: null };

/** Tells what a place is and takes. */
export async function readChapter(
  { words, entry }: Place,
  commands: readonly CommandEntry[],
): Promise<Chapter> {
  const members = membersOf(entry, commands);
  const isCommand = entry !== null && 'load' in entry;
  const declaration = isCommand ? (await entry.load()).declaration : nothing;
  const { operands, examples, epilogue } = declaration;
  const line = ['latchkey', ...words.slice(0, -1), ...(entry === null ? [] : [entry.usage])].join(' ');
  const options = entry === null ? programOptions : declaration.options;
  return {
    usage: isCommand ? `${line}${optionsOf(declaration)}` : `${line} <command>`,
    summary: entry === null ? programSummary : entry.summary,
    commands: members.map(({ usage, summary }) => ({ term: usage, meaning: summary })),
    operands: slotsOf(entry?.usage ?? '').map((slot) => toOperandTerm(slot, operands.get(slot.name))),
    options: [...options].map(toOptionTerm),
    general: [...globalOptions].map(toOptionTerm),
    examples: examples.map(({ line: term, says }) => ({ term, meaning: says })),
    epilogue: entry === null ? programEpilogue : epilogue,
  };
}

/** The chapters of a place and of all below it, in the order of the help. */
export async function readChapters(
  place: Place,
  commands: readonly CommandEntry[],
): Promise<readonly Chapter[]> {
  const { words, entry } = place;
  const below = await Promise.all(
    membersOf(entry, commands).map((member) =>
      readChapters({ words: [...words, nameOf(member)], entry: member }, commands),
    ),
  );
  return [await readChapter(place, commands), ...below.flat()];
}

function membersOf(entry: CommandEntry | null, commands: readonly CommandEntry[]): readonly CommandEntry[] {
  if (entry === null) return commands;
  return 'members' in entry ? entry.members : [];
}

/** Those that must be given, and that there are others. */
function optionsOf({ options }: Declaration): string {
  const needed = [...options].filter(([, { required }]) => required);
  const others = options.size > needed.length ? ' [options]' : '';
  return needed.map((option) => ` ${writeOption(option)}`).join('') + others;
}

function toOperandTerm({ name, isRequired, takesAll }: Slot, value: Value | undefined): Term {
  const word = takesAll ? `${name}..` : name;
  return {
    term: isRequired ? `<${word}>` : `[${word}]`,
    meaning: value === undefined ? '' : [value.describe, ...notesOf(value)].join('; '),
  };
}

function toOptionTerm(option: readonly [string, Value]): Term {
  const [name, value] = option;
  const notes = [...(value.required ? ['required'] : []), ...notesOf(value)];
  const letter = letters[name] === undefined ? '' : `-${letters[name]}, `;
  return {
    term: `${letter}${writeOption(option)}`,
    meaning: notes.length === 0 ? value.describe : `${value.describe} (${notes.join('; ')})`,
  };
}

function writeOption([name, { type, choices, names }]: readonly [string, Value]): string {
  if (type === 'boolean') return `--${name}`;
  if (type === 'number') return `--${name} N`;
  if (choices !== undefined) return `--${name} ${isShort(choices) ? choices.join('|') : 'WORD'}`;
  return `--${name} ${names?.toUpperCase() ?? 'TEXT'}`;
}

function isShort(choices: readonly string[]): boolean {
  return choices.join('|').length <= 25;
}

function notesOf({ choices, default: fallback }: Value): readonly string[] {
  const isTold = fallback !== undefined && fallback !== false && !Array.isArray(fallback);
  return [
    ...(choices === undefined || isShort(choices) ? [] : [`one of ${choices.join(', ')}`]),
    ...(isTold ? [`default: ${String(fallback)}`] : []),
  ];
}
