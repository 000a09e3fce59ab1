import type { FastifyRequest } from 'fastify';
import { TokenBucket, type Rate } from '../../domain/token-bucket.ts';
import type { Log } from '../../service/ports.ts';
import type { App } from '../app.ts';

/** The fields of the log line of a request: never a license key, a secret or a query. */
type RequestLine = {
  /** Null if the request could not be parsed; the route is also null if no route matches. */
  method: string | null;
  route: string | null;
  status: number;
  code: string | null;
  requestId: string;
  durationMs: number;
};

/** Logs a request with its response. */
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
export function logRequest(log: Log, { requestId, durationMs, ...same }: RequestLine): void {
  const { method, status, code } = same;
  if (code === null && (method === 'GET' || method === 'HEAD')) return;
  const line = { ...same, request_id: requestId, duration_ms: durationMs };
  if (code === null) log.info(line, 'changed');
  else if (status < 500) log.info(line, 'refused');
  else log.warn(line, 'refused');
}

/** Logs an unexpected error of a request. */
export function logError(log: Log, requestId: string, error: unknown): void {
  log.error({ request_id: requestId, err: error }, 'a request failed unexpectedly');
}

/** How many refusals are logged: anybody on the internet can send requests to the public listener. */
const rate: Rate = { perSecond: 1, burst: 30 };

/**
 * The log of a public listener: refused requests get at most one line a second in the long run. A line has the number of
 * refusals before it that were left out (`unlogged`). All other lines are written.
 *
 * @param now The time in epoch ms.
 */
export function quietLog(log: Log, now: () => number): Log {
  const bucket = new TokenBucket();
  let unlogged = 0;
  return {
    debug: (fields, message) => log.debug(fields, message),
    warn: (fields, message) => log.warn(fields, message),
    error: (fields, message) => log.error(fields, message),
    info(fields, message) {
      if (message !== 'refused') {
        log.info(fields, message);
        return;
      }
      if (bucket.take(rate, now()) > 0) {
        unlogged += 1;
        return;
      }
      log.info(unlogged === 0 ? fields : { ...fields, unlogged }, message);
      unlogged = 0;
    },
  };
}
