import { z } from 'zod';
import { isTooLongKey, maxLicenseKeyBytes, maxLicenseKeyLength, parseLicenseKey } from '../domain/license.ts';
import type { ParameterFault } from '../domain/problem/problem.ts';
import { maxFound, minSearched } from '../domain/search.ts';
import { isInstant, parseDatetime } from '../domain/time.ts';
import { camelCase, isLongerThan, type CamelCase } from '../domain/text.ts';
import { minSecretLength } from '../service/access/credential.ts';

/** Parameters as sent, by name; empty ones are left out. */
export type RawParameters = ReadonlyMap<string, unknown>;

/** The part of a map that is read. */
export type ParameterSource = { get(name: string): unknown; keys(): Iterable<string> };

export const noParameters: RawParameters = new Map();

/** The values, or the valid values and all errors. */
export type ParsedParameters<Values> =
  { ok: true; values: Values } | { ok: false; values: Partial<Values>; faults: readonly ParameterFault[] };

/** The values of a set of parameters. */
export type ValuesOf<Set> = Set extends ParameterSet<infer Values> ? Values : never;

/** The parameters of a request: `schema` for the documentation, `read` for the request. */
export type ParameterSet<Values> = {
  readonly schema: z.ZodObject;
  /** `within`: a prefix of the names in errors. */
  read(raw: ParameterSource, within?: string): ParsedParameters<Values>;
};

type CamelKeys<Values> = { [Name in keyof Values & string as CamelCase<Name>]: Values[Name] };

/**
 * Declares the parameters of a request under their names on the wire; inside the program, names are in camelCase.
 * `id` is the name of the schema in the OpenAPI document.
 */
export function parameters<Shape extends Readonly<Record<string, z.ZodType>>>(
  shape: Shape,
  { unknown = 'ignored', id }: { unknown?: 'ignored' | 'refused'; id?: string } = {},
): ParameterSet<CamelKeys<z.output<z.ZodObject<Shape>>>> {
  type Values = CamelKeys<z.output<z.ZodObject<Shape>>>;
  const object = unknown === 'refused' ? z.strictObject(shape) : z.object(shape);
  const fields = Object.entries(shape).map(([name, type]) => ({ name, key: camelCase(name), type }));
  return {
    schema: object.meta(id === undefined ? {} : { id }),
    // Field by field: `safeParse` of the object gives no values if one field fails, and the route checks the others.
    read(raw, within = '') {
      const values: Record<string, unknown> = {};
      const faults: ParameterFault[] = [];
      for (const { name, key, type } of fields) {
        const input = raw.get(name);
        const result = type.safeParse(input);
        if (result.success) values[key] = result.data;
        else faults.push(parameterFault(`${within}${name}`, input, result.error));
      }
      if (unknown === 'refused') faults.push(...unknownFaults(raw, shape, within));
      // Each value is the output of its type; the compiler cannot follow this through the loop.
      if (faults.length === 0) return { ok: true, values: values as Values };
      return { ok: false, values: values as Partial<Values>, faults };
    },
  };
}

function parameterFault(parameter: string, input: unknown, { issues: [issue] }: z.ZodError): ParameterFault {
  if (input === undefined) return { parameter, code: 'required', detail: `${parameter} is required.` };
  const [, code = 'malformed', sentence = 'is malformed'] = /^(\w+): (.*)$/s.exec(issue?.message ?? '') ?? [];
  return { parameter, code, detail: `${parameter} ${sentence}.` };
}

/** A row of an import may have hundreds of thousands of unknown members. */
const maximumUnknown = 32;

function unknownFaults(raw: ParameterSource, shape: object, within: string): ParameterFault[] {
  const faults: ParameterFault[] = [];
  for (const name of raw.keys()) {
    if (Object.hasOwn(shape, name)) continue;
    // The name comes from the caller and can be long.
    const parameter = `${within}${name.slice(0, 64).toWellFormed()}`;
    faults.push({ parameter, code: 'unknown', detail: 'There is no such parameter.' });
    if (faults.length === maximumUnknown) break;
  }
  return faults;
}

/** All parameters except one. */
export function without(raw: ParameterSource, name: string): ParameterSource {
  const others = [...raw.keys()].filter((each) => each !== name);
  return new Map(others.map((each) => [each, raw.get(each)]));
}

/*
 * The types of parameters. Each accepts the text of a form and the values of JSON. The message of an error is its code,
 * a colon, and a sentence that continues after the name of the parameter.
 */

/** `\0` and broken surrogates cannot be stored as they are. */
function isText(input: string): boolean {
  return input.isWellFormed() && !input.includes('\0');
}

/** Text with a minimum and a maximum length. */
export function text(maximum = 16_384, minimum = 1): z.ZodString {
  return z
    .string('not_text: must be text')
    .refine(isText, { error: 'not_text: must be text', abort: true })
    .refine((input) => input !== '', { error: 'required: must not be empty', abort: true })
    .min(minimum, { error: `too_short: must have at least ${minimum} characters`, abort: true })
    .refine((input) => !isLongerThan(input, maximum), {
      error: `too_long: must have at most ${maximum} characters`,
      abort: true,
    })
    .meta({ maxLength: maximum });
}

/** A display name. */
export const name = text(200);

/** The id of a product, an account, a coupon code or another thing of the catalogue. */
export const identifier = text(100);

/** The id of a new thing. Clients remove `.` and `..` from paths. */
export const newIdentifier = identifier
  .refine((input) => input !== '.' && input !== '..', 'malformed: must not be . or ..')
  .meta({ pattern: String.raw`^(?!\.{1,2}$)` });

/** An e-mail address to filter by. */
export const emailFilter = text(320).trim().normalize('NFC');

/** A part of one of these texts of a record, in any letter case. A masked key is sent as it is shown, with `…`. */
export function searchText(...texts: readonly string[]) {
  return text(320)
    .normalize('NFC')
    .transform((input) => input.trim().replace(/^…/, ''))
    .refine(
      (input) => Array.from(input).length >= minSearched,
      `too_short: must have at least ${minSearched} characters`,
    )
    .meta({ minLength: minSearched, maxLength: 320 })
    .describe(
      `A part of the ${texts.join(' or the ')}, in any letter case. Of a list of more than ${maxFound} records, the length is not counted.`,
    );
}

/** Characters beyond ASCII, except control characters, white space and invisible characters. */
const internationalLetter = /[^\0-\x7f\p{C}\p{Z}]/gu;

/**
 * An e-mail address, as browsers accept it in a form (WHATWG HTML, valid e-mail address), or an international
 * address (RFC 6531).
 */
export const email = emailFilter
  .refine(
    (input) => z.regexes.html5Email.test(input.replaceAll(internationalLetter, 'x')),
    'not_an_email: must be an e-mail address',
  )
  .meta({ format: 'idn-email' });

/** An API key or a product's secret that an existing store issued. */
export const secret = text(200, minSecretLength).regex(
  /^[!-~]([ -~]*[!-~])?$/,
  'malformed: must be one line of visible ASCII, as a header can carry it',
);

/** Text that matches a pattern. */
export function textMatching(pattern: RegExp, maximum: number, message: string): z.ZodString {
  const error = `malformed: ${message}`;
  return z
    .string(error)
    .refine((input) => input.isWellFormed() && !isLongerThan(input, maximum) && pattern.test(input), error)
    .meta({ minLength: 1, maxLength: maximum, pattern: portable(pattern) });
}

/** A pattern that all languages understand: some do not support Unicode classes. */
function portable({ source }: RegExp): string {
  const controls = String.raw`\x00-\x1f\x7f-\x9f`;
  return source.replaceAll(String.raw`\P{Cc}`, `[^${controls}]`).replaceAll(String.raw`\p{Cc}`, controls);
}

/** An integer, as decimal digits or as a JSON number. */
export function integer(minimum: number, maximum: number = Number.MAX_SAFE_INTEGER) {
  const range = maximum === Number.MAX_SAFE_INTEGER ? `${minimum} or more` : `from ${minimum} to ${maximum}`;
  const expected = minimum === Number.MIN_SAFE_INTEGER ? 'an integer' : `an integer, ${range}`;
  const outOfRange = `out_of_range: must be ${range}`;
  return z.preprocess(
    numberIn(/^-?\d{1,16}$/),
    z.int(`not_an_integer: must be ${expected}`).min(minimum, outOfRange).max(maximum, outOfRange),
  );
}

/** Includes small numbers as JSON writes them (`1e-7`): values from a response or an export can be sent as text. */
const numberText = /^-?\d{1,24}(?:\.\d{1,24})?(?:e-\d{1,3})?$/;

/** A hundred as text: 100.00000000000000001 is not 100, although the number is rounded to 100. */
const hundredText = /^0*100(?:\.0+)?$/;

const notAPercentage = 'out_of_range: must be above 0 and at most 100';

/** A percentage above 0, at most 100 (specification 2.1). */
export const percentage = z.preprocess(
  (input) => {
    const number = numberIn(numberText)(input);
    const isRounded = number === 100 && typeof input === 'string' && !hundredText.test(input);
    return isRounded ? 101 : number;
  },
  z.number('not_a_number: must be a decimal number').gt(0, notAPercentage).max(100, notAPercentage),
);

function numberIn(pattern: RegExp): (input: unknown) => unknown {
  return (input) => (typeof input === 'string' && pattern.test(input) ? Number(input) : input);
}

/** Text that stands for an instant, as epoch ms; `parse` returns null for other text. */
export function instantText(
  parse: (input: string) => number | null,
  error: string,
  schema: Readonly<Record<string, unknown>>,
) {
  return z
    .string(error)
    .meta(schema)
    .transform(parse)
    .refine((input): input is number => input !== null && isInstant(input), error);
}

/** An RFC 3339 datetime, as epoch ms. */
export const datetime = instantText(parseDatetime, 'not_a_datetime: must be an RFC 3339 datetime', {
  format: 'date-time',
  minLength: 20,
});

/** An instant in a response: an RFC 3339 datetime. */
export const instant = z.iso.datetime({ offset: true });

const booleans: ReadonlyMap<unknown, boolean> = new Map([
  ['true', true],
  ['false', false],
]);

/** `true` or `false`. */
export const boolean = z.preprocess(
  (input) => booleans.get(input) ?? input,
  z.boolean('not_a_boolean: must be true or false'),
);

/** One of several values. */
export function oneOf<Word extends string>(words: readonly Word[]) {
  return z.enum(words, `not_one_of: must be one of ${words.join(', ')}`);
}

/** A JSON list of any items: at least one, at most `maximum`. */
export function listOf(maximum: number) {
  return z
    .array(z.unknown(), 'not_a_list: must be a list')
    .min(1, 'required: must have at least one item')
    .max(maximum, `too_long: must have at most ${maximum} items`);
}

const notTexts = 'not_a_list: must be a list of texts';

/** A JSON list of texts. */
export const texts = z.array(z.string(notTexts).min(1, notTexts).refine(isText, notTexts), notTexts);

/** A JSON list of enum values: at least one. */
export function someOf<Word extends string>(words: readonly Word[]) {
  return z
    .array(
      z.enum(words, `not_one_of: must hold only ${words.join(', ')}`),
      'not_a_list: must be a list of words',
    )
    .min(1, 'required: must name at least one')
    .transform((input): readonly Word[] => words.filter((word) => input.includes(word)));
}

const notBlank = text()
  .refine((input) => input.trim() !== '', 'required: is required')
  .meta({ pattern: String.raw`\S` });

/**
 * A license key in its stored form. White space alone counts as missing. Only the limits of a request limit its length: a
 * store may have keys of any length.
 */
export const licenseKeyText = notBlank
  .meta({ override: ({ jsonSchema }) => delete jsonSchema.maxLength })
  .transform((input) => parseLicenseKey(input) ?? input);

/** A license key that is issued or imported. */
export const newLicenseKey = notBlank
  .refine(
    (input) => !isTooLongKey(input),
    `too_long: must have at most ${maxLicenseKeyLength} characters and ${maxLicenseKeyBytes} bytes`,
  )
  .meta({ maxLength: maxLicenseKeyLength })
  .transform((input) => parseLicenseKey(input) ?? input);
