import type * as Http from 'node:http';
import type * as Https from 'node:https';
import type { ServerResponse, RequestListener, Server } from 'node:http';
import type { ServerOptions } from 'node:https';
import { createRequire } from 'node:module';
import { fastify, type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify';
import { epochHeader, instanceHeader, requestIdHeader } from '../domain/header-names.ts';
import { admit } from './entry/admission.ts';
import { requestCheck, BrokenRequests, Origins, isShadowed, unknownRouteProblem } from './entry/gate.ts';
import { Connections } from './entry/connections.ts';
import { logResponse, quietLog } from './entry/request-log.ts';
import { turnOf } from './entry/server-response.ts';
import { receiveAnyBody } from './entry/any-body.ts';
import { readDocuments, receiveEvents, readBodies, readRequest } from './entry/request.ts';
import { handleOnce } from './entry/idempotency.ts';
import type { App, Pipeline, ServerSettings } from './app.ts';
import { attachResponseCache } from './response-cache/attach.ts';
import { credentialNames, requestIdOf, stateOf } from './entry/request-state.ts';
import { sendError, sendProblem } from './problem-response.ts';
import { addReferencePage } from './reference-page.ts';
import type { PageHost, WebPage, UnknownRoute } from './web-page.ts';
import type { Route } from './route.ts';

/** What a server depends on. */
export type ServedApp = App & { readonly routes: readonly Route[]; readonly pages: readonly WebPage[] };

/** The server of one listener. */
export type Listener = { readonly server: Server; close(): Promise<void> };

/**
 * Builds the server of one listener of a process; it does not listen yet. Its routes are added when the first client
 * connects: that takes 25 ms and 3 MiB, and most processes are called on one of their listeners only. `prepare` is called
 * before the first request.
 */
export function buildListener(
  app: ServedApp,
  settings: ServerSettings,
  connections: Connections,
  prepare: (server: FastifyInstance) => void,
): Listener {
  const pipeline: Pipeline = { handle: () => undefined };
  const server = createHttpServer(settings, connections, pipeline);
  let routed: FastifyInstance | null = null;
  server.once('connection', () => {
    routed = addRoutes(app, settings, { server, connections, pipeline });
    prepare(routed);
    const { handle } = pipeline;
    const ready = routed.ready().then(() => (pipeline.handle = handle));
    pipeline.handle = (request, response) => void ready.then(() => handle(request, response));
  });
  const close = async (): Promise<void> => {
    if (routed !== null) return await routed.close();
    connections.endHandshakes();
    await new Promise((resolve) => server.close(resolve));
  };
  return { server, close };
}

/** Builds the server of one listener with all its routes; it does not listen yet. */
export function buildServer(
  app: ServedApp,
  settings: ServerSettings,
  connections: Connections = new Connections(settings.limits.connections),
): FastifyInstance {
  const pipeline: Pipeline = { handle: () => undefined };
  const server = createHttpServer(settings, connections, pipeline);
  return addRoutes(app, settings, { server, connections, pipeline });
}

type HttpParts = { server: Server; connections: Connections; pipeline: Pipeline };

/** Makes the pipeline of a server: all that happens to a request between the server and its route. */
function addRoutes(
  processApp: ServedApp,
  settings: ServerSettings,
  { server: httpServer, connections, pipeline }: HttpParts,
): FastifyInstance {
  const isPublic = settings.public !== undefined;
  const app = isPublic ? withQuietLog(processApp) : processApp;
  const { pages } = app;
  const routes = app.routes.filter((route) => !isPublic || route.isPublic === true);
  const unknownRoute: UnknownRoute = (request, reply) => unknownRouteProblem(routes, request, reply);
  const names = credentialNames(app, settings);
  const origins = new Origins(settings.allowedOrigins);
  const carriers = [...names.apiKey, ...names.productSecret, 'authorization'];
  const common = commonHeaders(app, settings, carriers);
  const checkRequest = requestCheck(app, settings, { names, origins, pages });
  const broken = new BrokenRequests(app, connections, settings);
  const server = fastify({
    ...serverOptions(settings),
    serverFactory: (handle) => {
      pipeline.handle = handle;
      return httpServer;
    },
    genReqId: requestIdOf,
    schemaController: { compilersFactory: noSchemas },
    frameworkErrors: (error, request, reply) => {
      // No hook has run for such a request, and its decorators are not set.
      request.state = null;
      reply.headers(common).header(requestIdHeader, request.id);
      sendError(app, errorOf(() => checkRequest(request, reply)) ?? error, reply);
      app.metrics.countUnrouted(reply.statusCode);
    },
    clientErrorHandler: (error, socket) => broken.answer(error, socket),
  });
  server.addHook('preClose', (done) => {
    connections.endHandshakes();
    // Fastify closes only what it listens on itself. An error says that the server does not listen.
    httpServer.close(() => done());
  });
  httpServer.on('connect', (_, socket) => broken.refuseConnect(socket));
  server.decorateRequest('state', null);
  readBodies(server, settings.limits);
  readDocuments(server);
  server.setErrorHandler((error, _, reply) => sendError(app, error, reply));
  server.addHook('onRequest', (request, reply, done) => {
    reply.headers(common).header(requestIdHeader, request.id);
    done(
      errorOf(() => {
        checkRequest(request, reply);
        if (request.is404 || isShadowed(routes, request)) throw unknownRoute(request, reply);
      }),
    );
  });
  // The server works the same without this line and its folder.
  if (!isPublic) attachResponseCache(server, { app, pipeline });
  for (const route of routes) addRoute(server, { app, pages, settings, routes, connections, broken }, route);
  if (!isPublic) addReferencePage(server, unknownRoute);
  addPages(server, { app, listener: settings, unknownRoute });
  origins.answerPreflights(server, routes, { credentialNames: carriers, unknownRoute });
  return server;
}

function addPages(server: FastifyInstance, host: PageHost & { app: Pick<ServedApp, 'pages'> }): void {
  for (const page of host.app.pages) if (page.isServedAt(host.listener)) page.addTo(server, host);
}

/** The log of the process is shared: only the lines of this listener are limited. */
function withQuietLog(app: ServedApp): ServedApp {
  return { ...app, log: quietLog(app.log, () => app.now()) };
}

/** No route gives the framework a schema: its compilers need not be loaded. */
const noSchemas = { buildValidator: refuseSchema, buildSerializer: refuseSchema };

function refuseSchema(): never {
  throw new Error('a route reads its own parameters');
}

/**
 * The headers of every response of a listener. Commands and agents recognize the process by the id of its instance. No
 * cache may give one caller the response to another; `Vary` is for caches that are configured to ignore `no-store`.
 */
function commonHeaders(
  { instance }: App,
  { allowedOrigins, public: publicListener }: ServerSettings,
  carriers: readonly string[],
): Record<string, string> {
  const headers = { [instanceHeader]: instance, 'Cache-Control': 'no-store' };
  if (publicListener !== undefined) return headers;
  const variesBy = [...carriers, 'accept', ...(allowedOrigins.length > 0 ? ['origin'] : [])];
  return { ...headers, Vary: variesBy.join(', ') };
}

function serverOptions({ limits: { bodyBytes } }: ServerSettings): object {
  return {
    bodyLimit: bodyBytes,
    // While draining, `admit` answers with a problem instead.
    return503OnClosing: false,
    // The gate parses the query, more strictly than the router would.
    routerOptions: {
      querystringParser: () => ({}),
      maxParamLength: 16_384,
      ignoreTrailingSlash: true,
      ignoreDuplicateSlashes: true,
    },
  };
}

function errorOf(pass: () => void): Error | undefined {
  try {
    pass();
    return undefined;
  } catch (error) {
    return error as Error;
  }
}

type Entrance = {
  app: App;
  pages: readonly WebPage[];
  settings: ServerSettings;
  routes: readonly Route[];
  connections: Connections;
  broken: BrokenRequests;
};

function addRoute(server: FastifyInstance, entrance: Entrance, route: Route): void {
  const { app, settings, routes, connections } = entrance;
  const onRequest = (_: FastifyRequest, reply: FastifyReply): Promise<void> => admit(entrance, route, reply);
  const handler = async (request: FastifyRequest, reply: FastifyReply): Promise<unknown> => {
    if (route.isStreamed === true) await turnOf(reply.raw);
    // This function does not keep what was read, and the body is not needed again: thousands of requests may wait.
    const result = await readRequest(route, { app, settings, routes, connections }, reply).then((read) => {
      request.body = undefined;
      return read.ok ? handleOnce(route, read.value) : read;
    });
    if (stateOf(request).head.instance.length > 0) await nameHistory(app, reply);
    if (!result.ok) return sendProblem(app, reply, result.problem);
    const { status, headers, body } = result.value;
    if (result.value.cacheable !== undefined) stateOf(request).response = result.value;
    if (route.readsOnly !== true) logResponse(app, request, { status, code: null });
    reply.code(status).headers(headers);
    return body;
  };
  const { path: url } = route;
  // Not by a route of its own for HEAD, as fastify makes it: that takes a quarter of the time to make a server.
  const method = route.method === 'GET' ? ['GET', 'HEAD'] : route.method;
  const bodyLimit = bodyLimitOf(route, settings);
  const isCutOff = route.isVerdict === true && settings.unknown === 'reset';
  const hangUp = (response: ServerResponse): void => connections.hangUp(response);
  const config = { route, ...(isCutOff && { hangUp }) };
  const add = (scope: FastifyInstance): void => {
    scope.route({ method, exposeHeadRoute: false, url, bodyLimit, config, onRequest, handler });
  };
  if (route.takesEvent === true) receiveEvents(server, add);
  else if (route.takesAnyBody === true) receiveAnyBody(server, settings.limits, add);
  else add(server);
}

/** An agent orders what this store says by its history. */
async function nameHistory(app: App, reply: FastifyReply): Promise<void> {
  const epoch = await app.epoch();
  if (epoch !== null) reply.header(epochHeader, epoch);
}

function bodyLimitOf(
  { takesDocument, takesEvent, bodyBytes = 0 }: Route,
  { limits }: ServerSettings,
): number {
  return takesDocument === true || takesEvent === true ? bodyBytes : Math.max(limits.bodyBytes, bodyBytes);
}

// An import statement would also load the WebSocket and fetch of Node, which takes 40 ms.
const load = createRequire(import.meta.url);

/** Fastify's own default. */
const keepAliveTimeoutMs = 72_000;

/** Creates the server of one listener. It passes each request to the pipeline in its turn. */
function createHttpServer(
  { limits, tls }: ServerSettings,
  connections: Connections,
  pipeline: Pipeline,
): Server {
  const { headerBytes, headerTimeoutMs, requestTimeoutMs } = limits;
  const headersTimeout = Math.min(headerTimeoutMs, requestTimeoutMs);
  const options = {
    ServerResponse: connections.responseClass,
    maxHeaderSize: headerBytes,
    headersTimeout,
    requestTimeout: requestTimeoutMs,
    keepAliveTimeout: keepAliveTimeoutMs,
    // How often Node looks for requests that ran out of time.
    connectionsCheckingInterval: Math.min(1_000, Math.max(10, Math.floor(headersTimeout / 4))),
    // The gate checks Host with a clearer message, and for HTTP/1.0 too.
    requireHostHeader: false,
  };
  const listener: RequestListener = (request, response) =>
    connections.inTurn(request, response, (...turn) => pipeline.handle(...turn));
  const server =
    tls === null
      ? (load('node:http') as typeof Http).createServer(options, listener)
      : createTlsServer(
          { ...options, cert: tls.chain, key: tls.key, handshakeTimeout: headersTimeout },
          listener,
        );
  connections.watch(server);
  // Node silently drops headers over its maximum: allow one more, so that the gate sees there are too many.
  // It doubles the number in 32 bits.
  server.maxHeadersCount = Math.min(limits.headerCount, 2 ** 29) + 1;
  // An unknown expectation may be ignored (RFC 9110 section 10.1.1).
  server.on('checkExpectation', listener);
  server.on('checkContinue', (request, response) => {
    connections.expect(response);
    listener(request, response);
  });
  return server;
}

/** `node:https` takes 1 MiB of memory, and most servers listen without TLS. */
function createTlsServer(options: ServerOptions, listener: RequestListener): Server {
  return (load('node:https') as typeof Https).createServer(options, listener);
}
