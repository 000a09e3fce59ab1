import type { RequestListener, ServerResponse } from 'node:http';
import { fastify, type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify';
import { instanceHeader, requestIdHeader } from '../domain/header-names.ts';
import { admit } from './entry/admission.ts';
import { arrival } from './entry/arrival.ts';
import { AnswersOfTurn } from './short-way/answers-of-turn.ts';
import { BrokenRequests } from './entry/broken-request.ts';
import { Connections } from './entry/connections.ts';
import { readBodies } from './entry/body.ts';
import type { App, ServerSettings } from './app.ts';
import { Origins } from './entry/origin.ts';
import { credentialNames } from './entry/request-headers.ts';
import { DirectRequests } from './short-way/direct-request.ts';
import { jsonType, KnownRequests } from './short-way/known-request.ts';
import { RememberedAnswers } from './short-way/remembered-answer.ts';
import { requestIdOf } from './entry/request-id.ts';
import { handleOnce } from './entry/idempotent-request.ts';
import { sendError, sendProblem } from './problem-answer.ts';
import { logAnswer } from './request-log.ts';
import { addReferencePage, type RefuseRoute } from './reference-page.ts';
import { readRequest } from './request.ts';
import type { Route } from './route.ts';
import { isShadowed, unknownRoute } from './unknown-route.ts';
import { routesOf } from './routes/all.ts';
import { stateOf } from './entry/request-state.ts';

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
  const answers = new AnswersOfTurn(connections);
  const requests = new KnownRequests(app);
  const remembered = new RememberedAnswers(app, requests, answers);
  const direct = new DirectRequests(app, settings.limits, {
    connections,
    routes,
    requests,
    remembered,
    answers,
  });
  const server = fastify({
    ...serverOptions(settings, connections),
    genReqId: requestIdOf,
    schemaController: { compilersFactory: noSchemas },
    frameworkErrors: (error, request, reply) => {
      // No hook has run for such a request, and its decorators are not set.
      request.state = null;
      nameAnswer(app, request, reply);
      sendError(app, errorOf(() => arrive(request, reply)) ?? error, reply);
      app.metrics.countUnrouted(reply.statusCode);
    },
    clientErrorHandler: (error, socket) => broken.answer(error, socket),
  });
  follow(server, { connections, answers, requests, remembered, direct });
  // Node silently drops headers over its maximum: allow one more, so that the gate sees there are too many.
  // It doubles the number in 32 bits.
  server.server.maxHeadersCount = Math.min(settings.limits.headerCount, 2 ** 29) + 1;
  server.server.on('connect', (_, socket) => broken.refuseConnect(socket));
  server.decorateRequest('state', null);
  readBodies(server, settings.limits);
  server.setErrorHandler((error, _, reply) => sendError(app, error, reply));
  server.addHook('onRequest', (request, reply, done) => {
    nameAnswer(app, request, reply);
    done(
      errorOf(() => {
        arrive(request, reply);
        if (request.is404 || isShadowed(routes, request)) throw refuse(request, reply);
      }),
    );
  });
  for (const route of routes)
    addRoute(server, { app, settings, routes, connections, broken, requests, remembered }, route);
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

type Followers = Pick<Entrance, 'connections' | 'requests' | 'remembered'> & {
  answers: AnswersOfTurn;
  direct: DirectRequests;
};

/** Takes the requests of a server, those first that need no route; and counts its connections. */
function follow(
  server: FastifyInstance,
  { connections, answers, requests, remembered, direct }: Followers,
): void {
  const { server: listener } = server;
  connections.watch(listener);
  server.addHook('preClose', (done) => {
    connections.endHandshakes();
    done();
  });
  const take: RequestListener = (request, response) => {
    const known = requests.find(request);
    if (known !== null && remembered.send(known, request, response)) return;
    answers.sendAll();
    connections.begin(request.socket, response);
    const route = (): void => server.routing(request, response);
    if (known === null) route();
    else direct.take(known, request, response, route);
  };
  // Fastify's own, which would answer all of them; `take` does what it did.
  listener.removeAllListeners('request');
  listener.on('request', (request, response) => {
    connections.inTurn(request, response, take);
  });
  // An unknown expectation may be ignored (RFC 9110 section 10.1.1).
  listener.on('checkExpectation', (request, response) => listener.emit('request', request, response));
  listener.on('checkContinue', (request, response) => {
    connections.expect(response);
    listener.emit('request', request, response);
  });
  // Each of these may close a connection.
  for (const event of ['connection', 'clientError', 'connect']) {
    listener.prependListener(event, () => answers.sendAll());
  }
}

/** Says which instance answers, by which the command line and an agent know each other, and to which request. */
function nameAnswer({ instance }: App, { id }: FastifyRequest, reply: FastifyReply): void {
  reply.header(instanceHeader, instance).header(requestIdHeader, id);
}

function serverOptions({ limits, tls }: ServerSettings, { responseClass }: Connections): object {
  const { bodyBytes, headerBytes, headerTimeoutMs, requestTimeoutMs } = limits;
  const headersTimeout = Math.min(headerTimeoutMs, requestTimeoutMs);
  const http = {
    ServerResponse: responseClass,
    maxHeaderSize: headerBytes,
    headersTimeout,
    // Node compares both when the server is made, before Fastify sets its own.
    requestTimeout: requestTimeoutMs,
    // How often Node looks for requests that ran out of time.
    connectionsCheckingInterval: Math.min(1_000, Math.max(10, Math.floor(headersTimeout / 4))),
    // The gate checks Host itself: with a clearer message, and for HTTP/1.0 too.
    requireHostHeader: false,
  };
  const https = tls && { ...http, cert: tls.chain, key: tls.key, handshakeTimeout: headersTimeout };
  return {
    bodyLimit: bodyBytes,
    requestTimeout: requestTimeoutMs,
    ...(https === null ? { http } : { https }),
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
  requests: KnownRequests;
  remembered: RememberedAnswers;
};

function addRoute(server: FastifyInstance, entrance: Entrance, route: Route): void {
  const { app, settings, routes, connections, requests, remembered } = entrance;
  const onRequest = (_: FastifyRequest, reply: FastifyReply): Promise<void> => admit(entrance, route, reply);
  const handler = async (request: FastifyRequest, reply: FastifyReply): Promise<unknown> => {
    const parsed = await readRequest(route, { app, routes, connections }, reply);
    if (!parsed.ok) return sendProblem(app, reply, parsed.problem);
    const result = await handleOnce(route, parsed.value);
    if (!result.ok) return sendProblem(app, reply, result.problem);
    const { status, headers, body, repeat } = result.value;
    const known = requests.keep(route, reply);
    const ready =
      known &&
      repeat &&
      remembered.keep(known, request.raw.url ?? '', { ...result.value, repeat }, stateOf(request).moment);
    if (route.readsOnly !== true) logAnswer(app, request, { status, code: null });
    reply.code(status).headers(headers);
    return ready ? reply.type(jsonType).send(ready.body) : body;
  };
  const { path: url, csvMember } = route;
  // Not by a route of its own for HEAD, as fastify makes it: that takes a quarter of the time to make a server.
  const method = route.method === 'GET' ? ['GET', 'HEAD'] : route.method;
  const bodyLimit = Math.max(settings.limits.bodyBytes, route.bodyBytes ?? 0);
  const isCutOff = route.isVerdict === true && settings.unknown === 'reset';
  const hangUp = (response: ServerResponse): void => connections.hangUp(response);
  const config = { csvMember, ...(isCutOff && { hangUp }) };
  server.route({ method, exposeHeadRoute: false, url, bodyLimit, config, onRequest, handler });
}
