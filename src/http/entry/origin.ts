import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import {
  idempotencyKeyHeader,
  instanceHeader,
  provenanceHeaderNames,
  requestIdHeader,
} from '../../domain/header-names.ts';
import { ProblemError } from '../problem-error.ts';
import type { Route } from '../route.ts';
import { closeBehind } from './connections.ts';
import type { Head } from './request-state.ts';

/** The routes for software, which allowed pages may call. Pages cannot call the routes for people and probes. */
const openToPages = /^\/(?:api|agent)\//;

/** The response headers that a page may read. */
const readable = [
  instanceHeader,
  requestIdHeader,
  ...Object.values(provenanceHeaderNames),
  'Age',
  'Cache-Status',
  'Link',
  'Location',
  'Retry-After',
  'X-Total-Count',
].join(', ');

/** For how many seconds a browser may cache a preflight. */
const preflightAgeS = '600';

type PreflightParts = {
  /** The headers that carry a credential. */
  credentialNames: readonly string[];
  /** Makes the problem for an OPTIONS request that is no preflight. */
  refuse: (request: FastifyRequest, reply: FastifyReply) => ProblemError;
};

/** Answers requests of web pages only if their origin is in `listen.allowed_origins` (src/http/README.md, Web pages). */
export class Origins {
  readonly #allowed: readonly string[];

  constructor(allowed: readonly string[]) {
    this.#allowed = allowed;
  }

  /** Accepts requests of programs, and requests of allowed pages to routes for software; throws a problem for others. */
  admit({ origin: origins, referer }: Head, request: FastifyRequest, reply: FastifyReply): void {
    const isOpen = openToPages.test(request.routeOptions.url ?? '');
    // Also if no route matches: a cache must not give a page a response that it stored for a program.
    const isOpenPath = isOpen || openToPages.test(request.url);
    if (isOpenPath && this.#allowed.length > 0) reply.header('Vary', 'Origin');
    const [origin, ...more] = origins;
    if (origin === undefined && referer.length === 0) return;
    if (!isOpen || origin === undefined || more.length > 0 || !this.#allowed.includes(origin)) {
      throw new ProblemError('origin_forbidden', 'Requests with Origin or Referer are not answered.');
    }
    reply.header('Access-Control-Allow-Origin', origin).header('Access-Control-Expose-Headers', readable);
  }

  /** Makes a server answer preflights of allowed pages (`admit` has checked the origin). */
  answerPreflights(
    server: FastifyInstance,
    routes: readonly Route[],
    { credentialNames, refuse }: PreflightParts,
  ): void {
    if (this.#allowed.length === 0) return;
    const paths = new Set(routes.map(({ path }) => path).filter((path) => openToPages.test(path)));
    const headers = [
      'Content-Type',
      idempotencyKeyHeader,
      requestIdHeader,
      'Prefer',
      ...credentialNames,
    ].join(', ');
    for (const path of paths) {
      const methods = routes.filter((route) => route.path === path).map(({ method }) => method);
      server.options(path, (request, reply) => {
        const { origin, 'access-control-request-method': wanted } = request.headers;
        if (origin === undefined || wanted === undefined) throw refuse(request, reply);
        reply
          .code(204)
          .header('Access-Control-Allow-Methods', methods.join(', '))
          .header('Access-Control-Allow-Headers', headers)
          .header('Access-Control-Max-Age', preflightAgeS);
        return closeBehind(reply).send();
      });
    }
  }
}
