import { posix, win32 } from 'node:path';
import { z } from 'zod';
import { isPipe, maxSocketLength } from '../domain/socket-path.ts';
import {
  formatAddress,
  formatDestination,
  isPlainToOthers,
  formatRange,
  parseAddress,
  parseDestination,
  parseHost,
  parseRange,
} from './value/address.ts';
import { formatDuration, formatSize, parseDuration, parseSize } from './value/unit.ts';
import { dayMs } from '../domain/time.ts';

/*
 * The types of single settings: codecs between the text of the file and the value that the program uses.
 * `z.encode` writes a value back as it would stand in the file.
 */

/** What `.meta()` says about a setting. */
export interface SettingMeta {
  readonly description?: string;
  /** What the value must be, as an error says it. */
  readonly expected?: string;
  /** What the number counts, or the units that it may be written with. */
  readonly unit?: string;
  /** Whether SIGHUP applies a change, or only the next start. Inherited from the section; default: `applies`. */
  readonly reload?: 'applies' | 'restart';
  /** How the reference describes a default that depends on the machine or on another setting. */
  readonly defaultText?: string;
  /** A relative path starts at the folder of the file that contains it. */
  readonly isPath?: true;
  /** Never shown; it can also stand in a file of its own, which the key with `_file` at its end names. */
  readonly isSecret?: true;
}

/** Durations are milliseconds; the name of a setting of this type ends in `Ms` inside the program. */
export type Milliseconds = number & z.$brand<'Milliseconds'>;

/** Node's timers fire at once when asked to wait longer than 2^31 - 1 ms; this is the limit in whole days. */
const longestWaitMs = 24 * dayMs;

/** Later than the year 9999 there is no datetime (RFC 3339). */
const longestDurationMs = 1_000_000 * dayMs;

export const mask = '***';

/** A secret that is never printed by accident: as text and as JSON it is `***`, and `inspect` does not show it. */
export class Secret {
  readonly #value: string;

  constructor(value: string) {
    this.#value = value;
  }

  reveal(): string {
    return this.#value;
  }

  toString(): string {
    return mask;
  }

  toJSON(): string {
    return mask;
  }
}

export const durationUnit = 'ms, s, m, h, d';

/** YAML is read without numbers, so that `0660` keeps its zero; flags and JSON may contain numbers. */
const written = z.union([z.string(), z.number()]);

/** A value that is written as text; `parse` returns undefined if the text is not valid. */
export function textual<T>(
  meta: SettingMeta & { readonly expected: string },
  parse: (text: string) => T | undefined,
  format: (value: T) => z.output<typeof written> = (value) => value as string,
) {
  const message = `must be ${meta.expected}`;
  const type = z.union(written.options, {
    error: (issue) => (issue.input === undefined ? 'is missing' : message),
  });
  return z
    .codec(type, z.custom<T>(), {
      decode: (input, context) => {
        const value = input === '' ? undefined : parse(String(input));
        if (value !== undefined) return value;
        context.issues.push({ code: 'custom', message, input: input });
        return z.NEVER;
      },
      encode: format,
    })
    .meta({ ...meta });
}

function numeric(expected: string, isValid: (number: number) => boolean) {
  return textual<number>(
    { expected },
    (text) => {
      const number = /^\d+(\.\d+)?(e\d{1,2})?$/i.test(text) ? Number(text) : Number.NaN;
      return isValid(number) ? number : undefined;
    },
    (number) => number,
  );
}

/** A setting that `false` switches off; the value is null then. */
export function orFalse<T extends z.ZodType>(type: T) {
  const expected = `${String(type.meta()?.['expected'])}, or false`;
  const off = z.codec(z.literal(false), z.null(), { decode: () => null, encode: () => false as const });
  return z.union([off, type], `must be ${expected}`).meta({ ...type.meta(), expected });
}

/** One value or a list of at most 8, which `false` switches off: inside the program a list, which is empty then. */
export function oneOrMoreOrFalse<T extends z.ZodType>(type: T) {
  const expected = `${String(type.meta()?.['expected'])}, or a list of at most 8 of them, or false`;
  const message = `must be ${expected}`;
  // The list comes first: the other types cannot encode a list, and would throw.
  const accepted = z.union([z.array(type).min(1, message).max(8, message), z.literal(false), type], message);
  return z
    .codec(accepted, z.custom<readonly z.output<T>[]>(), {
      decode: (value) => (value === false ? [] : ([value].flat() as z.output<T>[])),
      encode: (values) =>
        (values.length === 0 ? false : values.length === 1 ? values[0] : [...values]) as z.output<
          typeof accepted
        >,
    })
    .meta({ ...type.meta(), expected });
}

/** `null` means that the setting is not given, which is its default. */
export function optional<T extends z.ZodType>(type: T) {
  return type.nullable().prefault(null);
}

/** A section that `true` switches on, with its defaults. `false` is off, which is the default; the value is null then. */
export function onOrSection<T extends z.ZodType>(type: T) {
  return z
    .codec(z.unknown(), type.nullable(), {
      decode: (input) => (input === true ? {} : input === false ? null : input) as z.input<T>,
      encode: (value) => value,
    })
    .prefault(null);
}

/** A text that `false` switches off; the value is false then, because null means that the setting is not given. */
export function textOrFalse<T extends z.ZodType>(type: T) {
  const expected = `${String(type.meta()?.['expected'])}, or false`;
  return z.union([z.literal(false), type], `must be ${expected}`).meta({ ...type.meta(), expected });
}

export const text = textual({ expected: 'text (in quotes if it is true, false or null)' }, (input) => input);

export const productKey = textual({ expected: 'the key of the product, not a link to it' }, (input) =>
  /^\s*(?:https?:\/\/|www\.)/i.test(input) ? undefined : input,
);

/** One line of at most so many characters. */
export function shortText(maxLength: number) {
  return textual({ expected: `one line of at most ${maxLength} characters` }, (input) =>
    input.length <= maxLength && !/\p{Cc}/u.test(input) ? input : undefined,
  );
}

/** Relative paths are made absolute before they are parsed (file/configuration-file.ts), with the rules of their platform. */
function isAbsolute(path: string): boolean {
  return posix.isAbsolute(path) || win32.isAbsolute(path);
}

export const path = textual({ expected: 'a path', isPath: true }, (input) =>
  isAbsolute(input) ? input : undefined,
);

/** The limit of Linux. `checkSockets` (settings/listen.ts) knows the limits of other platforms. */
export const socketPath = textual({ expected: 'a path of at most 107 bytes', isPath: true }, (input) =>
  isAbsolute(input) && (isPipe(input) || Buffer.byteLength(input) <= maxSocketLength('linux'))
    ? input
    : undefined,
);

export const mode = textual(
  { expected: 'permission bits in octal, such as "0660"' },
  (input) => (/^(0|0o)?[0-7]{3}$/.test(input) ? Number.parseInt(input.replace('0o', ''), 8) : undefined),
  (bits) => bits.toString(8).padStart(4, '0'),
);

export const address = textual(
  { expected: 'host:port, such as 127.0.0.1:8787, with a port from 0 to 65535' },
  parseAddress,
  formatAddress,
);

export const destination = textual(
  { expected: 'an address or name, with or without a port, such as 203.0.113.7:443' },
  parseDestination,
  formatDestination,
);

export const addressRange = textual(
  { expected: 'an address or a range of addresses, such as 10.0.0.0/8 or 2001:db8::/32' },
  parseRange,
  formatRange,
);

export const host = textual({ expected: 'a host name or address, without scheme, port or path' }, parseHost);

export const origin = textual(
  {
    expected:
      'an origin such as https://app.example.com, app://name or "null" in quotes, without a path and never *',
  },
  parseOrigin,
);

export const headerName = textual({ expected: 'the name of an HTTP header' }, (input) =>
  /^[\w!#$%&'*+.^`|~-]+$/.test(input) ? input.toLowerCase() : undefined,
);

export const headerValue = textual({ expected: 'one line of visible ASCII' }, (input) =>
  isHeaderValue(input) ? input : undefined,
);

export const secret = textual(
  { expected: 'one line of visible ASCII', isSecret: true },
  (input) => (isHeaderValue(input) ? new Secret(input) : undefined),
  () => mask,
);

/** The key of a file that holds a secret. The secret replaces it before the settings are parsed (file/secret-file.ts). */
export function secretFile(key: string, meta: Pick<SettingMeta, 'reload'> = {}) {
  return path.optional().meta({ ...meta, description: `A file that contains \`${key}\`, and nothing else.` });
}

export const baseUrl = textual(
  {
    expected:
      'an http or https URL without user, query or fragment, and without a path of the API such as /api/v2 (it is appended)',
  },
  parseBaseUrl,
);

export const proxyUrl = textual({ expected: 'an http or https URL' }, parseProxyUrl, formatProxyUrl);

export const issuerUrl = textual(
  {
    expected: 'an https URL without user, query or fragment; http only for this machine',
  },
  parseIssuerUrl,
);

export const duration = textual(
  {
    expected: 'a duration, 0 or above, such as 500ms, 30s, 15m, 24h or 7d, at most 1000000d',
    unit: durationUnit,
  },
  (input) => {
    const durationMs = parseDuration(input);
    return durationMs !== undefined && durationMs <= longestDurationMs
      ? (durationMs as Milliseconds)
      : undefined;
  },
  formatDuration,
);

/** How long to wait: at most as long as a timer can run. */
export const wait = textual(
  {
    expected: 'a duration such as 500ms, 30s, 15m or 24h, above 0 and at most 24d',
    unit: durationUnit,
  },
  (input) => {
    const durationMs = parseDuration(input) ?? 0;
    return durationMs > 0 && durationMs <= longestWaitMs ? (durationMs as Milliseconds) : undefined;
  },
  formatDuration,
);

export const size = textual(
  { expected: 'a size above 0, such as 4096, 16KiB or 64MiB', unit: 'B, KiB, MiB, GiB' },
  (input) => {
    const bytes = parseSize(input) ?? 0;
    return bytes > 0 ? bytes : undefined;
  },
  formatSize,
);

export const count = numeric(
  'a whole number above 0',
  (number) => number > 0 && Number.isSafeInteger(number),
);
export const rate = numeric('a number above 0', (number) => number > 0);
export const rateOrZero = numeric('a number, 0 or above', (number) => number >= 0);

/** Whether a text can be sent as the value of a header without being changed. */
export function isHeaderValue(input: string): boolean {
  return /^[!-~]([ -~]*[!-~])?$/.test(input);
}

const pathOfApi = /\/(?:api\/v[12]|(?:admin|agent|hooks|lease|sync)\/v1)(?:\/|$)/;

function parseBaseUrl(input: string): string | undefined {
  const url = parsePlace(input);
  const base = url && withoutSlashes(url);
  return base !== undefined && pathOfApi.test(base) ? undefined : base;
}

/** A URL without user, query and fragment. */
function parsePlace(input: string): URL | undefined {
  const url = parseHttpUrl(input);
  if (url === undefined || url.username !== '' || url.password !== '' || /[?#]/.test(input)) return undefined;
  return url;
}

function withoutSlashes({ href }: URL): string {
  return href.replace(/(?<!\/)\/+$/, '');
}

/** The documents of leases contain the URL in this form. */
function parseIssuerUrl(input: string): string | undefined {
  const url = parsePlace(input);
  return url === undefined || isPlainToOthers(url) ? undefined : withoutSlashes(url);
}

/** An origin as browsers write it: in lower case, and without the default port of its scheme. */
function parseOrigin(input: string): string | undefined {
  if (input === 'null') return input;
  const found = /^[a-z][a-z0-9+.-]*:\/\/[^\s/?#@*]*(?=\/?$)/i.exec(input)?.[0].toLowerCase();
  if (found === undefined || !/^https?:/.test(found)) return found;
  return URL.parse(found)?.origin;
}

function parseProxyUrl(input: string): Secret | undefined {
  const url = parseHttpUrl(input);
  return url === undefined ? undefined : new Secret(url.href);
}

function formatProxyUrl(proxy: Secret): string {
  const url = new URL(proxy.reveal());
  if (url.username !== '') url.username = mask;
  if (url.password !== '') url.password = mask;
  return url.href;
}

function parseHttpUrl(input: string): URL | undefined {
  const url = URL.parse(input);
  return url?.protocol === 'http:' || url?.protocol === 'https:' ? url : undefined;
}
