import { isAbsolute } from 'node:path';
import { parseAddress, parseHost } from './address.ts';
import type { Address } from './configuration.ts';
import { Secret } from './secret.ts';
import { parseDuration, parseSize } from './unit.ts';

/** A sort of value: how it is read (`undefined`: it is not one), and what it is called in a fault. */
export interface Kind<T> {
  readonly expected: string;
  readonly parse: (input: unknown) => T | undefined;
}

/** Node's timers fire at once when asked to wait longer than 2^31 - 1 ms. */
const longestTimerMs = 24 * 86_400_000;

export const boolean: Kind<boolean> = {
  expected: 'true or false',
  parse: (input) => (typeof input === 'boolean' ? input : undefined),
};

/** Text; a number is read as the text that was written, `true` and `null` have to be quoted. */
export const text: Kind<string> = kindOfText(
  'text (in quotes if it is true, false or null)',
  (given) => given,
);

export const path: Kind<string> = kindOfText('a path', (given) => (isAbsolute(given) ? given : undefined));

/** The kernel's limit for the path of a Unix socket is 108 bytes with the closing zero. */
export const socketPath: Kind<string> = kindOfText('a path of at most 107 bytes', (given) =>
  isAbsolute(given) && Buffer.byteLength(given) <= 107 ? given : undefined,
);

/** Permission bits in octal, however they are quoted. */
export const mode: Kind<number> = kindOfText('permission bits in octal, such as "0660"', (given) =>
  /^(0|0o)?[0-7]{3}$/.test(given) ? Number.parseInt(given.replace('0o', ''), 8) : undefined,
);

export const address: Kind<Address> = kindOfText('host:port, such as 127.0.0.1:8787', parseAddress);

export const host: Kind<string> = kindOfText(
  'a host name or address, without scheme, port or path',
  parseHost,
);

export const headerName: Kind<string> = kindOfText('the name of an HTTP header', (given) =>
  /^[\w!#$%&'*+.^`|~-]+$/.test(given) ? given.toLowerCase() : undefined,
);

export const secret: Kind<Secret> = kindOfText('one line of visible ASCII', (given) =>
  isCredential(given) ? new Secret(given) : undefined,
);

/** Whether a text can be sent as the value of a header and arrive as it is. */
export function isCredential(given: string): boolean {
  return /^[!-~]([ -~]*[!-~])?$/.test(given);
}

export const baseUrl: Kind<string> = kindOfText(
  'an http or https address without user, query or fragment, and without /api/v2 (it is appended)',
  (given) => {
    const url = parseHttpUrl(given);
    if (url === undefined || url.username !== '' || url.password !== '' || /[?#]/.test(given))
      return undefined;
    const base = url.href.replace(/\/+$/, '');
    return base.endsWith('/api/v2') ? undefined : base;
  },
);

export const proxyUrl: Kind<Secret> = kindOfText('an http or https address', (given) => {
  const url = parseHttpUrl(given);
  return url === undefined ? undefined : new Secret(url.href);
});

/** How long something counts, in milliseconds. */
export const duration: Kind<number> = kindOfText(
  'a duration such as 500ms, 30s, 15m, 24h or 7d',
  parseDuration,
);

/** How long to wait for something, in milliseconds: above 0, and no longer than a timer can run. */
export const wait: Kind<number> = kindOfText(
  'a duration such as 500ms, 30s, 15m or 24h, above 0 and at most 24d',
  (given) => {
    const durationMs = parseDuration(given) ?? 0;
    return durationMs > 0 && durationMs <= longestTimerMs ? durationMs : undefined;
  },
);

export const size: Kind<number> = kindOfText('a size above 0, such as 4096, 16KiB or 64MiB', (given) => {
  const bytes = parseSize(given) ?? 0;
  return bytes > 0 ? bytes : undefined;
});

export const count: Kind<number> = kindOfNumber(
  'a whole number above 0',
  (given) => given > 0 && Number.isSafeInteger(given),
);

export const rate: Kind<number> = kindOfNumber('a number above 0', (given) => given > 0);

export const rateOrNone: Kind<number> = kindOfNumber('a number, 0 or above', (given) => given >= 0);

/** One of a few words. */
export function oneOf<const T extends string>(...words: readonly T[]): Kind<T> {
  return kindOfText(`one of ${words.join(', ')}`, (given) => words.find((word) => word === given));
}

/** A value that can be switched off by `false`. */
export function orFalse<T>(kind: Kind<T>): Kind<T | null> {
  return {
    expected: `${kind.expected}, or false`,
    parse: (input) => (input === false ? null : kind.parse(input)),
  };
}

/** A value that need not be given. */
export function orNull<T>(kind: Kind<T>): Kind<T | null> {
  return {
    expected: `${kind.expected}, or null`,
    parse: (input) => (input === null ? null : kind.parse(input)),
  };
}

function kindOfText<T>(expected: string, parse: (given: string) => T | undefined): Kind<T> {
  return {
    expected,
    parse: (input) => {
      const given = typeof input === 'number' ? String(input) : input;
      return typeof given === 'string' && given !== '' ? parse(given) : undefined;
    },
  };
}

function kindOfNumber(expected: string, holds: (given: number) => boolean): Kind<number> {
  return kindOfText(expected, (given) => {
    const number = /^\d+(\.\d+)?(e\d{1,2})?$/i.test(given) ? Number(given) : Number.NaN;
    return holds(number) ? number : undefined;
  });
}

function parseHttpUrl(given: string): URL | undefined {
  const url = URL.parse(given);
  return url?.protocol === 'http:' || url?.protocol === 'https:' ? url : undefined;
}
