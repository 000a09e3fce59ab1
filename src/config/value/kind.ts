import { isAbsolute } from 'node:path';
import {
  type Address,
  type Destination,
  formatAddress,
  formatDestination,
  parseAddress,
  parseDestination,
  parseHost,
} from './address.ts';
import { mask, Secret } from './secret.ts';
import { formatDuration, formatSize, parseDuration, parseSize } from './unit.ts';

/** A kind of value: how it is called in a fault, read (`undefined`: it is not one) and written. */
export interface Kind<T> {
  readonly expected: string;
  /** What a number of it counts, where the kind decides that. */
  readonly unit?: string;
  parse(input: unknown): T | undefined;
  /** Writes a value as in the file; what is secret of it as `***`. */
  show(value: T): unknown;
}

/** What the values of each kind are inside. Durations are milliseconds, sizes bytes. */
export interface KindTypes {
  boolean: boolean;
  text: string;
  path: string;
  socketPath: string;
  mode: number;
  address: Address;
  destination: Destination;
  host: string;
  origin: string;
  headerName: string;
  headerValue: string;
  secret: Secret;
  baseUrl: string;
  proxyUrl: Secret;
  duration: number;
  wait: number;
  size: number;
  count: number;
  rate: number;
  rateOrNone: number;
}

/** In whole days: Node's timers fire at once when asked to wait longer than 2^31 - 1 ms. */
const longestWaitMs = 24 * 86_400_000;

/** What is further away than the year 9999 has no datetime (RFC 3339). */
const longestDurationMs = 1_000_000 * 86_400_000;

const durationUnit = 'ms, s, m, h, d';

/** All kinds by name. */
export const kinds: { readonly [Name in keyof KindTypes]: Kind<KindTypes[Name]> } = {
  boolean: {
    expected: 'true or false',
    parse: (input) => (typeof input === 'boolean' ? input : undefined),
    show: (value) => value,
  },
  // A number is read as the text that was written.
  text: textual('text (in quotes if it is true, false or null)', (given) => given),
  path: textual('a path', (given) => (isAbsolute(given) ? given : undefined)),
  // The kernel's limit for the path of a Unix socket is 108 bytes with the closing zero.
  socketPath: textual('a path of at most 107 bytes', (given) =>
    isAbsolute(given) && Buffer.byteLength(given) <= 107 ? given : undefined,
  ),
  // Permission bits, however they are quoted.
  mode: {
    ...textual('permission bits in octal, such as "0660"', (given) =>
      /^(0|0o)?[0-7]{3}$/.test(given) ? Number.parseInt(given.replace('0o', ''), 8) : undefined,
    ),
    show: (bits) => bits.toString(8).padStart(4, '0'),
  },
  address: {
    ...textual('host:port, such as 127.0.0.1:8787, with a port from 0 to 65535', parseAddress),
    show: formatAddress,
  },
  destination: {
    ...textual('an address or name, with a port or without, such as 203.0.113.7:443', parseDestination),
    show: formatDestination,
  },
  host: textual('a host name or address, without scheme, port or path', parseHost),
  origin: textual(
    'an origin such as https://app.example.com, app://name or "null" in quotes, without a path and never *',
    parseOrigin,
  ),
  headerName: textual('the name of an HTTP header', (given) =>
    /^[\w!#$%&'*+.^`|~-]+$/.test(given) ? given.toLowerCase() : undefined,
  ),
  headerValue: textual('one line of visible ASCII', (given) => (isCredential(given) ? given : undefined)),
  secret: {
    ...textual('one line of visible ASCII', (given) => (isCredential(given) ? new Secret(given) : undefined)),
    show: () => mask,
  },
  baseUrl: textual(
    'an http or https URL without user, query or fragment, and without /api/v2 (it is appended)',
    parseBaseUrl,
  ),
  proxyUrl: { ...textual('an http or https URL', parseProxyUrl), show: showProxyUrl },
  // How long something counts.
  duration: {
    ...textual('a duration, 0 or above, such as 500ms, 30s, 15m, 24h or 7d, at most 1000000d', (given) => {
      const durationMs = parseDuration(given);
      return durationMs !== undefined && durationMs <= longestDurationMs ? durationMs : undefined;
    }),
    unit: durationUnit,
    show: formatDuration,
  },
  // How long to wait for something: no longer than a timer can run.
  wait: {
    ...textual('a duration such as 500ms, 30s, 15m or 24h, above 0 and at most 24d', (given) => {
      const durationMs = parseDuration(given) ?? 0;
      return durationMs > 0 && durationMs <= longestWaitMs ? durationMs : undefined;
    }),
    unit: durationUnit,
    show: formatDuration,
  },
  size: {
    ...textual('a size above 0, such as 4096, 16KiB or 64MiB', (given) => {
      const bytes = parseSize(given) ?? 0;
      return bytes > 0 ? bytes : undefined;
    }),
    unit: 'B, KiB, MiB, GiB',
    show: formatSize,
  },
  count: numeric('a whole number above 0', (given) => given > 0 && Number.isSafeInteger(given)),
  rate: numeric('a number above 0', (given) => given > 0),
  rateOrNone: numeric('a number, 0 or above', (given) => given >= 0),
};

/** One of a few words. */
export function oneOf(words: readonly string[]): Kind<string> {
  return textual(`one of ${words.join(', ')}`, (given) => words.find((word) => word === given));
}

/** A value that can be switched off by `false`. */
export function orFalse<T>(kind: Kind<T>): Kind<T | null> {
  return {
    expected: `${kind.expected}, or false`,
    parse: (input) => (input === false ? null : kind.parse(input)),
    show: (value) => (value === null ? false : kind.show(value)),
  };
}

/** A value that need not be given. */
export function orNull<T>(kind: Kind<T>): Kind<T | null> {
  return {
    expected: `${kind.expected}, or null`,
    parse: (input) => (input === null ? null : kind.parse(input)),
    show: (value) => (value === null ? null : kind.show(value)),
  };
}

/** Whether a text can be sent as the value of a header and arrive as it is. */
export function isCredential(given: string): boolean {
  return /^[!-~]([ -~]*[!-~])?$/.test(given);
}

function textual<T>(expected: string, parse: (given: string) => T | undefined): Kind<T> {
  return {
    expected,
    parse: (input) => {
      const given = typeof input === 'number' ? String(input) : input;
      return typeof given === 'string' && given !== '' ? parse(given) : undefined;
    },
    show: (value) => value,
  };
}

function numeric(expected: string, holds: (given: number) => boolean): Kind<number> {
  return textual(expected, (given) => {
    const number = /^\d+(\.\d+)?(e\d{1,2})?$/i.test(given) ? Number(given) : Number.NaN;
    return holds(number) ? number : undefined;
  });
}

function parseBaseUrl(given: string): string | undefined {
  const url = parseHttpUrl(given);
  if (url === undefined || url.username !== '' || url.password !== '' || /[?#]/.test(given)) return undefined;
  const base = url.href.replace(/(?<!\/)\/+$/, '');
  return base.endsWith('/api/v2') ? undefined : base;
}

/** An origin as browsers write it: in lower case, and without the port that its scheme has anyway. */
function parseOrigin(given: string): string | undefined {
  if (given === 'null') return given;
  const origin = /^[a-z][a-z0-9+.-]*:\/\/[^\s/?#@*]*(?=\/?$)/i.exec(given)?.[0].toLowerCase();
  if (origin === undefined || !/^https?:/.test(origin)) return origin;
  return URL.parse(origin)?.origin;
}

function parseProxyUrl(given: string): Secret | undefined {
  const url = parseHttpUrl(given);
  return url === undefined ? undefined : new Secret(url.href);
}

function showProxyUrl(proxy: Secret): string {
  const url = new URL(proxy.reveal());
  if (url.username !== '') url.username = mask;
  if (url.password !== '') url.password = mask;
  return url.href;
}

function parseHttpUrl(given: string): URL | undefined {
  const url = URL.parse(given);
  return url?.protocol === 'http:' || url?.protocol === 'https:' ? url : undefined;
}
