import type { IncomingMessage } from 'node:http';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { App, HttpLimits, ServerSettings } from '../app.ts';
import { readPairs } from './body.ts';
import type { Origins } from './origin.ts';
import { type Head, headReader } from './request-state.ts';
import { ProblemError } from '../problem-error.ts';
import type { RawParameters } from '../../wire/parameters.ts';

/** Makes the function that checks each request of a listener before its route (src/http/README.md, The gate). */
export function arrival(
  app: App,
  settings: ServerSettings,
  { names, origins }: { names: ServerSettings['headerAliases']; origins: Origins },
): (request: FastifyRequest, reply: FastifyReply) => void {
  const readHead = headReader(names);
  return (request, reply) => {
    const head = readHead(request.raw);
    checkTarget(request.raw, head, settings);
    origins.admit(head, request, reply);
    const query = readQuery(request.raw, head, settings.limits);
    if (head.instance.includes(app.instance)) {
      throw new ProblemError('loop_detected', 'The upstream of this agent leads to this agent itself.');
    }
    request.state = {
      head,
      query,
      principal: null,
      resolvedCredential: null,
      response: null,
      startedAt: app.now(),
    };
  };
}

/** A dot at the end marks a complete name: resolvers then do not try their search domains. */
const hostPattern =
  /^(?:\[(?<v6>[0-9a-f:.]+)\]|(?<name>[a-z0-9](?:[a-z0-9._-]*[a-z0-9])?)\.?)(?::\d{1,5})?$/i;
const loopbackPattern = /^(?:localhost|127(?:\.\d{1,3}){3}|::1)$/;
const targetPattern = /^\/[\x21\x22\x24-\x7e]*$/;

/** Throws a problem if a request is malformed or is for another server. */
export function checkTarget(message: IncomingMessage, head: Head, settings: ServerSettings): void {
  const { limits } = settings;
  // Node's parser also accepts a request line without a version (HTTP/0.9) and the text HTTP/2.0.
  if (!/^1\.[01]$/.test(message.httpVersion)) throw malformed('HTTP/1.1 is spoken here.');
  if (head.count > limits.headerCount) {
    throw new ProblemError('headers_too_large', `There are more than ${limits.headerCount} headers.`);
  }
  checkHost(head.host, settings);
  if (!isTarget(message.url ?? '')) throw malformed('The target must be a path.');
}

/** Reads the parameters of the query; throws a problem if the request is ambiguous. */
export function readQuery(message: IncomingMessage, head: Head, limits: HttpLimits): RawParameters {
  checkDuplicates(head);
  if (hasBody(message) && (message.method === 'GET' || message.method === 'HEAD')) {
    throw malformed(`A ${message.method} has no body here.`);
  }
  return queryOf(message.url ?? '', limits);
}

/** Whether a target is a path of printable characters, with or without a query. */
export function isTarget(target: string): boolean {
  return targetPattern.test(target);
}

/** Reads the parameters of a target; throws a problem if they cannot be read. */
export function queryOf(target: string, { parameters: maximum }: HttpLimits): RawParameters {
  const mark = target.indexOf('?');
  const query = mark === -1 ? '' : target.slice(mark + 1);
  return readPairs(query, { malformed: 'malformed_request', maximum });
}

function checkHost(hosts: readonly string[], { listener, allowedHosts }: ServerSettings): void {
  const [host] = hosts;
  const groups = host === undefined ? undefined : hostPattern.exec(host)?.groups;
  if (groups === undefined || hosts.length > 1) throw malformed('Exactly one well-formed Host is needed.');
  const name = (groups['v6'] ?? groups['name'] ?? '').toLowerCase();
  if (listener === 'socket' || loopbackPattern.test(name) || allowedHosts.includes(name)) return;
  throw new ProblemError('host_forbidden', 'This host is neither loopback nor in listen.allowed_hosts.');
}

function checkDuplicates({ contentType, areCredentialsDifferent }: Head): void {
  if (contentType.length > 1) throw malformed('Content-Type is sent twice.');
  if (areCredentialsDifferent) throw malformed('A header carries two different credentials.');
}

function hasBody({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] !== undefined || (headers['content-length'] ?? '0') !== '0';
}

function malformed(detail: string): ProblemError {
  return new ProblemError('malformed_request', detail);
}
