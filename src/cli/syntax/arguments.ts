import { suggest } from '../../config/fault/suggestion.ts';
import { type GlobalOptions, UsageError } from '../command.ts';
import { camelCase, type Declaration, type Slot, slotsOf, type Value } from './declaration.ts';
import { globalOptions } from './global-options.ts';
import { type Token, tokenize } from './place.ts';

/** The command that a command line is read for. */
export interface Called {
  /** The words that it is called by. */
  readonly words: readonly string[];
  readonly usage: string;
  readonly declaration: Declaration;
}

type Option = Token & { readonly kind: 'option' };

/** Reads what a command is given, by the names under which its `run` finds it. Throws a `UsageError`. */
export function readArguments(argv: readonly string[], { words, usage, declaration }: Called): GlobalOptions {
  const known = new Map([...declaration.options, ...globalOptions]);
  const tokens = tokenize(argv, known);
  const options = tokens.filter((token) => token.kind === 'option');
  const texts = tokens.flatMap((token) => (token.kind === 'operand' ? [token.text] : []));
  const isCalled = words.every((word, index) => texts[index] === word);
  if (!isCalled)
    throw new UsageError(`The options of a command come after it: latchkey ${words.join(' ')} …`);
  return Object.fromEntries([
    ...readOptions(options, known),
    ...readOperands(texts.slice(words.length), slotsOf(usage), declaration),
  ]);
}

function readOptions(given: readonly Option[], known: ReadonlyMap<string, Value>): [string, unknown][] {
  for (const option of given) {
    if (!known.has(option.name)) throw unknownOption(option, [...known.keys()]);
  }
  return [...known].map(([name, value]) => {
    const [first, second] = given.filter((option) => option.name === name);
    if (second !== undefined) throw new UsageError(`--${name} is given twice`);
    if (first === undefined && value.required)
      throw new UsageError(`--${name} is missing: ${value.describe}`);
    return [camelCase(name), first === undefined ? value.default : readOption(first, value)];
  });
}

function unknownOption({ name, written }: Option, known: readonly string[]): UsageError {
  const isLong = written.startsWith('--');
  const near = isLong ? suggest(name, known) : undefined;
  const hint = near === undefined ? '' : ` Did you mean --${near}?`;
  const dash = isLong ? '' : ' An argument that begins with a dash is written after --';
  return new UsageError(`Unknown option: ${written}.${hint}${dash}`.replace(/\.$/, ''));
}

function readOption({ name, value: text, isJoined }: Option, value: Value): string | number | boolean {
  if (value.type === 'boolean') {
    if (text !== undefined && !['true', 'false'].includes(text)) {
      throw new UsageError(`--${name} takes no value`);
    }
    return text !== 'false';
  }
  // What looks like an option was meant as one; a number below 0 is a value.
  if (text === undefined || (!isJoined && /^-[^\d]/.test(text))) {
    throw new UsageError(`--${name} needs a value`);
  }
  return readValue(`--${name}`, text, value);
}

function readValue(name: string, text: string, { type, choices }: Value): string | number {
  if (type === 'number') {
    const number = text.trim() === '' ? Number.NaN : Number(text);
    if (Number.isNaN(number)) throw new UsageError(`${name} must be a number`);
    return number;
  }
  if (choices !== undefined && !choices.includes(text)) {
    const near = suggest(text, choices);
    const hint = near === undefined ? '' : `. Did you mean ${near}?`;
    throw new UsageError(`${name} must be one of ${choices.join(', ')}${hint}`);
  }
  return text;
}

function readOperands(
  texts: readonly string[],
  slots: readonly Slot[],
  { operands }: Declaration,
): [string, unknown][] {
  const left = [...texts];
  const read = slots.map(({ name, isRequired, takesAll }): [string, unknown] => {
    const value = operands.get(name) ?? { describe: '' };
    const taken = left.splice(0, takesAll ? left.length : 1);
    if (taken.length === 0 && isRequired) throw new UsageError(`<${name}> is missing: ${value.describe}`);
    // White space alone is a variable of a shell script that was not set: it must name nothing.
    if (!value.mayBeBlank && taken.some((text) => text.trim() === ''))
      throw new UsageError(`<${name}> is empty`);
    const values = taken.map((text) => readValue(`<${name}>`, text, value));
    return [name, takesAll ? values : (values[0] ?? value.default)];
  });
  const [tooMany] = left;
  if (tooMany !== undefined) throw new UsageError(`Unexpected argument: ${tooMany}`);
  return read;
}
