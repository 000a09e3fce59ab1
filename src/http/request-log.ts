import type { FastifyRequest } from 'fastify';
import type { Log } from '../service/ports.ts';
import type { App } from './app.ts';
import { serializeRequestLine, type RequestLine } from '../wire/log.ts';

/** Logs an answered request as `logRequest` does. */
export function logResponse(
  { log, now }: Pick<App, 'log' | 'now'>,
  request: FastifyRequest,
  { status, code }: Pick<RequestLine, 'status' | 'code'>,
): void {
  logRequest(log, {
    method: request.method,
    route: request.is404 ? null : (request.routeOptions.url ?? null),
    status,
    code,
    requestId: request.id,
    durationMs: request.state === null ? 0 : now() - request.state.startedAt,
  });
}

/** Logs a change or a refusal; a successful read leaves no line. */
export function logRequest(log: Log, request: RequestLine): void {
  const { method, status, code } = request;
  if (code === null && (method === 'GET' || method === 'HEAD')) return;
  const line = serializeRequestLine(request);
  if (code === null) log.info(line, 'changed');
  else if (status < 500) log.info(line, 'refused');
  else log.warn(line, 'refused');
}
