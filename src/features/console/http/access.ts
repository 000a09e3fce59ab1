import type { FastifyRequest } from 'fastify';
import type { App, ServerSettings } from '../../../http/app.ts';
import { isLoopbackHost } from '../../../http/entry/gate.ts';
import { type Head, stateOf } from '../../../http/entry/request-state.ts';
import { ProblemError } from '../../../http/problem-error.ts';
import { type Route, sessionsOf } from '../../../http/route.ts';

export const consoleFileRoute = '/console/:file';

/** What every token of a session begins with. */
const sessionToken = /^Bearer +(lks_\S+) *$/i;

/** The token of a session of the console, if that is the only credential of a request. */
function sessionTokenOf({ apiKey, productSecret, authorization }: Head): string | null {
  const [sent = '', ...more] = authorization;
  if (apiKey.length + productSecret.length + more.length > 0) return null;
  return sessionToken.exec(sent)?.[1] ?? null;
}

function hasNoCredential({ apiKey, productSecret, authorization }: Head): boolean {
  return apiKey.length + productSecret.length + authorization.length === 0;
}

/** Refuses a request that a page of another site has caused. Programs do not send `Sec-Fetch-Site`. */
export function checkFetchSite({ headers }: Pick<FastifyRequest, 'headers'>): void {
  const site = headers['sec-fetch-site'];
  if (site === undefined || site === 'same-origin') return;
  throw new ProblemError('origin_forbidden', 'Only the page of the console may ask for this.');
}

/** Refuses the routes of the page at other listeners, and to other pages. */
export function checkOwnPage(
  { console }: App,
  { servesPages }: Pick<ServerSettings, 'servesPages'>,
  request: FastifyRequest,
): void {
  if (servesPages !== true || console.desk === null)
    throw new ProblemError('console_off', 'This listener does not serve the console.');
  checkFetchSite(request);
}

/**
 * Whether a request comes from the page of the console at this listener: its origin is the loopback address in `Host`. The
 * only credential of such a request is the token of a session.
 */
export function isFromConsole(
  head: Head,
  request: FastifyRequest,
  { tls }: Pick<ServerSettings, 'tls'>,
): boolean {
  const [origin, ...more] = head.origin;
  if (origin === undefined || more.length > 0 || head.referer.length > 0) return false;
  const [host = ''] = head.host;
  if (origin !== `${tls === null ? 'http' : 'https'}://${host}` || !isLoopbackHost(host)) return false;
  if (sessionTokenOf(head) !== null) return true;
  if (!hasNoCredential(head)) return false;
  const { url, config } = request.routeOptions;
  // A browser sends the Origin of a page with each module script.
  if (url === consoleFileRoute) return true;
  return config.route?.check === checkOwnPage && config.route.access === 'anyone';
}

/**
 * Lets a request with the token of a session pass, if the session may use the route. Returns whether the request has
 * such a token.
 */
export function admitSession(
  { console, digest, rates }: Pick<App, 'console' | 'digest' | 'rates'>,
  route: Route,
  request: FastifyRequest,
): boolean {
  const state = stateOf(request);
  const token = sessionTokenOf(state.head);
  const session = token === null ? null : (console.desk?.find(digest(token)) ?? null);
  if (session === null) return false;
  checkFetchSite(request);
  const waitMs = rates.requests.take(session.principal.credential);
  if (waitMs > 0) {
    const more = { retryAfterS: Math.ceil(waitMs / 1000) };
    throw new ProblemError('rate_limited', 'This session sends too many requests.', more);
  }
  const allowed = sessionsOf(route);
  if (allowed === 'none') {
    throw new ProblemError('scope_missing', 'The session of a page cannot let another page in.');
  }
  if (allowed === 'admin' && !session.isAdmin) {
    throw new ProblemError('session_read_only', 'This session was confirmed without --admin.');
  }
  state.mask = session.mask;
  state.principal = session.principal;
  return true;
}
