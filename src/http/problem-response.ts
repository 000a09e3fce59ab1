import type { IncomingMessage, ServerResponse } from 'node:http';
import type { FastifyContextConfig, FastifyReply, FastifyRequest } from 'fastify';
import { instanceHeader } from '../domain/header-names.ts';
import type { ProblemCode } from '../domain/problem/problem-table.ts';
import { type Problem, failWith } from '../domain/problem/problem.ts';
import type { App } from './app.ts';
import { type RefusalForm, specification } from './dialects.ts';
import { challenge } from './entry/admission.ts';
import { isClosing } from './entry/connections.ts';
import { logError, logResponse } from './entry/request-log.ts';
import { onlyDocuments, pathOf } from './entry/request.ts';
import { ProblemError } from './problem-error.ts';
import { StorageError, type StorageFault } from '../service/ports.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Closes the connection instead of sending a refusal without a verdict (`listen.unknown`). */
    hangUp?: (response: ServerResponse) => void;
  }
}

/** Sends a problem (RFC 9457), or the refusal of the dialect. */
export function sendProblem(app: App, reply: FastifyReply, problem: Problem): FastifyReply {
  const { request } = reply;
  const refusal = refusalFormFor(app, request);
  const { status, body } = refusal.present(problem, request.id);
  logResponse(app, request, { status, code: problem.code });
  reply.code(status).headers(refusalHeaders(problem, waitSeconds(problem, status, request)));
  const hangUp = hangUpFor(request);
  const isHidden = refusal.isHidden?.(problem) ?? hidesVerdict(status);
  if (isHidden && hangUp !== undefined) {
    reply.hijack();
    hangUp(reply.raw);
    return reply;
  }
  // Needed only if the caller closes the connection: on others, Node discards the rest of the body.
  if (!request.raw.complete && !reply.raw.shouldKeepAlive && problem.code !== 'request_timeout') {
    closeAfterBody(request.raw, reply.server.server.requestTimeout);
  }
  return reply.type(refusal.mediaType).send(Buffer.from(JSON.stringify(body)));
}

/** The form of the refusal of a request. */
export function refusalFormFor({ dialect }: Pick<App, 'dialect'>, request: FastifyRequest): RefusalForm {
  if (acceptsProblem(request)) return specification.refusal;
  const { route } = request.routeOptions.config;
  return route?.refusal ?? (isForSoftware(request) ? dialect : specification).refusal;
}

/** The headers of a problem. */
function refusalHeaders({ code }: Problem, retryAfterS: number | null): Record<string, string> {
  const challenged = challenge(code);
  return {
    ...(challenged !== null && { 'WWW-Authenticate': challenged }),
    ...(retryAfterS !== null && { 'Retry-After': String(retryAfterS) }),
    ...(code === 'draining' && { Connection: 'close' }),
  };
}

/**
 * When to try again, in seconds: with 503 always. But a 503 about one license key must not hold back everything else that an
 * agent sends here: an agent has its own backoff.
 */
function waitSeconds(problem: Problem, status: number, request: FastifyRequest): number | null {
  if (problem.retryAfterS !== undefined) return problem.retryAfterS;
  return status === 503 && !isAgent(request) ? 1 : null;
}

/** Another agent sends `Latchkey-Instance`. */
function isAgent({ headers }: FastifyRequest): boolean {
  return headers[instanceHeader.toLowerCase()] !== undefined;
}

/** Routes under `/api` have the dialect of a store. All other routes are Latchkey's own. */
function isForSoftware({ routeOptions, url }: FastifyRequest): boolean {
  return /^\/api(?:\/|$)/.test(routeOptions.url ?? pathOf(url));
}

/** A caller that accepts the media type of problems gets a problem in every dialect. */
function acceptsProblem(request: FastifyRequest): boolean {
  return accepts(request, specification.refusal.mediaType);
}

/** Whether a refusal says nothing about the license key: a 408 or 429 is only about the caller or a slow machine. */
export function hidesVerdict(status: number): boolean {
  return status >= 500 || status === 408 || status === 429;
}

/** Closes the connection instead of a refusal without a verdict; undefined: send the refusal. */
export function hangUpFor(request: FastifyRequest): FastifyContextConfig['hangUp'] {
  // Another agent understands problems, also `loop_detected`.
  return acceptsProblem(request) || isAgent(request) ? undefined : request.routeOptions.config.hangUp;
}

/** Sends the problem of an error. */
export function sendError(app: App, error: unknown, reply: FastifyReply): FastifyReply {
  const { id, routeOptions } = reply.request;
  const isForeign = codeOf(error) === foreignType;
  const problem =
    (isForeign ? foreignTypeProblem(routeOptions.config) : null) ??
    problemOf(app, error, { id, hasLeft: reply.raw.destroyed });
  // Fastify would close the connection, and a client that is still sending would not get the response.
  const staysOpen = reply.raw.shouldKeepAlive && !isClosing(reply.raw);
  if (problem.code === 'body_too_large' && staysOpen) reply.removeHeader('connection');
  return sendProblem(app, reply, problem);
}

/** The problem of an error; an unexpected error is logged and not disclosed. `hasLeft`: the caller disconnected. */
export function problemOf(
  { log }: Pick<App, 'log'>,
  error: unknown,
  { id, hasLeft }: { id: string; hasLeft: boolean },
): Problem {
  const problem = knownProblem(error) ?? (hasLeft ? callerLeft : null);
  if (problem !== null) return problem;
  logError(log, id, error);
  return unexpected;
}

const unexpected = failWith('internal_error', 'The log says more, under the request id.').problem;
/** For the log only: the caller disconnected, which is the usual cause of an error at this point. */
const callerLeft = failWith('malformed_request', 'The caller left before the answer.').problem;

const foreignType = 'FST_ERR_CTP_INVALID_MEDIA_TYPE';

/** The problem of a body whose type the route does not read; null: the usual problem. */
function foreignTypeProblem({ route }: FastifyContextConfig): Problem | null {
  if (route?.takesDocument === true) return onlyDocuments().problem;
  return route?.readCsv === undefined ? null : foreignImport;
}

const foreignImport = failWith('unsupported_media_type', 'Send application/json or text/csv.').problem;

const frameworkProblems: Readonly<Record<string, { code: ProblemCode; detail: string }>> = {
  FST_ERR_CTP_BODY_TOO_LARGE: { code: 'body_too_large', detail: 'The body is larger than is taken here.' },
  [foreignType]: {
    code: 'unsupported_media_type',
    detail: 'Send application/x-www-form-urlencoded or application/json.',
  },
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: {
    code: 'malformed_body',
    detail: 'The body is not as long as Content-Length says.',
  },
  FST_ERR_BAD_URL: { code: 'malformed_request', detail: 'The path cannot be decoded.' },
  FST_ERR_MAX_PARAM_LENGTH: { code: 'route_not_found', detail: 'There is nothing at this path.' },
  FST_ERR_NOT_FOUND: { code: 'route_not_found', detail: 'There is nothing at this path.' },
};

const mayBeDone = 'It may have been carried out, or not.';

const storageProblems: Readonly<Record<StorageFault, Problem>> = {
  full: failWith('storage_full', 'Nothing was changed; reading goes on.').problem,
  failed: failWith('storage_failed', 'Nothing was changed.').problem,
  commit_failed: failWith('storage_failed', mayBeDone).problem,
  unavailable: failWith('storage_unavailable', 'Nothing was changed.').problem,
  // The request may have changed something before this read.
  unreadable: failWith('storage_unavailable', 'The storage cannot be read now.').problem,
  unknown: failWith('outcome_unknown', mayBeDone).problem,
};

function knownProblem(error: unknown): Problem | null {
  if (error instanceof ProblemError) return error.problem;
  if (error instanceof StorageError) return storageProblems[error.fault];
  const problem = frameworkProblems[codeOf(error)];
  return problem === undefined ? null : failWith(problem.code, problem.detail).problem;
}

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : '';
}

/** Whether a request accepts a media type by name (RFC 9110, 12.5.1): wildcards do not count, and `q=0` refuses it. */
export function accepts(
  { headers: { accept = '' } }: Pick<FastifyRequest, 'headers'>,
  mediaType: string,
): boolean {
  return accept.split(',').some((range) => {
    const [name, ...parameters] = range.split(';').map((part) => part.trim().toLowerCase());
    return name === mediaType && !parameters.some((parameter) => /^q=0(?:\.0*)?$/.test(parameter));
  });
}

/**
 * Closes the connection only after the rest of the body was read: a client that is still sending would see a broken
 * connection instead of the response (RFC 9112, 9.6). `timeoutMs`: the longest time without data.
 */
export function closeAfterBody(request: IncomingMessage, timeoutMs: number): void {
  const { socket } = request;
  const close = socket.destroySoon.bind(socket);
  // Node calls this after the last response of a connection.
  socket.destroySoon = () => {
    if (request.complete) {
      close();
      return;
    }
    socket.end();
    socket.setTimeout(timeoutMs);
    request.once('end', close);
  };
}
