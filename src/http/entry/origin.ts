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

/** What is for software, and so for pages that are trusted; never what is for people and probes. */
const openToPages = /^\/(?:api|agent)\//;

/** The answer's headers that a page may read. */
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

/** For how many seconds a browser need not ask again. */
const preflightAgeS = '600';

type PreflightParts = {
  /** The headers that carry a credential. */
  credentialNames: readonly string[];
  /** Makes what any other OPTIONS is refused with. */
  refuse: (request: FastifyRequest, reply: FastifyReply) => ProblemError;
};

/** Which web pages are answered: none but those of `listen.allowed_origins` (src/http/README.md, Web pages). */
export class Origins {
  readonly #allowed: readonly string[];

  constructor(allowed: readonly string[]) {
    this.#allowed = allowed;
  }

  /** Lets a request of a program pass, and one of an allowed page to a route that is open to it; throws for others. */
  admit({ origin: origins, referer }: Head, request: FastifyRequest, reply: FastifyReply): void {
    const isOpen = openToPages.test(request.routeOptions.url ?? '');
    // Also where there is no such route: a cache must not give a page what it kept of a program.
    const isOpenPath = isOpen || openToPages.test(request.url);
    if (isOpenPath && this.#allowed.length > 0) reply.header('Vary', 'Origin');
    const [origin, ...more] = origins;
    if (origin === undefined && referer.length === 0) return;
    if (!isOpen || origin === undefined || more.length > 0 || !this.#allowed.includes(origin)) {
      throw new ProblemError('origin_forbidden', 'Requests with Origin or Referer are not answered.');
    }
    reply.header('Access-Control-Allow-Origin', origin).header('Access-Control-Expose-Headers', readable);
  }

  /** Makes a server answer the preflights of allowed pages. */
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
