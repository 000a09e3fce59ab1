import { unescape } from 'node:querystring';
import { stripVTControlCharacters } from 'node:util';
import { maskedKey } from '../domain/license.ts';

/**
 * Hides in a text what another person must not see: the given secrets, and what looks like a secret, a license key, an
 * e-mail address or the path of a web address.
 */
export function masked(text: string, secrets: readonly string[] = []): string {
  const known = secrets.flatMap(formsOf).filter(({ length }) => length > 3);
  const longestFirst = known.toSorted((one, other) => other.length - one.length);
  return longestFirst
    .reduce((rest, secret) => rest.replaceAll(secret, '***'), text)
    .replaceAll(address, maskedAddress)
    .replaceAll(header, '$1***')
    .replaceAll(credential, '$1 ***')
    .replaceAll(namedSecret, '$1***')
    .replaceAll(wordOfEmail, (found) => (email.test(found) ? '(e-mail address)' : found))
    .replaceAll(tokenWithPrefix, '***')
    .replaceAll(licenseKey, maskedKey)
    .replaceAll(base64, (found) => (found.length >= 60 && isRandom(found) ? maskedKey(found) : found))
    .replaceAll(word, maskedWord);
}

/** A secret, its form in an address and in JSON, and the password in it if it is an address itself. */
function formsOf(secret: string): readonly string[] {
  const password = URL.parse(secret)?.password ?? '';
  const unquoted = JSON.stringify(secret).slice(1, -1);
  return [secret, encodeURIComponent(secret), unquoted, password, unescape(password)];
}

/** An address after its scheme, also in JSON that writes `\/`. */
const address = /:(?:\\?\/){2}[^\s"<>`]*/g;
const header = /\b((?:authorization|cookie)\\?["']?: ?\\?["']?)[^"'\r\n]+/gi;
const credential = /\b(Bearer|Basic) {1,9}["']?[^\s"']+/gi;
/** `password=…`, `"token":"…"`, `X-Api-Key: …`; not the names of settings and files, such as `upstream.api_key`. */
const namedSecret =
  /(?<![\w./\\-])([\w-]{0,40}(?:password|passwd|secret|token|api[_-]?key|licen[cs]e[_-]?key)\\?["']?[=:] ?\\?["']?)[^\s"'&;,\\]+/gi;
const wordOfEmail = /[^\s*"'`<>()[\]{},;:=|&?/\\“”„]+/g;
const email = /.(?:[@＠]|%40)./;
const tokenWithPrefix = /(?<![A-Za-z\d])(?:lks?_|[rs]k_|whsec_|eyJ)[\w.~+/=-]{0,4096}[\w=]/g;
/** Latchkey's keys, also without dashes, and those of most stores: groups of capital letters and digits. */
const licenseKey =
  /[A-HJ-NP-Za-hj-np-z2-9]{5}(?:-[A-HJ-NP-Za-hj-np-z2-9]{5}){3}|(?<![A-Za-z\d])[A-HJ-NP-Z2-9]{5}(?:[ _]?[A-HJ-NP-Z2-9]{5}){3}(?![A-Za-z\d])|(?<![A-Za-z\d-])[A-Z\d]{4,12}(?:[-\u2010-\u2015][A-Z\d]{4,12}){2,9}(?![A-Za-z\d-])/g;
const base64 = /[A-Za-z\d+/]+/g;
const word = /[\w%+~-]+/g;
const shortestToken = 24;
/** The id of an operation (UUID of version 7). Some stores have license keys that are UUIDs of version 4. */
const operationId = /^[\da-f]{8}-[\da-f]{4}-7[\da-f]{3}-[\da-f]{4}-[\da-f]{12}$/i;

/** An address without user, password and query, and on the web without its path, which may be a secret. */
function maskedAddress(found: string, offset: number, text: string): string {
  const scheme = /[a-z]{1,10}$/i.exec(text.slice(Math.max(0, offset - 10), offset))?.[0] ?? '';
  const start = found.indexOf('/', found.indexOf('/') + 1) + 1;
  const at = found.lastIndexOf('@');
  const place = found.slice(Math.max(start, at + 1));
  const end = place.search(/^(?:http|ws)s?$/i.test(scheme) ? /[/\\?#]/ : /[?#]/);
  const user = at === -1 ? '' : '***@';
  return `${found.slice(0, start)}${user}${end === -1 ? place : `${place.slice(0, end + 1)}…`}`;
}

/** Masks a token. A part of a path is a token only without dashes, as in names of files with their date. */
function maskedWord(found: string, offset: number, text: string): string {
  const isInPath = /[/\\]/.test(text.charAt(offset - 1));
  const isToken = found.length >= shortestToken && !(isInPath && /[^A-Za-z\d]/.test(found));
  return isToken && isRandom(found) ? maskedKey(found) : found;
}

function isRandom(text: string): boolean {
  return /\d/.test(text) && /[a-z]/i.test(text) && !operationId.test(text);
}

/** The fields of the log that say nothing about people. */
const logFields: ReadonlySet<string> = new Set(
  `time level msg part code status state method route duration_ms wait_ms operation operations kind license attempt
  error err type message stack cause request_id role version tcp other_tcp socket public signal changed restart hint
  product file unlogged act reason issuer since at node`.split(/\s+/),
);

const maxLineLength = 2_000;

/** The last lines of a log, as JSON or for people, also with colors or with what a service manager writes before them. */
export function maskedLog(text: string, count: number, secrets: readonly string[]): readonly string[] {
  // PowerShell writes UTF-16.
  const lines = stripVTControlCharacters(text.replaceAll('\0', '')).split(/\r?\n/);
  return withKnownFields(lines)
    .slice(-count)
    .map((line) => masked(line, secrets))
    .map((line) => (line.length > maxLineLength ? `${line.slice(0, maxLineLength)}…` : line));
}

/** In a log for people, a field is a line that is indented, and its value may go on in the next lines. */
function withKnownFields(lines: readonly string[]): readonly string[] {
  // The first lines may be the rest of a field.
  let isKnown = false;
  return lines.flatMap((line) => {
    if (line.trim() === '') return [];
    const start = line.search(/\{ ?"/);
    if (start !== -1) return [knownFieldsOf(line.slice(start))];
    const field = /[ \t]{2}"?(\w{1,40})"?: /.exec(line)?.[1];
    if (field !== undefined) isKnown = logFields.has(field);
    else if (!/^\s| {4}/.test(line)) isKnown = true;
    return isKnown ? [line] : [];
  });
}

function knownFieldsOf(json: string): string {
  try {
    const fields = JSON.parse(json) as Readonly<Record<string, unknown>>;
    return JSON.stringify(Object.fromEntries(Object.entries(fields).filter(([name]) => logFields.has(name))));
  } catch {
    return '(a line that is not complete)';
  }
}
