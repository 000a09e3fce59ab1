import { parseArgs } from 'node:util';
import { suggest } from '../../config/fault/suggestion.ts';
import { type CommandEntry, nameOf, UsageError } from '../command.ts';
import type { Value } from './declaration.ts';
import { globalOptions, letters, programOptions } from './global-options.ts';

/** A command or group that a command line names, after the words that lead to it; null: the program itself. */
export interface Place {
  readonly words: readonly string[];
  readonly entry: CommandEntry | null;
}

/** One piece of a command line: an option with its value if it has one, or an operand. */
export type Token =
  | {
      readonly kind: 'option';
      readonly name: string;
      /** As it was written, without its value. */
      readonly written: string;
      readonly value: string | undefined;
      /** Whether the value was joined to it by `=`. */
      readonly isJoined: boolean;
    }
  | { readonly kind: 'operand'; readonly text: string };

/** Splits a command line; an option that is not among `known` counts as one without a value. */
export function tokenize(argv: readonly string[], known: ReadonlyMap<string, Value>): readonly Token[] {
  const options = Object.fromEntries(
    [...known].map(([name, { type }]) => [
      name,
      {
        type: type === 'boolean' ? ('boolean' as const) : ('string' as const),
        ...(letters[name] !== undefined && { short: letters[name] }),
      },
    ]),
  );
  const { tokens } = parseArgs({
    args: [...argv],
    options,
    strict: false,
    allowPositionals: true,
    tokens: true,
  });
  return tokens.flatMap((token, index): Token[] => {
    const text = argv[token.index] ?? '';
    // parseArgs takes each letter behind one dash for an option; here it is a number below 0, or a mistake.
    if (token.kind === 'option' && /^-(?:\d|[^-].)/.test(text)) {
      if (tokens[index - 1]?.index === token.index) return [];
      if (/^-\d/.test(text)) return [{ kind: 'operand', text }];
      return [{ kind: 'option', name: text.slice(1), written: text, value: undefined, isJoined: false }];
    }
    if (token.kind === 'positional') return [{ kind: 'operand', text: token.value }];
    if (token.kind === 'option-terminator') return [];
    const { name, rawName: written, value, inlineValue: isJoined = false } = token;
    return [{ kind: 'option', name, written, value, isJoined }];
  });
}

/** Finds what a command line names. Throws a `UsageError` where there is no such command. */
export function findPlace(argv: readonly string[], commands: readonly CommandEntry[]): Place {
  const tokens = tokenize(argv, new Map([...globalOptions, ...programOptions]));
  return followWords(
    tokens.flatMap((token) => (token.kind === 'operand' ? [token.text] : [])),
    commands,
  );
}

/** Follows words to a command; those after it are left over. */
export function followWords(texts: readonly string[], commands: readonly CommandEntry[]): Place {
  let place: Place = { words: [], entry: null };
  for (const text of texts) {
    const { words, entry } = place;
    if (entry !== null && !('members' in entry)) return place;
    const among = entry?.members ?? commands;
    const found = among.find((each) => nameOf(each) === text);
    if (found === undefined) throw unknownCommand(words, text, among);
    place = { words: [...words, text], entry: found };
  }
  return place;
}

/** What people call commands who know other programs. */
const meant = new Map<string, readonly string[]>([
  ...named(['start', 'run', 'up', 'daemon', 'server', 'launch'], ['serve']),
  ...named(['get', 'info', 'view', 'describe', 'inspect'], ['show', 'status']),
  ...named(['ls', 'all'], ['list']),
  ...named(['new', 'add', 'create', 'make', 'issue'], ['add', 'create', 'make', 'issue']),
  ...named(['delete', 'remove', 'rm'], ['delete', 'revoke', 'drop', 'uninstall']),
  ...named(['edit', 'change', 'set', 'modify'], ['update']),
  ...named(['check', 'validate'], ['verify', 'check']),
  ...named(['setup', 'configure'], ['init']),
  ...named(['health', 'ps'], ['status', 'show']),
]);

function named(
  words: readonly string[],
  commands: readonly string[],
): (readonly [string, readonly string[]])[] {
  return words.map((word) => [word, commands]);
}

function unknownCommand(words: readonly string[], word: string, among: readonly CommandEntry[]): UsageError {
  const names = among.map(nameOf);
  const near = meant.get(word)?.find((name) => names.includes(name)) ?? suggest(word, names);
  const hint = near === undefined ? '' : `. Did you mean ${near}?`;
  return new UsageError(`Unknown command: ${[...words, word].join(' ')}${hint}`, words);
}
