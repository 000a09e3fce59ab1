import {
  type Builder,
  type Entry,
  globalOptions,
  positionalGroup,
  programOptions,
  type Term,
  type Value,
} from './command.ts';
import { type Called, programEpilogue, programSummary } from './command-line.ts';

/** The reference of a command, a group or the program: for `help --json` and the manual page. */
export interface Page {
  /** `latchkey outbox retry <id>` */
  readonly usage: string;
  readonly summary: string;
  readonly commands: readonly Term[];
  readonly positionals: readonly Term[];
  readonly options: readonly Term[];
  readonly general: readonly Term[];
  readonly examples: readonly Term[];
  readonly epilogue: string | null;
}

/** The pages of the program and of all commands, in the order of the help. */
export async function readPages(commands: readonly Entry[]): Promise<readonly Page[]> {
  const below = async (entries: readonly Entry[], before: readonly string[]): Promise<Page[]> => {
    const pages = entries.map(async (entry) => {
      const words = [...before, entry.name];
      const page = await readPage({ words, entry }, commands);
      return [page, ...('commands' in entry ? await below(entry.commands, words) : [])];
    });
    return (await Promise.all(pages)).flat();
  };
  return [await readPage({ words: [], entry: null }, commands), ...(await below(commands, []))];
}

export async function readPage({ words, entry }: Called, commands: readonly Entry[]): Promise<Page> {
  const general = Object.entries(globalOptions).map(formatOption);
  if (entry === null || 'commands' in entry) {
    return {
      usage: ['latchkey', ...words, '<command>'].join(' '),
      summary: entry?.describe ?? programSummary,
      commands: await Promise.all((entry?.commands ?? commands).map(commandTerm)),
      positionals: [],
      options: entry === null ? Object.entries(programOptions).map(formatOption) : [],
      general,
      examples: [],
      epilogue: entry === null ? programEpilogue : null,
    };
  }
  const { command, describe, builder, examples, epilogue = null } = (await entry.load()).command;
  const [positionals, options] = split(builder);
  const line = ['latchkey', ...words.slice(0, -1), command].join(' ');
  return {
    usage: `${line}${formatUsage(options)}`,
    summary: describe,
    commands: [],
    positionals: positionals.map(([name, value]) => ({
      term: command.split(' ').find((word) => word.replace(/[<[>\].]/g, '') === name) ?? name,
      meaning: [value.describe, ...notesOf(value)].join('; '),
    })),
    options: options.map(formatOption),
    general,
    examples: examples.map(([term, meaning]) => ({ term, meaning })),
    epilogue,
  };
}

async function commandTerm(entry: Entry): Promise<Term> {
  if ('commands' in entry) return { term: entry.name, meaning: entry.describe };
  const { command, describe } = (await entry.load()).command;
  return { term: command, meaning: describe };
}

type Named = readonly [name: string, value: Value];

function split(builder: Builder): readonly [positionals: Named[], options: Named[]] {
  const isPositional = ([, { group }]: Named): boolean => group === positionalGroup;
  const all = Object.entries(builder);
  return [all.filter(isPositional), all.filter((each) => !isPositional(each))];
}

function formatUsage(options: readonly Named[]): string {
  const required = options.filter(([, { demandOption }]) => demandOption === true);
  const others = options.length > required.length ? ' [options]' : '';
  return required.map((option) => ` ${formatName(option)}`).join('') + others;
}

function formatOption(option: Named): Term {
  const [, value] = option;
  const notes = [...(value.demandOption === true ? ['required'] : []), ...notesOf(value)];
  const letter = typeof value.alias === 'string' ? `-${value.alias}, ` : '';
  return {
    term: `${letter}${formatName(option)}`,
    meaning: notes.length === 0 ? value.describe : `${value.describe} (${notes.join('; ')})`,
  };
}

function formatName([name, { type, choices, names }]: Named): string {
  if (type === 'boolean') return `--${name}`;
  if (type === 'number') return `--${name} N`;
  if (choices !== undefined) return `--${name} ${isShort(choices) ? choices.join('|') : 'WORD'}`;
  return `--${name} ${names?.toUpperCase() ?? 'TEXT'}`;
}

function isShort(choices: readonly unknown[]): boolean {
  return choices.join('|').length <= 25;
}

function notesOf({ choices, default: fallback }: Value): readonly string[] {
  const isShown = typeof fallback === 'string' || typeof fallback === 'number';
  return [
    ...(choices === undefined || isShort(choices) ? [] : [`one of ${choices.join(', ')}`]),
    ...(isShown ? [`default: ${fallback}`] : []),
  ];
}
