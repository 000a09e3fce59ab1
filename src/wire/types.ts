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

type Read<Given, Value> = (input: Given, issues: Issues) => Value;

/** The reader of each type, to bypass zod: this takes a tenth of the time, and an import reads a million cells. */
const readers = new WeakMap<z.ZodType, Read<unknown, unknown>>();

/** A type of parameters; `schema` is its JSON Schema. A missing parameter is an error unless the type is optional. */
export function parameterType<Value>(schema: Schema, read: Read<unknown, Value>): z.ZodType<Value> {
  const readSent: Read<unknown, Value> = (input, issues) =>
    input === undefined ? refuse(issues, 'required', 'is required') : read(input, issues);
  const type = z.unknown().transform(readSent).register(z.globalRegistry, { override: schema });
  readers.set(type, readSent);
  return type;
}

/** A type that checks or changes the value of another; `schema` is what this adds to the JSON Schema. */
export function refined<First, Value>(
  first: z.ZodType<First>,
  schema: Schema,
  read: Read<First, Value>,
): z.ZodType<Value> {
  const type = first.transform(read).meta({ override: schema });
  const readFirst = readers.get(first) as Read<unknown, First> | undefined;
  if (readFirst !== undefined) {
    readers.set(type, (input, issues) => {
      const value = readFirst(input, issues);
      return issues.issues.length > 0 ? z.NEVER : read(value, issues);
    });
  }
  return type;
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
    const readSent = readerOf(schema.unwrap() as z.ZodType);
    return (input, issues) => (input === undefined ? undefined : readSent(input, issues));
  }
  return (input, { issues }) => {
    const { data, error } = schema.safeParse(input);
    for (const issue of error?.issues ?? []) issues.push({ ...issue, input } as z.core.$ZodRawIssue);
    return data;
  };
}

/** Adds an error: a code, and a sentence that continues after the name of the parameter. */
export function refuse({ issues }: Issues, code: string, message: string): never {
  issues.push({ code: 'custom', input: undefined, message, params: { code } });
  return z.NEVER;
}

/** `\0` and broken surrogates cannot be stored as they are. */
function isText(input: unknown): input is string {
  return typeof input === 'string' && input.isWellFormed() && !input.includes('\0');
}

/** Text with a minimum and a maximum length. */
export function text(maximum = 16_384, minimum = 1): z.ZodType<string> {
  return parameterType({ type: 'string', minLength: minimum, maxLength: maximum }, (input, issues) => {
    if (!isText(input)) return refuse(issues, 'not_text', 'must be text');
    if (input === '') return refuse(issues, 'required', 'must not be empty');
    if (input.length < minimum)
      return refuse(issues, 'too_short', `must have at least ${minimum} characters`);
    if (isLongerThan(input, maximum))
      return refuse(issues, 'too_long', `must have at most ${maximum} characters`);
    return input;
  });
}

/** A display name. */
export const name: z.ZodType<string> = text(200);

/** The id of a product, an account, a coupon code or another thing of the catalogue. */
export const identifier: z.ZodType<string> = text(100);

/** The id of a new thing. Clients remove `.` and `..` from paths. */
export const newIdentifier: z.ZodType<string> = refined(
  identifier,
  { pattern: String.raw`^(?!\.{1,2}$)` },
  (input, issues) =>
    input === '.' || input === '..' ? refuse(issues, 'malformed', 'must not be . or ..') : input,
);

/**
 * An e-mail address, as browsers accept it in a form (WHATWG HTML, valid e-mail address), or an international
 * address (RFC 6531).
 */
export const email: z.ZodType<string> = refined(text(320), { format: 'idn-email' }, (input, issues) => {
  const address = input.trim().normalize('NFC');
  return z.regexes.html5Email.test(address.replaceAll(internationalLetter, 'x'))
    ? address
    : refuse(issues, 'not_an_email', 'must be an e-mail address');
});

/** An e-mail address to filter by. */
export const emailFilter: z.ZodType<string> = refined(text(320), {}, (input) =>
  input.trim().normalize('NFC'),
);

/** Characters beyond ASCII, except control characters, white space and invisible characters. */
const internationalLetter = /[^\0-\x7f\p{C}\p{Z}]/gu;

const secretPattern = /^[!-~]([ -~]*[!-~])?$/;

/** An API key or a product's secret that an existing store issued. */
export const secret: z.ZodType<string> = text(200, shortestSecret)
  .refine((input) => secretPattern.test(input), {
    message: 'must be one line of visible ASCII, as a header can carry it',
    params: { code: 'malformed' },
  })
  .meta({
    override: { type: 'string', minLength: shortestSecret, maxLength: 200, pattern: secretPattern.source },
  });

/** Text that matches a pattern. */
export function textMatching(pattern: RegExp, maximum: number, message: string): z.ZodType<string> {
  const schema: Schema = { type: 'string', minLength: 1, maxLength: maximum, pattern: portable(pattern) };
  return parameterType(schema, (input, issues) => {
    if (
      typeof input !== 'string' ||
      !input.isWellFormed() ||
      isLongerThan(input, maximum) ||
      !pattern.test(input)
    ) {
      return refuse(issues, 'malformed', message);
    }
    return input;
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
  return parameterType({ type: 'integer', minimum, maximum }, (input, issues) => {
    const number = numberOf(input, /^-?\d{1,16}$/);
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
export const percentage: z.ZodType<number> = parameterType(
  { type: 'number', exclusiveMinimum: 0, maximum: 100 },
  (input, issues) => {
    const number = numberOf(input, numberText);
    if (!Number.isFinite(number)) return refuse(issues, 'not_a_number', 'must be a decimal number');
    const isRounded = number === 100 && typeof input === 'string' && !hundredText.test(input);
    if (number <= 0 || number > 100 || isRounded)
      return refuse(issues, 'out_of_range', 'must be above 0 and at most 100');
    return number;
  },
);

/** An RFC 3339 datetime, as epoch ms. */
export const datetime: z.ZodType<number> = parameterType(
  { type: 'string', format: 'date-time', minLength: 20 },
  (input, issues) => {
    const instant = typeof input === 'string' ? parseDatetime(input) : null;
    if (instant === null || !isInstant(instant)) {
      return refuse(issues, 'not_a_datetime', 'must be an RFC 3339 datetime');
    }
    return instant;
  },
);

/** An instant in a response: an RFC 3339 datetime. */
export const instant = z.iso.datetime({ offset: true });

/** `true` or `false`. */
export const boolean: z.ZodType<boolean> = parameterType({ type: 'boolean' }, (input, issues) => {
  if (input === true || input === 'true') return true;
  if (input === false || input === 'false') return false;
  return refuse(issues, 'not_a_boolean', 'must be true or false');
});

/** One of several values. */
export function oneOf<Word extends string>(words: readonly Word[]): z.ZodType<Word> {
  return parameterType(
    { type: 'string', enum: [...words] },
    (input, issues) =>
      words.find((word) => word === input) ??
      refuse(issues, 'not_one_of', `must be one of ${words.join(', ')}`),
  );
}

/** A JSON list of any items: at least one, at most `maximum`. */
export function listOf(maximum: number): z.ZodType<readonly unknown[]> {
  return parameterType({ type: 'array', minItems: 1, maxItems: maximum }, (input, issues) => {
    if (!Array.isArray(input)) return refuse(issues, 'not_a_list', 'must be a list');
    if (input.length === 0) return refuse(issues, 'required', 'must have at least one item');
    if (input.length > maximum) return refuse(issues, 'too_long', `must have at most ${maximum} items`);
    return input;
  });
}

/** A JSON list of texts. */
export const texts: z.ZodType<readonly string[]> = parameterType(
  { type: 'array', items: { type: 'string', minLength: 1 } },
  (input, issues) => {
    const list = z.array(z.string().min(1).refine(isText)).safeParse(input);
    return list.success ? list.data : refuse(issues, 'not_a_list', 'must be a list of texts');
  },
);

/** A JSON list of enum values: at least one. */
export function someOf<Word extends string>(words: readonly Word[]): z.ZodType<readonly Word[]> {
  const schema: Schema = { type: 'array', items: { type: 'string', enum: [...words] }, minItems: 1 };
  return parameterType(schema, (input, issues) => {
    if (!Array.isArray(input)) return refuse(issues, 'not_a_list', 'must be a list of words');
    if (input.length === 0) return refuse(issues, 'required', 'must name at least one');
    const found = words.filter((word) => input.includes(word));
    return input.every((item) => words.some((word) => word === item))
      ? found
      : refuse(issues, 'not_one_of', `must hold only ${words.join(', ')}`);
  });
}

/** A parameter with a default. */
export function withDefault<Value extends string | number | boolean>(
  input: z.ZodType<Value>,
  value: Value,
): z.ZodType<Value> {
  const describe = ({ jsonSchema }: { jsonSchema: Record<string, unknown> }): void => {
    jsonSchema['default'] = value;
  };
  return input
    .optional()
    .transform((sent): Value => sent ?? value)
    .meta({ override: describe });
}

function numberOf(input: unknown, pattern: RegExp): number {
  if (typeof input === 'number') return input;
  return typeof input === 'string' && pattern.test(input) ? Number(input) : Number.NaN;
}
