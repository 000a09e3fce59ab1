import { Readable } from 'node:stream';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { ProblemCode } from '../../domain/problem/problem-table.ts';
import type { HttpLimits } from '../app.ts';
import { ProblemError } from '../problem-error.ts';
import { CsvUnreadable, readCsv, separatorFault, type CsvRow, type ToColumns } from '../../wire/bulk/csv.ts';
import { CsvRows, maximumRows } from '../../wire/bulk/import.ts';
import { noParameters, type RawParameters } from '../../wire/parameters.ts';

const form = 'application/x-www-form-urlencoded';
const json = 'application/json';
const csv = 'text/csv';
const isJson = /^\s*application\/json\s*(?:;|$)/i;
const utf8 = new TextDecoder('utf-8', { fatal: true });

/**
 * Makes a server accept forms, JSON objects, CSV if the route accepts CSV, and nothing else (src/http/README.md, Bodies
 * and responses). A parser does not throw, because fastify then closes the connection, and with it other requests of the
 * client. Instead the error becomes the body, and the route throws it.
 */
export function readBodies(server: FastifyInstance, { parameters: maximum }: HttpLimits): void {
  server.removeAllContentTypeParsers();
  for (const type of [form, json]) {
    server.addContentTypeParser(type, { parseAs: 'buffer' }, (request, body: Buffer, done) => {
      let read: RawParameters | Error;
      try {
        read = readParameters(request.headers['content-type'] ?? '', body, maximum);
      } catch (error) {
        read = error as Error;
      }
      done(null, read);
    });
  }
  acceptCsv(server);
}

/** Reads a body that is a form or a JSON object; throws a problem if it is neither. */
export function readParameters(contentType: string, body: Buffer, maximum: number): RawParameters {
  refuseForeignCharset(contentType);
  const text = decodeText(body);
  if (text === '') return noParameters;
  return isJson.test(contentType)
    ? readJson(text, maximum)
    : readPairs(text, { malformed: 'malformed_body', maximum });
}

/** Reads CSV if the route accepts CSV. The rows become one member of the body. */
function acceptCsv(server: FastifyInstance): void {
  server.addContentTypeParser(csv, { parseAs: 'buffer' }, async (request: FastifyRequest, body: Buffer) => {
    const { csvMember } = request.routeOptions.config;
    try {
      if (csvMember === undefined) throw new ProblemError('unsupported_media_type', 'CSV is not read here.');
      refuseForeignCharset(request.headers['content-type'] ?? '');
      const rows: CsvRow[] = [];
      let header: readonly string[] = [];
      const toColumns: ToColumns = (names) => {
        const fault = separatorFault(names);
        if (fault !== null) throw new CsvUnreadable(fault);
        header = names;
        return names;
      };
      for await (const more of readCsv(Readable.from([body]), toColumns)) {
        for (const row of more) rows.push(row);
        // The route refuses more rows, so the rest need not be read.
        if (rows.length > maximumRows) break;
      }
      return new Map([[csvMember, new CsvRows(header, rows)]]);
    } catch (error) {
      return error instanceof CsvUnreadable ? new ProblemError('malformed_body', error.message) : error;
    }
  });
}

function refuseForeignCharset(contentType: string): void {
  const charset = /;\s*charset\s*=\s*"?([^\s";]*)/i.exec(contentType)?.[1]?.toLowerCase();
  if (charset === undefined || charset === 'utf-8' || charset === 'utf8' || charset === 'us-ascii') return;
  throw new ProblemError('unsupported_media_type', 'Bodies are read as UTF-8 only.');
}

function decodeText(body: Buffer): string {
  try {
    return utf8.decode(body);
  } catch {
    throw new ProblemError('malformed_body', 'The body is not UTF-8.');
  }
}

/** Reads a JSON object. A member that is null counts as not sent. */
export function readJson(text: string, maximum: number): RawParameters {
  const value = parseJson(text);
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new ProblemError('malformed_body', 'The body must be a JSON object.');
  }
  if (countMembers(value) !== countNames(text)) refuseDuplicateMembers(text);
  if (Object.keys(value).length > maximum) throw tooMany(maximum);
  return new Map(Object.entries(value).filter(([, member]) => member !== null));
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new ProblemError('malformed_body', 'The body is not JSON.');
  }
}

/** Counts the members of all objects in a parsed JSON value. A text with a repeated name has more names than this. */
function countMembers(value: object): number {
  let count = 0;
  const left: object[] = [value];
  for (let each = left.pop(); each !== undefined; each = left.pop()) {
    const members: unknown[] = Object.values(each);
    if (!Array.isArray(each)) count += members.length;
    for (const member of members) if (typeof member === 'object' && member !== null) left.push(member);
  }
  return count;
}

const [quote, backslash, colon] = [0x22, 0x5c, 0x3a];

/** Counts the names of members in a valid JSON text. */
function countNames(text: string): number {
  let count = 0;
  let isInString = false;
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code === quote) isInString = !isInString;
    else if (code === backslash) at += 1;
    else if (code === colon && !isInString) count += 1;
  }
  return count;
}

/** Refuses a repeated member, of which JSON.parse silently keeps the last; `text` must be valid JSON. */
function refuseDuplicateMembers(text: string): void {
  /** The names in each open object; the set of an open array stays empty. */
  const open: Set<string>[] = [];
  let string = { start: 0, end: 0 };
  let isInString = false;
  // The pattern matches no whole string: V8's stack would overflow on a string of several MiB.
  for (const { 0: token, index } of text.matchAll(/\\.|["{}[\]:]/g)) {
    if (token === '"') {
      string = isInString ? { ...string, end: index + 1 } : { start: index, end: 0 };
      isInString = !isInString;
    } else if (isInString) continue;
    else if (token === '{' || token === '[') open.push(new Set());
    else if (token === '}' || token === ']') open.pop();
    else {
      const name = String(JSON.parse(text.slice(string.start, string.end)));
      const names = open.at(-1);
      if (names?.has(name) === true) throw duplicate(name);
      names?.add(name);
    }
  }
}

/** The maximum number of pairs, and the code of the problem if a pair is malformed. */
export type PairsLimits = {
  malformed: Extract<ProblemCode, 'malformed_body' | 'malformed_request'>;
  maximum: number;
};

/**
 * Reads `name=value&…` (application/x-www-form-urlencoded), strictly: broken percent-encoding, invalid
 * UTF-8, a repeated name and too many names are refused. An empty value counts as not sent.
 */
export function readPairs(text: string, { malformed, maximum }: PairsLimits): RawParameters {
  const parameters = new Map<string, string>();
  if (text === '') return parameters;
  for (const pair of text.split('&')) {
    if (pair === '') continue;
    const equals = pair.indexOf('=');
    const name = decode(equals === -1 ? pair : pair.slice(0, equals), malformed);
    const value = equals === -1 ? '' : decode(pair.slice(equals + 1), malformed);
    if (parameters.has(name)) throw duplicate(name);
    parameters.set(name, value);
    if (parameters.size > maximum) throw tooMany(maximum);
  }
  for (const [name, value] of parameters) if (value === '') parameters.delete(name);
  return parameters;
}

function decode(text: string, malformed: PairsLimits['malformed']): string {
  if (!text.includes('%') && !text.includes('+')) return text;
  try {
    return decodeURIComponent(text.replaceAll('+', ' '));
  } catch {
    throw new ProblemError(malformed, 'The percent-encoding of a parameter cannot be read.');
  }
}

/** The problem of a parameter that is sent twice. A long name is cut. */
export function duplicate(name: string): ProblemError {
  return new ProblemError(
    'duplicate_parameter',
    `${name.slice(0, 64).toWellFormed()} is given more than once.`,
  );
}

/** The problem of a request with more parameters than `limits.parameters`. */
export function tooMany(maximum: number): ProblemError {
  return new ProblemError('malformed_request', `There are more than ${maximum} parameters.`);
}
