import { z } from 'zod';
import { isInstant, parseDatetime } from '../domain/datetime.ts';
import { isLongerThan } from '../domain/text.ts';
import { shortestSecret } from '../service/access/secret.ts';

/*
 * The types of parameters. Each accepts the text of a form and the values of JSON, and reports an error as a code and
 * a sentence that continues after the name of the parameter.
 */

export type Issues = { issues: z.core.$ZodRawIssue[] };
type Schema = Readonly<Record<string, unknown>>;

type Read<Given, Value> = (given: Given, issues: Issues) => Value;

/** The reader of each type, to bypass zod: this takes a tenth of the time, and an import reads a million cells. */
const readers = new WeakMap<z.ZodType, Read<unknown, unknown>>();

/** A type of parameters; `schema` is its JSON Schema. A missing parameter is an error unless the type is optional. */
export function kind<Value>(schema: Schema, read: Read<unknown, Value>): z.ZodType<Value> {
  const readGiven: Read<unknown, Value> = (given, issues) =>
    given === undefined ? refuse(issues, 'required', 'is required') : read(given, issues);
  const made = z.unknown().transform(readGiven).register(z.globalRegistry, { override: schema });
  readers.set(made, readGiven);
  return made;
}

/** A type that checks or changes the value of another; `schema` is what this adds to the JSON Schema. */
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

/** An error of a parameter; if `code` is `custom`, the code is in `params`. */
export type Issue = {
  code?: string | undefined;
  message?: string | undefined;
  params?: Record<string, unknown> | undefined;
};

/** Returns a function that reads a parameter: it returns the value, or adds errors to the issues. */
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

/** Adds an error: a code, and a sentence that continues after the name of the parameter. */
export function refuse({ issues }: Issues, code: string, message: string): never {
  issues.push({ code: 'custom', input: undefined, message, params: { code } });
  return z.NEVER;
}

/** `\0` and broken surrogates cannot be stored as they are. */
function isText(given: unknown): given is string {
  return typeof given === 'string' && given.isWellFormed() && !given.includes('\0');
}

/** Text with a minimum and a maximum length. */
export function text(maximum = 16_384, minimum = 1): z.ZodType<string> {
  return kind({ type: 'string', minLength: minimum, maxLength: maximum }, (given, issues) => {
    if (!isText(given)) return refuse(issues, 'not_text', 'must be text');
    if (given === '') return refuse(issues, 'required', 'must not be empty');
    if (given.length < minimum)
      return refuse(issues, 'too_short', `must have at least ${minimum} characters`);
    if (isLongerThan(given, maximum))
      return refuse(issues, 'too_long', `must have at most ${maximum} characters`);
    return given;
  });
}

/** A display name. */
export const name: z.ZodType<string> = text(200);

/** An id by which other requests name a thing of the catalogue. */
export const identifier: z.ZodType<string> = text(100);

/** The id of a thing to add. Clients remove `.` and `..` from paths. */
export const newIdentifier: z.ZodType<string> = refined(
  identifier,
  { pattern: String.raw`^(?!\.{1,2}$)` },
  (given, issues) =>
    given === '.' || given === '..' ? refuse(issues, 'malformed', 'must not be . or ..') : given,
);

/**
 * An e-mail address, as browsers accept it in a form (WHATWG HTML, valid e-mail address), or an international
 * address (RFC 6531).
 */
export const email: z.ZodType<string> = refined(text(320), { format: 'idn-email' }, (given, issues) => {
  const address = given.trim().normalize('NFC');
  return z.regexes.html5Email.test(address.replaceAll(internationalLetter, 'x'))
    ? address
    : refuse(issues, 'not_an_email', 'must be an e-mail address');
});

/** An e-mail address to search for. */
export const soughtEmail: z.ZodType<string> = refined(text(320), {}, (given) =>
  given.trim().normalize('NFC'),
);

/** Characters beyond ASCII, except control characters, white space and invisible characters. */
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

/** Text that matches a pattern. */
export function textLike(pattern: RegExp, maximum: number, message: string): z.ZodType<string> {
  const schema: Schema = { type: 'string', minLength: 1, maxLength: maximum, pattern: portable(pattern) };
  return kind(schema, (given, issues) => {
    if (
      typeof given !== 'string' ||
      !given.isWellFormed() ||
      isLongerThan(given, maximum) ||
      !pattern.test(given)
    ) {
      return refuse(issues, 'malformed', message);
    }
    return given;
  });
}

/** A pattern that all languages understand: some do not support Unicode classes. */
function portable({ source }: RegExp): string {
  const controls = String.raw`\x00-\x1f\x7f-\x9f`;
  return source.replaceAll(String.raw`\P{Cc}`, `[^${controls}]`).replaceAll(String.raw`\p{Cc}`, controls);
}

/** An integer, as decimal digits or as a JSON number. */
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

/** Includes small numbers as JSON writes them (`1e-7`): values from a response or an export can be sent as text. */
const numberText = /^-?\d{1,24}(?:\.\d{1,24})?(?:e-\d{1,3})?$/;

/** A hundred as text: 100.00000000000000001 is not 100, although the number is rounded to 100. */
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

/** One of several values. */
export function oneOf<Word extends string>(words: readonly Word[]): z.ZodType<Word> {
  return kind(
    { type: 'string', enum: [...words] },
    (given, issues) =>
      words.find((word) => word === given) ??
      refuse(issues, 'not_one_of', `must be one of ${words.join(', ')}`),
  );
}

/** A JSON list of any items: at least one, at most `maximum`. */
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

/** A JSON list of enum values: at least one. */
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

/** A parameter with a default. */
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
