import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { closeAfter } from '../../../http/entry/connections.ts';
import { ProblemError } from '../../../http/problem-error.ts';
import type { ConsoleFiles } from './files.ts';
import type { PageHost, UnknownRoute, WebPage } from '../../../http/web-page.ts';
import { admitSession, checkFetchSite, consoleFileRoute, isFromConsole } from './access.ts';

/** Allows scripts and styles of this server, and no markup that a script makes from text. */
const policy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "frame-ancestors 'none'",
  "base-uri 'none'",
  "form-action 'none'",
  "require-trusted-types-for 'script'",
].join('; ');

const types: Readonly<Record<string, string>> = {
  css: 'text/css; charset=utf-8',
  html: 'text/html; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
};

const pageName = 'index.html';

export const consolePage: WebPage = {
  // Only listeners on loopback addresses serve it.
  isServedAt: ({ servesPages }) => servesPages === true,
  addTo: addConsole,
  hasSent: isFromConsole,
  admit: admitSession,
};

/** Adds the page of the console, and masks license keys for its read-only sessions (../page/README.md). */
function addConsole(server: FastifyInstance, { unknownRoute }: PageHost): void {
  addPage(server, unknownRoute);
  server.addHook('onSend', async (request, reply, payload) => {
    const mask = request.state?.mask ?? null;
    return mask === null ? payload : mask.maskReply(reply, payload);
  });
}

function addPage(server: FastifyInstance, unknownRoute: UnknownRoute): void {
  let files: Promise<() => Promise<ConsoleFiles>> | null = null;
  const read = async (name: string): Promise<string | undefined> => {
    // Loaded at the first request: most processes serve no page.
    files ??= import('./files.ts').then(({ consoleFiles }) => consoleFiles());
    return (await (await files)()).get(name);
  };
  server.get('/console', async (request, reply) => {
    checkNavigation(request);
    const page = await read(pageName);
    if (page === undefined) throw unknownRoute(request, reply);
    return send(reply.header('Cache-Control', 'no-cache'), pageName, page);
  });
  server.get<{ Params: { file: string } }>(consoleFileRoute, async (request, reply) => {
    checkFetchSite(request);
    const { file } = request.params;
    const content = file === pageName ? undefined : await read(file);
    if (content === undefined) throw unknownRoute(request, reply);
    return send(reply.header('Cache-Control', 'max-age=31536000, immutable'), file, content);
  });
}

/** The page opens from a link or the address bar, and not within another page. */
function checkNavigation({ headers }: FastifyRequest): void {
  const { 'sec-fetch-dest': destination = 'document' } = headers;
  if (destination !== 'document') {
    throw new ProblemError('origin_forbidden', 'The console opens in a tab of its own only.');
  }
}

function send(reply: FastifyReply, name: string, content: string): FastifyReply {
  const extension = name.slice(name.lastIndexOf('.') + 1);
  reply
    .type(types[extension] ?? 'application/octet-stream')
    .header('Content-Security-Policy', policy)
    .header('X-Content-Type-Options', 'nosniff')
    .header('Referrer-Policy', 'no-referrer')
    .header('Cross-Origin-Opener-Policy', 'same-origin')
    .header('Cross-Origin-Resource-Policy', 'same-origin');
  // Connections are kept open only for callers with a credential.
  return closeAfter(reply).send(content);
}
