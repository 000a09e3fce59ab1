import type { Argv } from 'yargs';
import readOptions from 'yargs-parser';
import { suggest } from '../config/errors.ts';
import {
  type Builder,
  type Command,
  type Entry,
  type GlobalOptions,
  globalOptions,
  type Group,
  nameOf,
  positionalGroup,
  programOptions,
  UsageError,
  type Value,
} from './command.ts';

/** What a command line calls: a command or a group, or null for the program itself. */
export interface Called {
  readonly words: readonly string[];
  readonly found: Command | Group | null;
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
  const { _: words, ...options } = readLine(argv, known);
  const isWord = (word: string): boolean => !/^-./.test(word);
  return { words: words.map(String).filter(isWord).map(unescape), options };
}

/** Reads a line with the parser of yargs. Options that are not in `known` are among the positionals (`_`). */
function readLine(argv: readonly string[], known: Builder): readOptions.Arguments {
  const names = (wanted: boolean): string[] =>
    Object.keys(known).filter((name) => (known[name]?.type === 'boolean') === wanted);
  const alias = Object.entries(known).map(([name, value]) => [name, value.alias ?? []]);
  return readOptions([...escapeDashes(argv)], {
    string: names(false),
    boolean: names(true),
    alias: Object.fromEntries(alias) as Record<string, string[]>,
    configuration: { ...parserConfiguration, 'unknown-options-as-args': true },
  });
}

/** Reads the arguments of the command that these words call. Throws a `UsageError`. */
export async function parseArguments(
  argv: readonly string[],
  words: readonly string[],
  command: Command,
): Promise<GlobalOptions> {
  checkOptions(argv, knownOptions(command));
  return readPlainLine(argv, words, command) ?? (await parseWithYargs(argv, words, command));
}

/**
 * Reads a line whose options are flags and texts, as those of `serve` are, without loading yargs: `serve` starts 60 ms
 * sooner. Returns null if yargs must read the line, for instance because it has an error.
 */
function readPlainLine(
  argv: readonly string[],
  words: readonly string[],
  command: Command,
): GlobalOptions | null {
  const known = knownOptions(command);
  const isPlain = ({ type, choices, array, demandOption }: Value): boolean =>
    (type === 'string' || type === 'boolean') && !choices && !array && !demandOption;
  if (![...Object.values(known), ...Object.values(command.builder)].every(isPlain)) return null;
  if (argv.slice(0, words.length).join(' ') !== words.join(' ')) return null;
  const { _: positionals, ...options } = readLine(argv.slice(words.length), known);
  if (positionals.length > 0) return null;
  const values = Object.entries(options).map(([name, value]: [string, unknown]) => [
    name,
    typeof value === 'string' ? unescape(value) : value,
  ]);
  const isGiven = (value: unknown): boolean =>
    typeof value === 'boolean' || (typeof value === 'string' && value !== '');
  return values.every(([, value]) => isGiven(value)) ? (Object.fromEntries(values) as GlobalOptions) : null;
}

async function parseWithYargs(
  argv: readonly string[],
  words: readonly string[],
  command: Command,
): Promise<GlobalOptions> {
  let isEntered = false;
  let parsed: GlobalOptions | undefined;
  const toUsageError = (message: string): UsageError =>
    isEntered
      ? new UsageError(plainMessage(message, command))
      : // yargs took the command for the value of an option before it.
        new UsageError(`Put the options after the command: latchkey ${words.join(' ')} …`);
  const parser = await createParser(argv, [inGroups(words, command)], {
    enter: () => {
      isEntered = true;
    },
    run: (args) => {
      parsed = args;
    },
  });
  void parser
    .fail((message: string | null, error?: Error) => {
      throw toUsageError(message ?? error?.message ?? '');
    })
    .parseSync();
  if (parsed === undefined) throw toUsageError('');
  return parsed;
}

/** Rejects unknown options, and values of boolean options, which yargs reads as false. */
export function checkOptions(argv: readonly string[], known: Builder): void {
  for (const word of optionsOf(argv)) {
    const [, dashes, name = '', value] = /^(--?)([^=\d][^=]*)(?:=(.*))?$/s.exec(word) ?? [];
    if (dashes === undefined) continue;
    if (dashes === '-') {
      if (Object.values(known).some(({ alias }) => alias === name)) continue;
      throw new UsageError(
        `Unknown option: ${word}. An argument that begins with a dash is written after --`,
      );
    }
    const option = known[name];
    if (option === undefined)
      throw new UsageError(`Unknown option: --${name}${didYouMean(suggest(name, Object.keys(known)), '--')}`);
    if (option.type === 'boolean' && value !== undefined && value !== 'true' && value !== 'false')
      throw new UsageError(`--${name} takes no value`);
  }
}

function optionsOf(argv: readonly string[]): readonly string[] {
  const end = argv.indexOf('--');
  return end === -1 ? argv : argv.slice(0, end);
}

/** The help of a command or a group, in lines of at most so many columns. */
export async function formatHelp(
  words: readonly string[],
  found: Command | Group,
  columns: number,
): Promise<string> {
  const parser = await createParser(words, [inGroups(words, found)]);
  return await parser.wrap(columns).getHelp();
}

/** Puts a command into the groups that its words name. */
function inGroups(words: readonly string[], found: Command | Group): Command | Group {
  return words
    .slice(0, -1)
    .reduceRight<Command | Group>(
      (inner, word) => ({ command: word, describe: '', commands: [inner] }),
      found,
    );
}

export const programSummary = 'Verifies license keys and counts their uses beside your software.';
export const programEpilogue =
  'latchkey help COMMAND explains a command. Put an argument that begins with a dash after --, as in: latchkey verify -- -KEY-';

async function createParser(
  argv: readonly string[],
  commands: readonly (Command | Group)[],
  on?: { enter: () => void; run: (args: GlobalOptions) => void },
): Promise<Argv> {
  const { default: yargs } = await import('yargs');
  const add = (parser: Argv, each: Command | Group): Argv =>
    'commands' in each
      ? parser.command(each.command, each.describe, (inner) => each.commands.reduce(add, inner))
      : parser.command(
          each.command,
          each.describe,
          (inner) => {
            on?.enter();
            return declare(inner, each);
          },
          (args) => on?.run(args as GlobalOptions),
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
    .options(toYargs('General options:', globalOptions));
  return commands.reduce(add, parser);
}

function declare(parser: Argv, { builder, examples, epilogue }: Command): Argv {
  const declared = parser
    .options(toYargs('Options:', builder))
    .example(examples.map(([line, meaning]) => [line, meaning] as [string, string]));
  return epilogue === undefined ? declared : declared.epilogue(epilogue);
}

/** The values as yargs takes them, with checks that yargs leaves out. */
function toYargs(group: string, values: Builder): Record<string, Value> {
  return Object.fromEntries(
    Object.entries(values).map(([name, value]) => {
      const isPositional = value.group === positionalGroup;
      const written = isPositional ? `<${name}>` : `--${name}`;
      const declared = {
        group,
        ...value,
        requiresArg: !isPositional && value.type !== 'boolean',
        // The check of a choice is in `checkValue`, which suggests what was meant.
        coerce: (input: unknown) => checkValue(written, value, input),
      };
      return [name, declared];
    }),
  );
}

function checkValue(name: string, value: Value, input: unknown): unknown {
  if (Array.isArray(input)) {
    if (value.array !== true) throw new UsageError(`${name} is given twice`);
    return input.map((each) => checkValue(name, value, each));
  }
  if (typeof input === 'number' && Number.isNaN(input)) throw new UsageError(`${name} must be a number`);
  if (typeof input !== 'string') return input;
  const text = unescape(input);
  // A positional of white space is usually a variable that a shell script did not set.
  if (value.group === positionalGroup && value.mayBeBlank !== true && text.trim() === '')
    throw new UsageError(`${name} is empty`);
  const choices = value.choices?.map(String);
  if (choices !== undefined && !choices.includes(text)) {
    throw new UsageError(`${name} must be one of ${choices.join(', ')}${didYouMean(suggest(text, choices))}`);
  }
  return text;
}

export function knownOptions(command: Command | null): Builder {
  const own: Builder = command === null ? programOptions : command.builder;
  const options = Object.entries(own).filter(([, { group }]) => group !== positionalGroup);
  return { ...Object.fromEntries(options), ...globalOptions };
}

function plainMessage(message: string, { command }: Command): string {
  return message.startsWith('Not enough non-option arguments')
    ? `An argument is missing: ${command}`
    : unescape(message);
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
export async function findCommand(words: readonly string[], entries: readonly Entry[]): Promise<Called> {
  const [first, ...others] = words;
  if (first === undefined) return { words: [], found: null };
  const entry = entries.find(({ name }) => name === first);
  if (entry === undefined)
    throw unknownCommand(
      [],
      first,
      entries.map(({ name }) => name),
    );
  let found = await entry.load();
  const called = [first];
  for (const word of others) {
    if (!('commands' in found)) break;
    const next = found.commands.find((each) => nameOf(each) === word);
    if (next === undefined) throw unknownCommand(called, word, found.commands.map(nameOf));
    called.push(word);
    found = next;
  }
  return { words: called, found };
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

function unknownCommand(words: readonly string[], word: string, names: readonly string[]): UsageError {
  const [, meant = []] = synonyms.find(([others]) => others.split(' ').includes(word)) ?? [];
  const near = meant.find((name) => names.includes(name)) ?? suggest(word, names);
  return new UsageError(`Unknown command: ${[...words, word].join(' ')}${didYouMean(near)}`, words);
}

function didYouMean(word: string | undefined, dashes = ''): string {
  return word === undefined ? '' : `. Did you mean ${dashes}${word}?`;
}
