import { containsGenerated, shownCharacters, shownPart } from '../domain/license.ts';

/**
 * Hides in a text what another person must not see: the given secrets, and what looks like a secret, a license key, an
 * e-mail address or the path of a web address.
 */
export function masked(text: string, secrets: readonly string[] = []): string {
  const known = secrets.filter(({ length }) => length > 3);
  const longestFirst = known.toSorted((one, other) => other.length - one.length);
  return longestFirst
    .reduce((rest, secret) => rest.replaceAll(secret, '***'), text)
    .replaceAll(/\b(Bearer|Basic) [^\s"']+/gi, '$1 ***')
    .replaceAll(/[^\s"'<>()[\]{},;]+/g, maskedWord);
}

function maskedWord(word: string): string {
  const [scheme = '', ...rest] = word.split('://');
  if (rest.length > 0) return `${scheme}://${maskedAddress(scheme, rest.join('://'))}`;
  return word.replaceAll(/[^=:|&?]+/g, maskedPart);
}

/** An address without the user and the password, and on the web without its path, which may be a secret. */
function maskedAddress(scheme: string, rest: string): string {
  const at = rest.lastIndexOf('@');
  const user = at === -1 ? '' : '***@';
  const place = rest.slice(at + 1);
  const end = place.search(/[/?#]/);
  return end === -1 || (!scheme.endsWith('http') && !scheme.endsWith('https'))
    ? user + place
    : `${user}${place.slice(0, end)}/…`;
}

/** An operation, a request or an instance: no secret. */
const uuid = /^[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}$/i;
const prefixes = ['lk_', 'lks_', 'whsec_', 'eyJ'];
/** The license keys of most stores: groups of letters and digits. */
const groups = /^[A-Z\d]{4,12}(?:-[A-Z\d]{4,12}){2,9}$/;
const shortestToken = 24;

function maskedPart(part: string): string {
  const bare = part.endsWith('.') ? part.slice(0, -1) : part;
  const end = part.slice(bare.length);
  if (prefixes.some((prefix) => bare.startsWith(prefix))) return `***${end}`;
  if (isEmail(bare)) return `(e-mail address)${end}`;
  const isToken =
    bare.length >= shortestToken && /^[\w-]+$/.test(bare) && /\d/.test(bare) && /[a-z]/i.test(bare);
  const isSecret = isToken || groups.test(bare) || containsGenerated.test(bare);
  return isSecret && !uuid.test(bare) ? shortened(bare) + end : part;
}

/** Paths of packages also have an `@`. */
function isEmail(text: string): boolean {
  const at = text.lastIndexOf('@');
  return at > 0 && at < text.length - 1 && !/[/\\]/.test(text.slice(at - 1)) && text[at - 1] !== '*';
}

/** The end of a license key, as pages show it. */
function shortened(licenseKey: string): string {
  const shown = Math.min(shownCharacters, Math.floor(licenseKey.length / shownPart));
  return `…${licenseKey.slice(licenseKey.length - shown)}`;
}

/** The fields of the log that say nothing about people. */
const logFields: ReadonlySet<string> = new Set(
  `time level msg part code status state method route duration_ms wait_ms operation operations kind license attempt
  error err type message stack cause request_id role version tcp other_tcp socket public signal changed restart hint
  product file unlogged act reason issuer since at node`.split(/\s+/),
);

/** The lines of a log, as JSON or for people, also with what a service manager writes before them. */
export function maskedLog(text: string, secrets: readonly string[]): readonly string[] {
  return text
    .split(/\r?\n/)
    .map(withFieldsOnly)
    .filter((line) => line.trim() !== '')
    .map((line) => masked(line, secrets));
}

function withFieldsOnly(line: string): string {
  const start = line.indexOf('{"');
  if (start === -1) {
    const [, field = ''] = /^\s+(\w+): /.exec(line) ?? [];
    return field === '' || logFields.has(field) ? line : '';
  }
  try {
    const fields = JSON.parse(line.slice(start)) as Readonly<Record<string, unknown>>;
    return JSON.stringify(Object.fromEntries(Object.entries(fields).filter(([name]) => logFields.has(name))));
  } catch {
    return '(a line that is not complete)';
  }
}
