import { z } from 'zod';
import { isInstant, parseDatetime } from '../domain/datetime.ts';
import { isLonger } from '../domain/text.ts';
import { shortestSecret } from '../service/access/secret.ts';

/*
 * The kinds of parameters. Each reads a form's text and JSON's own values alike, and refuses with a code
 * and a sentence that goes on after the parameter's name.
 */

export type Issues = { issues: z.core.$ZodRawIssue[] };
type Schema = Readonly<Record<string, unknown>>;

type Read<Given, Value> = (given: Given, issues: Issues) => Value;

/** How each kind reads, without a schema around it: that takes a tenth of the time, and imports read a million cells. */
const readers = new WeakMap<z.ZodType, Read<unknown, unknown>>();

/** One parameter: what is sent in, what the value is inside. Missing is refused unless made optional. */
export function kind<Value>(schema: Schema, read: Read<unknown, Value>): z.ZodType<Value> {
  const readGiven: Read<unknown, Value> = (given, issues) =>
    given === undefined ? refuse(issues, 'required', 'is required') : read(given, issues);
  const made = z.unknown().transform(readGiven).register(z.globalRegistry, { override: schema });
  readers.set(made, readGiven);
  return made;
}

/** A kind whose value is read further; `schema` says what that adds to the first. */
export function refined<First, Value>(
  first: z.ZodType<First>,
  schema: Schema,
  read: Read<First, Value>,
): z.ZodType<Value> {
  const made = first.transform(read).meta({ override: schema });
  const readFirst = readers.get(first) as Read<unknown, First> | undefined;
  if (readFirst !== undefined) {
    readers.set(made, (given, issues) => {
      const value = readFirst(given, issues);
      return issues.issues.length > 0 ? z.NEVER : read(value, issues);
    });
  }
  return made;
}

/** What is wrong with a parameter; `code` `custom`: as `params.code` says. */
export type Issue = {
  code?: string | undefined;
  message?: string | undefined;
  params?: Record<string, unknown> | undefined;
};

/** Prepares the reading of one parameter: it gives the value, or adds what is wrong with it to the issues. */
export function readerOf(schema: z.ZodType): Read<unknown, unknown> {
  const read = readers.get(schema);
  if (read !== undefined) return read;
  if (schema instanceof z.ZodOptional) {
    const readGiven = readerOf(schema.unwrap() as z.ZodType);
    return (given, issues) => (given === undefined ? undefined : readGiven(given, issues));
  }
  return (given, { issues }) => {
    const { data, error } = schema.safeParse(given);
    for (const issue of error?.issues ?? []) issues.push({ ...issue, input: given } as z.core.$ZodRawIssue);
    return data;
  };
}

/** Refuses what was sent, with a code and a sentence that goes on after the parameter's name. */
export function refuse({ issues }: Issues, code: string, message: string): never {
  issues.push({ code: 'custom', input: undefined, message, params: { code } });
  return z.NEVER;
}

/** `\0` and broken surrogates cannot be stored as they are. */
function isText(given: unknown): given is string {
  return typeof given === 'string' && given.isWellFormed() && !given.includes('\0');
}

/** Text, of at least one character unless more are asked for. */
export function text(maximum = 16_384, minimum = 1): z.ZodType<string> {
  return kind({ type: 'string', minLength: minimum, maxLength: maximum }, (given, issues) => {
    if (!isText(given)) return refuse(issues, 'not_text', 'must be text');
    if (given === '') return refuse(issues, 'required', 'must not be empty');
    if (given.length < minimum)
      return refuse(issues, 'too_short', `must have at least ${minimum} characters`);
    if (isLonger(given, maximum))
      return refuse(issues, 'too_long', `must have at most ${maximum} characters`);
    return given;
  });
}

/** What people call a thing of theirs. */
export const name: z.ZodType<string> = text(200);

/** What names a thing of the catalogue in other requests. */
export const identifier: z.ZodType<string> = text(100);

/** The name of a thing that is to be added. `.` and `..` would be lost from the paths that name it. */
export const newIdentifier: z.ZodType<string> = refined(
  identifier,
  { pattern: String.raw`^(?!\.{1,2}$)` },
  (given, issues) =>
    given === '.' || given === '..' ? refuse(issues, 'malformed', 'must not be . or ..') : given,
);

/**
 * An e-mail address, as browsers take it in a form (WHATWG HTML, valid e-mail address), or an international one
 * (RFC 6531).
 */
export const email: z.ZodType<string> = refined(text(320), { format: 'idn-email' }, (given, issues) => {
  const address = given.trim().normalize('NFC');
  return z.regexes.html5Email.test(address.replaceAll(internationalLetter, 'x'))
    ? address
    : refuse(issues, 'not_an_email', 'must be an e-mail address');
});

/** An e-mail address that is looked for. */
export const soughtEmail: z.ZodType<string> = refined(text(320), {}, (given) =>
  given.trim().normalize('NFC'),
);

/** Letters beyond ASCII, and all that is like them: no control characters, no white space, nothing invisible. */
const internationalLetter = /[^\0-\x7f\p{C}\p{Z}]/gu;

const secretPattern = /^[!-~]([ -~]*[!-~])?$/;

/** An API key or a product's secret that an existing store issued. */
export const secret: z.ZodType<string> = text(200, shortestSecret)
  .refine((given) => secretPattern.test(given), {
    message: 'must be one line of visible ASCII, as a header can carry it',
    params: { code: 'malformed' },
  })
  .meta({
    override: { type: 'string', minLength: shortestSecret, maxLength: 200, pattern: secretPattern.source },
  });

/** Text that a pattern describes. */
export function textLike(pattern: RegExp, maximum: number, message: string): z.ZodType<string> {
  const schema: Schema = { type: 'string', minLength: 1, maxLength: maximum, pattern: portable(pattern) };
  return kind(schema, (given, issues) => {
    if (
      typeof given !== 'string' ||
      !given.isWellFormed() ||
      isLonger(given, maximum) ||
      !pattern.test(given)
    ) {
      return refuse(issues, 'malformed', message);
    }
    return given;
  });
}

/** A pattern as every language reads it: not all of them know the classes of Unicode. */
function portable({ source }: RegExp): string {
  const controls = String.raw`\x00-\x1f\x7f-\x9f`;
  return source.replaceAll(String.raw`\P{Cc}`, `[^${controls}]`).replaceAll(String.raw`\p{Cc}`, controls);
}

/** A whole number in decimal digits, or JSON's number. */
export function integer(minimum: number, maximum: number = Number.MAX_SAFE_INTEGER): z.ZodType<number> {
  const range = maximum === Number.MAX_SAFE_INTEGER ? `${minimum} or more` : `from ${minimum} to ${maximum}`;
  const kindOfNumber = minimum === Number.MIN_SAFE_INTEGER ? 'an integer' : `an integer, ${range}`;
  return kind({ type: 'integer', minimum, maximum }, (given, issues) => {
    const number = numberOf(given, /^-?\d{1,16}$/);
    if (!Number.isSafeInteger(number)) return refuse(issues, 'not_an_integer', `must be ${kindOfNumber}`);
    if (number < minimum || number > maximum) return refuse(issues, 'out_of_range', `must be ${range}`);
    return number;
  });
}

/** Also small numbers as JSON writes them (`1e-7`): what an answer or an export said can be sent as text. */
const numberText = /^-?\d{1,24}(?:\.\d{1,24})?(?:e-\d{1,3})?$/;

/** A hundred, as text: what only comes out as 100, since a number holds 17 digits, is another percentage. */
const hundredText = /^0*100(?:\.0+)?$/;

/** A percentage above 0, at most 100 (specification 2.1). */
export const percentage: z.ZodType<number> = kind(
  { type: 'number', exclusiveMinimum: 0, maximum: 100 },
  (given, issues) => {
    const number = numberOf(given, numberText);
    if (!Number.isFinite(number)) return refuse(issues, 'not_a_number', 'must be a decimal number');
    const isRounded = number === 100 && typeof given === 'string' && !hundredText.test(given);
    if (number <= 0 || number > 100 || isRounded)
      return refuse(issues, 'out_of_range', 'must be above 0 and at most 100');
    return number;
  },
);

/** An RFC 3339 datetime, as epoch ms. */
export const datetime: z.ZodType<number> = kind(
  { type: 'string', format: 'date-time', minLength: 20 },
  (given, issues) => {
    const instant = typeof given === 'string' ? parseDatetime(given) : null;
    if (instant === null || !isInstant(instant)) {
      return refuse(issues, 'not_a_datetime', 'must be an RFC 3339 datetime');
    }
    return instant;
  },
);

/** An instant in a response: an RFC 3339 datetime. */
export const instant = z.iso.datetime({ offset: true });

/** `true` or `false`. */
export const boolean: z.ZodType<boolean> = kind({ type: 'boolean' }, (given, issues) => {
  if (given === true || given === 'true') return true;
  if (given === false || given === 'false') return false;
  return refuse(issues, 'not_a_boolean', 'must be true or false');
});

/** One of a few words. */
export function oneOf<Word extends string>(words: readonly Word[]): z.ZodType<Word> {
  return kind(
    { type: 'string', enum: [...words] },
    (given, issues) =>
      words.find((word) => word === given) ??
      refuse(issues, 'not_one_of', `must be one of ${words.join(', ')}`),
  );
}

/** A JSON list of whatever, at least one item and at most `maximum`. */
export function listOf(maximum: number): z.ZodType<readonly unknown[]> {
  return kind({ type: 'array', minItems: 1, maxItems: maximum }, (given, issues) => {
    if (!Array.isArray(given)) return refuse(issues, 'not_a_list', 'must be a list');
    if (given.length === 0) return refuse(issues, 'required', 'must have at least one item');
    if (given.length > maximum) return refuse(issues, 'too_long', `must have at most ${maximum} items`);
    return given;
  });
}

/** A JSON list of texts. */
export const texts: z.ZodType<readonly string[]> = kind(
  { type: 'array', items: { type: 'string', minLength: 1 } },
  (given, issues) => {
    const list = z.array(z.string().min(1).refine(isText)).safeParse(given);
    return list.success ? list.data : refuse(issues, 'not_a_list', 'must be a list of texts');
  },
);

/** A JSON list of a few words, at least one of them. */
export function someOf<Word extends string>(words: readonly Word[]): z.ZodType<readonly Word[]> {
  const schema: Schema = { type: 'array', items: { type: 'string', enum: [...words] }, minItems: 1 };
  return kind(schema, (given, issues) => {
    if (!Array.isArray(given)) return refuse(issues, 'not_a_list', 'must be a list of words');
    if (given.length === 0) return refuse(issues, 'required', 'must name at least one');
    const found = words.filter((word) => given.includes(word));
    return given.every((item) => words.some((word) => word === item))
      ? found
      : refuse(issues, 'not_one_of', `must hold only ${words.join(', ')}`);
  });
}

/** A parameter that has a value also when it is not sent. */
export function orDefault<Value extends string | number | boolean>(
  given: z.ZodType<Value>,
  value: Value,
): z.ZodType<Value> {
  const describe = ({ jsonSchema }: { jsonSchema: Record<string, unknown> }): void => {
    jsonSchema['default'] = value;
  };
  return given
    .optional()
    .transform((sent): Value => sent ?? value)
    .meta({ override: describe });
}

function numberOf(given: unknown, pattern: RegExp): number {
  if (typeof given === 'number') return given;
  return typeof given === 'string' && pattern.test(given) ? Number(given) : Number.NaN;
}
