import yargs, { type Argv } from 'yargs';
import { Parser } from 'yargs/helpers';
import { suggest } from '../config/fault/suggestion.ts';
import {
  type Builder,
  type Command,
  type CommandEntry,
  type GlobalOptions,
  globalOptions,
  nameOf,
  positionalGroup,
  programOptions,
  UsageError,
  type Value,
} from './command.ts';

/** What a command line calls: a command or a group, or null for the program itself. */
export interface Called {
  readonly words: readonly string[];
  readonly entry: CommandEntry | null;
}

/** A command line that is understood. */
export interface ParsedLine {
  readonly command: Command;
  readonly args: GlobalOptions;
}

const parserConfiguration = {
  'parse-numbers': false,
  'parse-positional-numbers': false,
  'dot-notation': false,
  'boolean-negation': false,
  'greedy-arrays': false,
};

/** Replaces sentences of yargs. Its types do not know that a sentence may have two forms. */
const sentences = {
  'Unknown argument: %s': { one: 'Unexpected argument: %s', other: 'Unexpected arguments: %s' },
  'Missing required argument: %s': { one: '--%s is required', other: 'These options are required: %s' },
  'Not enough arguments following: %s': '--%s needs a value',
} as unknown as Record<string, string>;

/** Splits a line into positionals and the options that `known` declares. Unknown options are left out. */
export function splitLine(
  argv: readonly string[],
  known: Builder,
): { readonly words: readonly string[]; readonly options: Readonly<Record<string, unknown>> } {
  const names = (wanted: boolean): string[] =>
    Object.keys(known).filter((name) => (known[name]?.type === 'boolean') === wanted);
  const alias = Object.entries(known).map(([name, value]) => [name, value.alias ?? []]);
  const { _: words, ...options } = Parser([...escapeDashes(argv)], {
    string: names(false),
    boolean: names(true),
    alias: Object.fromEntries(alias) as Record<string, string[]>,
    configuration: { ...parserConfiguration, 'unknown-options-as-args': true },
  });
  const isWord = (word: string): boolean => !/^-./.test(word);
  return { words: words.map(String).filter(isWord).map(unescape), options };
}

/** Reads a command line. Throws a `UsageError` if it is not understood. */
export function parseLine(
  argv: readonly string[],
  { words, entry }: Called,
  commands: readonly CommandEntry[],
): ParsedLine {
  const known = knownOptions(entry);
  refuseValues(argv, known);
  let parsed: ParsedLine | undefined;
  let isEntered = false;
  const parser = createParser(argv, commands, {
    enter: () => {
      isEntered = true;
    },
    run: (command, args) => {
      parsed = { command, args };
    },
  });
  const toUsageError = (message: string): UsageError => {
    const unknown = findUnknownOption(argv, parser.parsed, known);
    if (unknown !== undefined) return unknown;
    if (isEntered || entry === null || 'commands' in entry) {
      return new UsageError(plainMessage(message, entry));
    }
    // yargs took the command for the value of an option before it.
    return new UsageError(`The options of a command come after it: latchkey ${words.join(' ')} …`);
  };
  void parser
    .fail((message: string | null, error?: Error) => {
      throw toUsageError(message ?? error?.message ?? '');
    })
    .parseSync();
  if (parsed === undefined) throw toUsageError('A command is missing');
  return parsed;
}

/** yargs reads any value of a boolean option as false. */
function refuseValues(argv: readonly string[], known: Builder): void {
  for (const word of optionsOf(argv)) {
    const [, name = '', value] = /^--([^=]+)=(.*)$/s.exec(word) ?? [];
    if (known[name]?.type === 'boolean' && value !== 'true' && value !== 'false')
      throw new UsageError(`--${name} takes no value`);
  }
}

/** The words that may be options: those before `--`. */
function optionsOf(argv: readonly string[]): readonly string[] {
  const end = argv.indexOf('--');
  return end === -1 ? argv : argv.slice(0, end);
}

/** The help of a command, a group or the program, in lines of at most so many columns. */
export async function formatHelp(
  { words, entry }: Called,
  commands: readonly CommandEntry[],
  columns: number,
): Promise<string> {
  const parser = createParser(words, commands).wrap(columns);
  if (entry === null) {
    parser
      .usage(`$0 <command>\n\n${programSummary}`)
      .options(inGroup('Options:', programOptions))
      .epilogue(programEpilogue);
  }
  return await parser.getHelp();
}

export const programSummary = 'Verifies license keys and counts their uses beside your software.';
export const programEpilogue =
  'Start with: latchkey init, or latchkey demo. Put an argument that begins with a dash after --, as in: latchkey verify -- -KEY-';

function createParser(
  argv: readonly string[],
  commands: readonly CommandEntry[],
  on?: { enter: () => void; run: (command: Command, args: GlobalOptions) => void },
): Argv {
  const add = (parser: Argv, entry: CommandEntry): Argv =>
    'commands' in entry
      ? parser.command(entry.command, entry.describe, (inner) =>
          entry.commands.reduce(add, inner).demandCommand(1, needsCommand(entry)),
        )
      : parser.command(
          entry.command,
          entry.describe,
          (inner) => {
            on?.enter();
            return declare(inner, entry);
          },
          (args) => on?.run(entry, args as GlobalOptions),
        );
  const parser = yargs([...escapeDashes(argv)])
    .scriptName('latchkey')
    .locale('en')
    .updateStrings(sentences)
    .parserConfiguration(parserConfiguration)
    .help(false)
    .version(false)
    .exitProcess(false)
    .strict()
    .demandCommand(1, 'A command is missing')
    .options(inGroup('General options:', globalOptions));
  return commands.reduce(add, parser);
}

function needsCommand({ command, commands }: CommandEntry & { commands: readonly Command[] }): string {
  return `${command} needs a command: ${commands.map(nameOf).join(', ')}`;
}

function declare(parser: Argv, { builder, examples, epilogue }: Command): Argv {
  const declared = parser
    .options(inGroup('Options:', builder))
    .example(examples.map(([line, meaning]) => [line, meaning] as [string, string]));
  return epilogue === undefined ? declared : declared.epilogue(epilogue);
}

/** The values as yargs takes them, with checks that yargs leaves out. */
function inGroup(group: string, values: Builder): Record<string, Value> {
  return Object.fromEntries(
    Object.entries(values).map(([name, value]) => {
      const isPositional = value.group === positionalGroup;
      const written = isPositional ? `<${name}>` : `--${name}`;
      const declared = {
        group,
        ...value,
        requiresArg: !isPositional && value.type !== 'boolean',
        // The check of a choice is in `checkValue`, which suggests what was meant.
        coerce: (given: unknown) => checkValue(written, value, given),
      };
      return [name, declared];
    }),
  );
}

function checkValue(name: string, value: Value, given: unknown): unknown {
  if (Array.isArray(given)) {
    if (value.array !== true) throw new UsageError(`${name} is given twice`);
    return given.map((each) => checkValue(name, value, each));
  }
  if (typeof given === 'number' && Number.isNaN(given)) throw new UsageError(`${name} must be a number`);
  if (typeof given !== 'string') return given;
  const text = unescape(given);
  // A positional of white space is usually a variable that a shell script did not set.
  if (value.group === positionalGroup && value.mayBeBlank !== true && text.trim() === '')
    throw new UsageError(`${name} is empty`);
  const choices = value.choices?.map(String);
  if (choices !== undefined && !choices.includes(text)) {
    throw new UsageError(`${name} must be one of ${choices.join(', ')}${didYouMean(suggest(text, choices))}`);
  }
  return text;
}

/** The options that a command has, or the program itself. */
export function knownOptions(entry: CommandEntry | null): Builder {
  const own = entry === null ? programOptions : 'commands' in entry ? {} : entry.builder;
  const options = Object.entries(own as Builder).filter(([, { group }]) => group !== positionalGroup);
  return { ...Object.fromEntries(options), ...globalOptions };
}

function findUnknownOption(
  argv: readonly string[],
  parsed: Argv['parsed'],
  known: Builder,
): UsageError | undefined {
  const names = Object.keys(known);
  const given = parsed === false ? [] : Object.keys(parsed.argv);
  for (const word of optionsOf(argv)) {
    const [, dashes, name = ''] = /^(--?)([^=\d][^=]*)/.exec(word) ?? [];
    if (dashes === undefined || name === 'h') continue;
    if (dashes === '--' && (names.includes(name) || !given.includes(name))) continue;
    if (dashes === '-') {
      return new UsageError(
        `Unknown option: ${word}. An argument that begins with a dash is written after --`,
      );
    }
    return new UsageError(`Unknown option: --${name}${didYouMean(suggest(name, names), '--')}`);
  }
  return undefined;
}

function plainMessage(message: string, entry: CommandEntry | null): string {
  const text = unescape(message);
  return text.startsWith('Not enough non-option arguments') && entry !== null
    ? `An argument is missing: ${entry.command}`
    : text;
}

const escape = '\0';

/**
 * Marks words that are no options: `-`, and the words after `--`, which yargs does not give to the positionals of a
 * command. No command line has a NUL.
 */
function escapeDashes(argv: readonly string[]): readonly string[] {
  const before = optionsOf(argv);
  const after = argv.slice(before.length + 1).map((word) => `${escape}${word}`);
  return [...before.map((word) => (word === '-' ? `${escape}${word}` : word)), ...after];
}

function unescape(text: string): string {
  return text.replaceAll(escape, '');
}

/** Finds the command that these words call; the words after it are its arguments. Throws a `UsageError`. */
export function findCommand(words: readonly string[], commands: readonly CommandEntry[]): Called {
  let called: Called = { words: [], entry: null };
  for (const word of words) {
    if (called.entry !== null && !('commands' in called.entry)) return called;
    const among: readonly CommandEntry[] = called.entry?.commands ?? commands;
    const entry = among.find((each) => nameOf(each) === word);
    if (entry === undefined) throw unknownCommand(called.words, word, among);
    called = { words: [...called.words, word], entry };
  }
  return called;
}

/** Words that people know from other programs, each with our commands for them. */
const synonyms: readonly (readonly [words: string, commands: readonly string[]])[] = [
  ['start run up daemon server launch', ['serve']],
  ['get info view describe inspect', ['show', 'status']],
  ['ls all', ['list']],
  ['new add create make issue', ['add', 'create', 'make', 'issue']],
  ['delete remove rm', ['delete', 'revoke', 'drop', 'uninstall']],
  ['edit change set modify', ['update']],
  ['check validate', ['verify', 'check']],
  ['setup configure', ['init']],
  ['health ps', ['status', 'show']],
];

function unknownCommand(words: readonly string[], word: string, among: readonly CommandEntry[]): UsageError {
  const names = among.map(nameOf);
  const [, meant = []] = synonyms.find(([others]) => others.split(' ').includes(word)) ?? [];
  const near = meant.find((name) => names.includes(name)) ?? suggest(word, names);
  return new UsageError(`Unknown command: ${[...words, word].join(' ')}${didYouMean(near)}`, words);
}

function didYouMean(word: string | undefined, dashes = ''): string {
  return word === undefined ? '' : `. Did you mean ${dashes}${word}?`;
}
