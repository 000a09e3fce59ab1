import { type Command, type CommandEntry, type GlobalOptions, nameOf, UsageError } from '../command.ts';
import { slotsOf, type Term, type ThingName, type Value } from './declaration.ts';
import { globalOptions, programOptions } from './global-options.ts';
import { findPlace, followWords, type Place, tokenize } from './place.ts';

/** What may follow a command line: words, a path, or the id of something that the running daemon has. */
export type Next =
  | { readonly kind: 'words'; readonly terms: readonly Term[] }
  | { readonly kind: 'file' | 'folder' }
  | { readonly kind: 'thing'; readonly thing: ThingName; readonly options: GlobalOptions };

const nothing: Next = { kind: 'words', terms: [] };

/** Finds what may be the last of these words, which is being typed; its value alone, of an option with `=`. */
export async function findNext(words: readonly string[], commands: readonly CommandEntry[]): Promise<Next> {
  const before = words.slice(0, -1);
  const place = placeOrNull(() => findPlace(before, commands));
  if (place === null) return nothing;
  const { entry } = place;
  const command = entry !== null && 'load' in entry ? await entry.load() : null;
  const known = new Map([
    ...(command?.declaration.options ?? []),
    ...globalOptions,
    ...(entry === null ? programOptions : []),
  ]);
  const typed: Typed = { before, current: words.at(-1) ?? '', known };
  const isAfterDashes = before.includes('--');
  const option = isAfterDashes ? undefined : optionInHand(typed);
  if (option !== undefined) return valuesOf(option, typed);
  if (typed.current.startsWith('-') && !isAfterDashes) return { kind: 'words', terms: optionTerms(typed) };
  if (entry === null || command === null) return commandsAt(place, commands);
  return operandAfter(typed, { place, usage: entry.usage, command, commands });
}

/** The commands of a group, or of the program; none of what is a command itself. */
function commandsAt({ entry }: Place, commands: readonly CommandEntry[]): Next {
  const members = entry === null ? commands : 'members' in entry ? entry.members : [];
  return { kind: 'words', terms: members.map((each) => ({ term: nameOf(each), meaning: each.summary })) };
}

interface Typed {
  readonly before: readonly string[];
  readonly current: string;
  readonly known: ReadonlyMap<string, Value>;
}

function placeOrNull(find: () => Place): Place | null {
  try {
    return find();
  } catch (error) {
    if (error instanceof UsageError) return null;
    throw error;
  }
}

/** The option whose value is being typed. */
function optionInHand({ before, current, known }: Typed): Value | undefined {
  const name = /^--([\w-]+)=/.exec(current)?.[1] ?? /^--([\w-]+)$/.exec(before.at(-1) ?? '')?.[1];
  const value = known.get(name ?? '');
  return value?.type === 'boolean' ? undefined : value;
}

function optionTerms({ before, known }: Typed): readonly Term[] {
  return [...known]
    .filter(([name]) => !before.some((word) => word === `--${name}` || word.startsWith(`--${name}=`)))
    .map(([name, { describe }]) => ({ term: `--${name}`, meaning: describe }));
}

function valuesOf({ choices, suggestions, names }: Value, { before, known }: Typed): Next {
  if (choices !== undefined) {
    return { kind: 'words', terms: choices.map((term) => ({ term, meaning: '' })) };
  }
  if (suggestions !== undefined) return { kind: 'words', terms: suggestions };
  if (names === undefined || names === 'command') return nothing;
  if (names === 'file' || names === 'folder') return { kind: names };
  const given = new Map(
    tokenize(before, known).flatMap((token) => (token.kind === 'option' ? [[token.name, token.value]] : [])),
  );
  return {
    kind: 'thing',
    thing: names,
    options: { config: given.get('config'), stateDir: given.get('state-dir') },
  };
}

interface PlacedCommand {
  readonly place: Place;
  readonly usage: string;
  readonly command: Command;
  readonly commands: readonly CommandEntry[];
}

function operandAfter(typed: Typed, { place, usage, command, commands }: PlacedCommand): Next {
  const words = tokenize(typed.before, typed.known).flatMap((token) =>
    token.kind === 'operand' ? [token.text] : [],
  );
  const operands = words.slice(place.words.length);
  const slots = slotsOf(usage);
  const last = slots.at(-1);
  const slot = slots[operands.length] ?? (last?.takesAll ? last : undefined);
  if (slot === undefined) {
    // Nothing but options can follow.
    return { kind: 'words', terms: typed.current === '' ? optionTerms(typed) : [] };
  }
  const value = command.declaration.operands.get(slot.name);
  if (value?.names === 'command') {
    const named = placeOrNull(() => followWords(operands, commands));
    return named === null ? nothing : commandsAt(named, commands);
  }
  return value === undefined ? nothing : valuesOf(value, typed);
}
