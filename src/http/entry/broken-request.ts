import { randomUUID } from 'node:crypto';
import { STATUS_CODES, type IncomingMessage, type ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import { problems, refuse, type ProblemCode } from '../../domain/problem.ts';
import { presentProblem } from '../wire/problem.ts';

/** The unanswered requests of each connection. */
const unanswered = new WeakMap<Duplex, Set<ServerResponse>>();

/** Remembers a request until it is answered. */
export function noteRequest({ socket }: IncomingMessage, response: ServerResponse): void {
  const waiting = unanswered.get(socket) ?? new Set();
  unanswered.set(socket, waiting.add(response));
  response.once('close', () => waiting.delete(response));
}

/**
 * Answers what Node's parser refuses (malformed bytes, headers too large, a timeout) and closes the connection.
 * Complete requests before it on the connection are answered first, or a caller would take this answer for theirs.
 */
export function answerBrokenRequest(error: Error & { code?: string }, socket: Duplex): void {
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy();
    return;
  }
  const whole = [...(unanswered.get(socket) ?? [])].findLast(({ req }) => req.complete);
  if (whole !== undefined) {
    // Responses are sent in the order of their requests, so the last one closes last.
    whole.once('close', () => answerBrokenRequest(error, socket));
    return;
  }
  const { code, detail } = brokenRequests[error.code ?? ''] ?? notHttp;
  endWithProblem(socket, code, detail);
}

const notHttp = { code: 'malformed_request', detail: 'This is not HTTP as it is spoken here.' } as const;

const brokenRequests: Readonly<Record<string, { code: ProblemCode; detail: string }>> = {
  ERR_HTTP_REQUEST_TIMEOUT: { code: 'request_timeout', detail: 'The request did not arrive in time.' },
  HPE_HEADER_OVERFLOW: {
    code: 'headers_too_large',
    detail: 'The request line and headers are larger than is taken here.',
  },
};

/** Refuses CONNECT: this is no proxy. */
export function refuseConnect(_: IncomingMessage, socket: Duplex): void {
  endWithProblem(socket, 'malformed_request', 'The target must be a path.');
}

function endWithProblem(socket: Duplex, code: ProblemCode, detail: string): void {
  const { status } = problems[code];
  const body = JSON.stringify(presentProblem(refuse(code, detail).problem, randomUUID().slice(0, 13)));
  const head = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}`,
    'Content-Type: application/problem+json',
    `Content-Length: ${Buffer.byteLength(body)}`,
    'Connection: close',
  ];
  socket.end(`${head.join('\r\n')}\r\n\r\n${body}`);
  socket.once('finish', () => socket.destroy());
}
