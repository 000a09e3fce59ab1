import type { ServerResponse } from 'node:http';
import { fastify, type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify';
import { instanceHeader, requestIdHeader } from '../domain/header-names.ts';
import { admit } from './entry/admission.ts';
import { arrival } from './entry/gate.ts';
import { createHttpServer } from './http-server.ts';
import { BrokenRequests } from './entry/broken-request.ts';
import { Connections } from './entry/connections.ts';
import { readBodies } from './entry/body.ts';
import type { App, Pipeline, ServerSettings } from './app.ts';
import { attachResponseCache } from './response-cache/attach.ts';
import { Origins } from './entry/origin.ts';
import { credentialNames, requestIdOf, stateOf } from './entry/request-state.ts';
import { handleOnce, readRequest } from './request.ts';
import { sendError, sendProblem } from './problem-response.ts';
import { logResponse } from './request-log.ts';
import { addReferencePage, type RefuseRoute } from './reference-page.ts';
import type { Route } from './route.ts';
import { isShadowed, unknownRoute } from './unknown-route.ts';
import { routesOf } from './routes/all.ts';

/** Builds the server of one listener; it does not listen yet. */
export function buildServer(
  app: App,
  settings: ServerSettings,
  connections: Connections = new Connections(settings.limits.connections),
): FastifyInstance {
  const routes = routesOf(app.dialect);
  const refuse: RefuseRoute = (request, reply) => unknownRoute(routes, request, reply);
  const names = credentialNames(app, settings);
  const origins = new Origins(settings.allowedOrigins);
  const arrive = arrival(app, settings, { names, origins });
  const broken = new BrokenRequests(app, connections);
  const pipeline: Pipeline = { handle: () => undefined };
  const server = fastify({
    ...serverOptions(settings),
    serverFactory: (handle) => {
      pipeline.handle = handle;
      return createHttpServer(settings, connections, pipeline);
    },
    genReqId: requestIdOf,
    schemaController: { compilersFactory: noSchemas },
    frameworkErrors: (error, request, reply) => {
      // No hook has run for such a request, and its decorators are not set.
      request.state = null;
      nameResponse(app, request, reply);
      sendError(app, errorOf(() => arrive(request, reply)) ?? error, reply);
      app.metrics.countUnrouted(reply.statusCode);
    },
    clientErrorHandler: (error, socket) => broken.answer(error, socket),
  });
  server.addHook('preClose', (done) => {
    connections.endHandshakes();
    // Fastify closes only what it listens on itself. An error says that the server does not listen.
    server.server.close(() => done());
  });
  server.server.on('connect', (_, socket) => broken.refuseConnect(socket));
  server.decorateRequest('state', null);
  readBodies(server, settings.limits);
  server.setErrorHandler((error, _, reply) => sendError(app, error, reply));
  server.addHook('onRequest', (request, reply, done) => {
    nameResponse(app, request, reply);
    done(
      errorOf(() => {
        arrive(request, reply);
        if (request.is404 || isShadowed(routes, request)) throw refuse(request, reply);
      }),
    );
  });
  // The server works the same without this line and its folder.
  attachResponseCache(server, { app, pipeline });
  for (const route of routes) addRoute(server, { app, settings, routes, connections, broken }, route);
  addReferencePage(server, refuse);
  origins.answerPreflights(server, routes, {
    credentialNames: [...names.apiKey, ...names.productSecret, 'authorization'],
    refuse,
  });
  return server;
}

/** No route gives the framework a schema: its compilers need not be loaded. */
const noSchemas = { buildValidator: refuseSchema, buildSerializer: refuseSchema };

function refuseSchema(): never {
  throw new Error('a route reads its own parameters');
}

/** Says which instance answers, by which the command line and an agent know each other, and to which request. */
function nameResponse({ instance }: App, { id }: FastifyRequest, reply: FastifyReply): void {
  reply.header(instanceHeader, instance).header(requestIdHeader, id);
}

function serverOptions({ limits: { bodyBytes } }: ServerSettings): object {
  return {
    bodyLimit: bodyBytes,
    // While draining, `admit` answers with a problem instead.
    return503OnClosing: false,
    // The gate parses the query, more strictly than the router would.
    routerOptions: {
      querystringParser: () => ({}),
      maxParamLength: 1_000,
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
  settings: ServerSettings;
  routes: readonly Route[];
  connections: Connections;
  broken: BrokenRequests;
};

function addRoute(server: FastifyInstance, entrance: Entrance, route: Route): void {
  const { app, settings, routes, connections } = entrance;
  const onRequest = (_: FastifyRequest, reply: FastifyReply): Promise<void> => admit(entrance, route, reply);
  const handler = async (request: FastifyRequest, reply: FastifyReply): Promise<unknown> => {
    const parsed = await readRequest(route, { app, routes, connections }, reply);
    if (!parsed.ok) return sendProblem(app, reply, parsed.problem);
    const result = await handleOnce(route, parsed.value);
    if (!result.ok) return sendProblem(app, reply, result.problem);
    const { status, headers, body } = result.value;
    stateOf(request).response = result.value;
    if (route.readsOnly !== true) logResponse(app, request, { status, code: null });
    reply.code(status).headers(headers);
    return body;
  };
  const { path: url, csvMember } = route;
  // Not by a route of its own for HEAD, as fastify makes it: that takes a quarter of the time to make a server.
  const method = route.method === 'GET' ? ['GET', 'HEAD'] : route.method;
  const bodyLimit = Math.max(settings.limits.bodyBytes, route.bodyBytes ?? 0);
  const isCutOff = route.isVerdict === true && settings.unknown === 'reset';
  const hangUp = (response: ServerResponse): void => connections.hangUp(response);
  const config = { csvMember, route, ...(isCutOff && { hangUp }) };
  server.route({ method, exposeHeadRoute: false, url, bodyLimit, config, onRequest, handler });
}
