import type { FastifyRequest } from 'fastify';
import type { App } from './app.ts';
import { presentRequestLine } from './wire/log.ts';

/** Logs a change or a refusal; a successful read leaves no line. */
export function logAnswer(
  { log, now }: Pick<App, 'log' | 'now'>,
  request: FastifyRequest,
  { status, code }: { status: number; code: string | null },
): void {
  if (code === null && (request.method === 'GET' || request.method === 'HEAD')) return;
  const line = presentRequestLine({
    method: request.method,
    route: request.is404 ? null : (request.routeOptions.url ?? null),
    status,
    code,
    requestId: request.id,
    durationMs: request.state === null ? 0 : now() - request.state.startedAt,
  });
  if (code === null) log.info(line, 'changed');
  else if (status < 500) log.info(line, 'refused');
  else log.warn(line, 'refused');
}
