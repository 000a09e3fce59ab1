import {
  type Builder,
  type Command,
  type Entry,
  globalOptions,
  type Group,
  nameOf,
  positionalGroup,
  programOptions,
  type Term,
  type Value,
} from './command.ts';
import { type Called, programEpilogue, programSummary } from './command-line.ts';

/** The reference of a command, a group or the program: for `help --json` and the manual page. */
export interface ManualPage {
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
export async function readPages(entries: readonly Entry[]): Promise<readonly ManualPage[]> {
  const loaded = await Promise.all(entries.map(({ load }) => load()));
  const pagesOf = (found: Command | Group, before: readonly string[]): readonly ManualPage[] => {
    const words = [...before, nameOf(found)];
    if ('handler' in found) return [commandPage(words, found)];
    return [groupPage(words, found), ...found.commands.flatMap((each) => pagesOf(each, words))];
  };
  return [await programPage(entries), ...loaded.flatMap((each) => pagesOf(each, []))];
}

export async function readPage({ words, found }: Called, entries: readonly Entry[]): Promise<ManualPage> {
  if (found === null) return await programPage(entries);
  return 'handler' in found ? commandPage(words, found) : groupPage(words, found);
}

const general = Object.entries(globalOptions).map(formatOption);

async function programPage(entries: readonly Entry[]): Promise<ManualPage> {
  const terms = entries.map(async ({ name, describe, load }) =>
    describe === undefined ? termOf(await load()) : { term: name, meaning: describe },
  );
  return {
    ...groupPage([], { command: 'latchkey', describe: programSummary, commands: [] }),
    commands: await Promise.all(terms),
    options: Object.entries(programOptions).map(formatOption),
    epilogue: programEpilogue,
  };
}

function groupPage(words: readonly string[], { describe, commands }: Group): ManualPage {
  return {
    usage: ['latchkey', ...words, '<command>'].join(' '),
    summary: describe,
    commands: commands.map(termOf),
    positionals: [],
    options: [],
    general,
    examples: [],
    epilogue: null,
  };
}

function commandPage(words: readonly string[], found: Command): ManualPage {
  const { command, describe, builder, examples } = found;
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
    epilogue: found.epilogue ?? null,
  };
}

function termOf({ command, describe }: Command | Group): Term {
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
