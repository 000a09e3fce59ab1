import type { FastifyReply, FastifyRequest } from 'fastify';
import type { App, ServerSettings } from '../app.ts';
import { ProblemError } from '../problem-error.ts';
import type { Route } from '../route.ts';
import type { BrokenRequests } from './broken-request.ts';
import { closeBehind } from './connections.ts';
import { authorize } from './credential.ts';
import { stateOf } from './request-state.ts';

type Doorkeeper = { app: App; settings: Pick<ServerSettings, 'principal'>; broken: BrokenRequests };

/** Lets a request in to its route, or throws the refusal, before the body is read. */
export async function admit(
  { app, settings, broken }: Doorkeeper,
  route: Route,
  reply: FastifyReply,
): Promise<void> {
  checkReadiness(app, route, reply);
  await checkAccess(app, settings, route, reply);
  checkCoding(reply.request, broken);
}

function checkReadiness(app: App, route: Route, reply: FastifyReply): void {
  const { state } = app.readiness();
  if (route.always !== true && (state === 'starting' || state === 'draining')) {
    throw new ProblemError(state, 'Try again in a moment.', { retryAfterS: 1 });
  }
  // The next request of the connection is to find another process.
  if (state === 'leaving') closeBehind(reply);
}

async function checkAccess(
  app: App,
  settings: Doorkeeper['settings'],
  route: Route,
  reply: FastifyReply,
): Promise<void> {
  const requestState = stateOf(reply.request);
  if (route.access === 'anyone' || route.isOpen?.(app) === true) {
    // Connections are kept open for callers with a credential only.
    closeBehind(reply);
  } else {
    const { sent, grant } = await authorize(route.access, requestState.head, app, settings.principal);
    requestState.sentCredential = sent;
    requestState.grant = grant;
    requestState.principal = grant.principal;
  }
  if (route.operatorOnly === true && requestState.principal?.isOperator === false) {
    throw new ProblemError('operator_only', 'This concerns more than the account of the credential.');
  }
  if (route.authorityOnly === true && app.role === 'agent') {
    throw new ProblemError('not_the_authority', 'Ask the upstream for this.');
  }
}

/** Refuses a body that broke off, or that would have to be decoded first. */
function checkCoding(request: FastifyRequest, broken: BrokenRequests): void {
  const { contentEncoding, transferEncoding } = stateOf(request).head;
  if (contentEncoding.length > 0) {
    throw new ProblemError('unsupported_media_type', 'Bodies are taken without Content-Encoding.');
  }
  const brokenOff = broken.refusalOf(request.raw);
  if (brokenOff !== undefined) throw brokenOff;
  // Node undoes the last coding only, and takes what is left for the body.
  if (transferEncoding.length > 0 && transferEncoding.join().toLowerCase() !== 'chunked') {
    throw new ProblemError('unsupported_media_type', 'Bodies are taken in no transfer coding but chunked.');
  }
}
