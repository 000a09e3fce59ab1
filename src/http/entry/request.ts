import { hash } from 'node:crypto';
import type { Socket } from 'node:net';
import type { FastifyReply, FastifyRequest, FastifyInstance } from 'fastify';
import type { Principal } from '../../domain/access/principal.ts';
import { done, type ParameterFault, failWithFaults, type Result } from '../../domain/problem/problem.ts';
import type { App, HttpLimits, ServerSettings } from '../app.ts';
import { checkOwner } from '../tenant.ts';
import { connectionName, readWait, stateOf } from './request-state.ts';
import { type Connections, requesterOf } from './connections.ts';
import { idempotencyOf } from './idempotency.ts';
import { nameByLicense } from './admission.ts';
import { ProblemError } from '../problem-error.ts';
import type { Route, RouteRequest } from '../route.ts';
import {
  noParameters,
  type ParameterSet,
  type ParsedParameters,
  type RawParameters,
} from '../../wire/parameters.ts';
import { tcpAddress } from '../../wire/proof.ts';
import type { ProblemCode } from '../../domain/problem/problem-table.ts';

type AnyRequest = RouteRequest<string, Principal | null, unknown, unknown>;

/** Parses a request for its route; refuses with all faults of its parameters at once. */
export async function readRequest(
  route: Route,
  {
    app,
    settings,
    routes,
    connections,
  }: { app: App; settings: ServerSettings; routes: readonly Route[]; connections: Connections },
  reply: FastifyReply,
): Promise<Result<AnyRequest>> {
  const { request } = reply;
  const state = stateOf(request);
  const { mask } = state;
  const sentPath = namesIn(request.params as Readonly<Record<string, string>>);
  const named = mask?.unmaskPath(sentPath) ?? sentPath;
  const query = read(route.query, mask?.unmaskQuery(state.query) ?? state.query);
  const body = read(route.body, bodyOf(route, request));
  nameByLicense(app, state, [body.values, query.values, { licenseKey: named['key'] }]);
  const { principal } = state;
  const faults = [
    ...faultsOf(query),
    ...faultsOf(body),
    ...(principal === null ? [] : ((await route.faults?.(app, principal, body.values, query.values)) ?? [])),
  ];
  if (faults.length > 0) return failWithFaults(faults);
  if (principal !== null && route.owned !== undefined) {
    const refusal = await checkOwner(app, principal, route.owned, named['id'] ?? '');
    if (refusal !== null) return refusal;
  }
  const path = pathOf(request.url);
  const waitMs = readWait(state.head.prefer);
  const { remoteAddress = 'socket' } = request.raw.socket;
  const clientAddress =
    settings.public?.proxies.clientOf(remoteAddress, state.head.forwardedFor) ?? remoteAddress;
  return done({
    app,
    routes,
    reachedAt: () =>
      settings.public === undefined ? (settings.socketAddress?.() ?? tcpAddressOf(request.raw.socket)) : null,
    clientAddress,
    connection: connectionName(request.raw.socket),
    ...callerOf(request),
    principal,
    path: named,
    query: query.values,
    body: body.values,
    bodyDigest: state.bodyDigest,
    searchedKeys: mask === null ? 'anywhere' : 'shown',
    sentTo: { path, query: state.query },
    writeOptions: {
      actor: principal?.credential ?? null,
      requestId: request.id,
      idempotency: idempotencyOf(route, app, request, [path, query.values, body.values]),
    },
    waitMs,
    ifNoneMatch: () => request.headers['if-none-match'] ?? '',
    isAgent: state.head.instance.length > 0,
    signal: connections.signalFor(reply.raw, requesterOf(app, route, { principal, waitMs, clientAddress })),
  });
}

function callerOf({ headers }: FastifyRequest): Pick<AnyRequest, 'authorization' | 'userAgent'> {
  return { authorization: headers.authorization ?? '', userAgent: headers['user-agent'] ?? null };
}

function tcpAddressOf({ localAddress, localPort, remoteAddress, remotePort }: Socket): string {
  return tcpAddress({ host: localAddress, port: localPort }, { host: remoteAddress, port: remotePort });
}

/** The path of a target as the router reads it: without a query, doubled slashes and a slash at its end. */
export function pathOf(target: string): string {
  const [path = ''] = target.split('?', 1);
  const single = path.replaceAll(/\/{2,}/g, '/');
  return single.length > 1 && single.endsWith('/') ? single.slice(0, -1) : single;
}

/** The parameters of a path. No stored name contains `\0`, and some databases refuse to look it up. */
function namesIn(params: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  const entries = Object.entries(params);
  return Object.fromEntries(entries.map(([name, value]) => [name, value.includes('\0') ? '' : value]));
}

function read(set: ParameterSet<unknown> | undefined, raw: RawParameters): ParsedParameters<unknown> {
  return set === undefined ? { ok: true, values: null } : set.read(raw);
}

function faultsOf(parsed: ParsedParameters<unknown>): readonly ParameterFault[] {
  return parsed.ok ? [] : parsed.faults;
}

/** The parameters of the body; of the query too if the route allows that. Throws the problem of an unreadable body. */
function bodyOf({ isBodyInQuery }: Route, request: FastifyRequest): RawParameters {
  if (request.body instanceof Error) throw request.body;
  const body: RawParameters = request.body instanceof Map ? request.body : noParameters;
  if (isBodyInQuery !== true) return body;
  const { query } = stateOf(request);
  const different = [...body].find(([name, value]) => query.has(name) && query.get(name) !== value);
  if (different !== undefined) throw duplicate(different[0]);
  return new Map([...query, ...body]);
}

export const form = 'application/x-www-form-urlencoded';
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
    server.addContentTypeParser(type, { parseAs: 'buffer' }, (request, body: Buffer, callback) => {
      let result: RawParameters | Error;
      try {
        const { route } = request.routeOptions.config;
        if (route?.takesDocument === true) throw onlyDocuments();
        if (route?.digestsBody === true) stateOf(request).bodyDigest = hash('sha256', body);
        result = readParameters(request.headers['content-type'] ?? '', body, maximum);
      } catch (error) {
        result = error as Error;
      }
      callback(null, result);
    });
  }
  acceptCsv(server);
}

/** The problem of a body of another type where a signed document is expected. */
export function onlyDocuments(): ProblemError {
  return new ProblemError('unsupported_media_type', 'Send application/jwt.');
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

/** Reads CSV if the route accepts CSV. */
function acceptCsv(server: FastifyInstance): void {
  server.addContentTypeParser(csv, { parseAs: 'buffer' }, async (request: FastifyRequest, body: Buffer) => {
    const { route } = request.routeOptions.config;
    try {
      if (route?.readCsv === undefined)
        throw new ProblemError('unsupported_media_type', 'CSV is not read here.');
      refuseForeignCharset(request.headers['content-type'] ?? '');
      return await route.readCsv(body, stateOf(request));
    } catch (error) {
      return error;
    }
  });
}

function refuseForeignCharset(contentType: string): void {
  const charset = /;\s*charset\s*=\s*"?([^\s";]*)/i.exec(contentType)?.[1]?.toLowerCase();
  if (charset === undefined || charset === 'utf-8' || charset === 'utf8' || charset === 'us-ascii') return;
  throw new ProblemError('unsupported_media_type', 'Bodies are read as UTF-8 only.');
}

/** The text of a body. */
export function decodeText(body: Buffer): string {
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
type PairsLimits = {
  malformed: Extract<ProblemCode, 'malformed_body' | 'malformed_request'>;
  maximum: number;
};

/**
 * Reads `name=value&…` (application/x-www-form-urlencoded), strictly: broken percent-encoding, invalid
 * UTF-8, a repeated name and too many names are refused. An empty value counts as not sent.
 */
export function readPairs(text: string, { malformed, maximum }: PairsLimits): RawParameters {
  if (text === '') return noParameters;
  const parameters = new Map<string, string>();
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
function duplicate(name: string): ProblemError {
  const detail = `${name.slice(0, 64).toWellFormed()} is given more than once.`;
  return new ProblemError('duplicate_parameter', detail);
}

/** The problem of a request with more parameters than `limits.parameters`. */
export function tooMany(maximum: number): ProblemError {
  return new ProblemError('malformed_request', `There are more than ${maximum} parameters.`);
}

/** Makes a server read signed documents, at the routes that take one: as the parameter `document`. */
export function readDocuments(server: FastifyInstance): void {
  server.addContentTypeParser('application/jwt', { parseAs: 'buffer' }, (request, body: Buffer, callback) => {
    try {
      if (request.routeOptions.config.route?.takesDocument !== true) {
        throw new ProblemError('unsupported_media_type', 'Signed documents are not read here.');
      }
      callback(null, new Map([['document', decodeText(body)]]));
    } catch (error) {
      callback(null, error);
    }
  });
}

/** Adds a route that gets each body as it was sent, of whatever type, with its headers: as the parameter `event`. */
export function receiveEvents(server: FastifyInstance, addRoute: (scope: FastifyInstance) => void): void {
  server.register((scope, _, ready) => {
    scope.removeAllContentTypeParsers();
    // Fastify refuses a Content-Type that is no media type before it looks for a parser.
    scope.addHook('onRequest', ({ headers }, _reply, next) => {
      delete headers['content-type'];
      next();
    });
    scope.addContentTypeParser('*', { parseAs: 'buffer' }, ({ headers }, body: Buffer, callback) => {
      callback(null, new Map([['event', { body, headers }]]));
    });
    addRoute(scope);
    ready();
  });
}
