import type { FastifyReply, FastifyRequest } from 'fastify';
import { allows, type Principal } from '../../domain/access/principal.ts';
import { credentialHeaders } from '../../domain/header-names.ts';
import type { App, ServerSettings } from '../app.ts';
import type { BrokenRequests } from './broken-request.ts';
import { closeBehind } from './connections.ts';
import { rateLimited } from './request-rates.ts';
import { type Head, stateOf } from './request-state.ts';
import { ProblemError } from '../problem-error.ts';
import type { Access, Route } from '../route.ts';
import { type CredentialKind, type ResolvedCredential, lasting } from '../../service/access/credential.ts';

type Doorkeeper = { app: App; settings: Pick<ServerSettings, 'principal'>; broken: BrokenRequests };

/** Checks, before the body is read, whether a request may reach its route; throws a problem otherwise. */
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
  // The caller's next request must open a new connection, which reaches another process.
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
    // Connections are kept open only for callers with a credential.
    closeBehind(reply);
  } else {
    const resolvedCredential = await authorize(route.access, requestState.head, app, settings.principal);
    requestState.resolvedCredential = resolvedCredential;
    requestState.principal = resolvedCredential.principal;
  }
  if (route.operatorOnly === true && requestState.principal?.isOperator === false) {
    throw new ProblemError('operator_only', 'This concerns more than the account of the credential.');
  }
  if (route.authorityOnly === true && app.role === 'agent') {
    throw new ProblemError('not_the_authority', 'Ask the upstream for this.');
  }
}

/** Refuses a body that was cut off, or that would have to be decoded first. */
function checkCoding(request: FastifyRequest, broken: BrokenRequests): void {
  const { contentEncoding, transferEncoding } = stateOf(request).head;
  if (contentEncoding.length > 0) {
    throw new ProblemError('unsupported_media_type', 'Bodies are taken without Content-Encoding.');
  }
  const brokenOff = broken.refusalOf(request.raw);
  if (brokenOff !== undefined) throw brokenOff;
  // The connection was lost while the credential was read: Fastify would wait for the body forever.
  if (request.raw.destroyed && !request.raw.complete) {
    throw new ProblemError('malformed_request', 'The caller left before the answer.');
  }
  // Node decodes only the last transfer coding, and treats the result as the body.
  if (transferEncoding.length > 0 && transferEncoding.join().toLowerCase() !== 'chunked') {
    throw new ProblemError('unsupported_media_type', 'Bodies are taken in no transfer coding but chunked.');
  }
}

type SentSecret = { kind: CredentialKind; secret: string };

type Rule = Exclude<Access, 'anyone'>;

/**
 * Authorizes a request by its credential or, if it has none, by the principal of its socket. Throws if the credential is
 * wrong, lacks the scope or exceeds its rate (src/http/README.md, Credentials and scopes).
 */
export async function authorize(
  { credential, scope }: Rule,
  head: Head,
  { credentials, dialect, digest, rates }: Pick<App, 'credentials' | 'dialect' | 'digest' | 'rates'>,
  socketPrincipal: Principal | null,
): Promise<ResolvedCredential> {
  const [first, ...more] = sentSecrets(head, credential);
  if (more.length > 0) throw new ProblemError('malformed_request', 'Send one credential only.');
  const ofSocket = socketPrincipal === null ? null : lasting(socketPrincipal);
  const sent = first === undefined ? null : { kind: first.kind, digest: digest(first.secret) };
  const resolvedCredential = sent === null ? ofSocket : await credentials.find(sent);
  if (sent === null && resolvedCredential === null) {
    throw new ProblemError(
      'credentials_missing',
      `Send ${expected(credential, dialect)}, or a token as Bearer.`,
    );
  }
  const principal = resolvedCredential === null ? null : credentials.use(resolvedCredential);
  if (resolvedCredential === null || principal === null) throw rates.wrongCredential('credentials_invalid');
  if (principal === 'expired') throw rates.wrongCredential('token_expired');
  const waitMs = rates.requests.take(principal.credential);
  if (waitMs > 0) throw rateLimited('This credential sends too many requests.', waitMs);
  if (!allows(principal, scope)) throw new ProblemError('scope_missing', `The scope ${scope} is needed.`);
  return resolvedCredential;
}

function expected(credential: Rule['credential'], { apiKeyHeaders }: App['dialect']): string {
  const { apiKey, productSecret } = credentialHeaders;
  if (credential === 'api_key') return `the API key as ${[apiKey, ...apiKeyHeaders].join(' or ')}`;
  if (credential === 'product_secret') return `the product secret key as ${productSecret}`;
  return `a credential as ${apiKey} or ${productSecret}`;
}

/** The different credentials of the kind that a route accepts, and Bearer tokens. The other kind is ignored. */
function sentSecrets(head: Head, credential: Rule['credential']): SentSecret[] {
  const sent: SentSecret[] = [];
  const add = (kind: CredentialKind, values: readonly string[]): void => {
    for (const secret of new Set(values)) if (secret !== '') sent.push({ kind, secret });
  };
  if (credential !== 'product_secret') add('api_key', head.apiKey);
  if (credential !== 'api_key') add('product_secret', head.productSecret);
  add('bearer', head.authorization.map(bearerToken));
  return sent;
}

/** The token of `Authorization: Bearer`; '' for any other scheme, which is ignored. */
function bearerToken(authorization: string): string {
  return /^Bearer +(\S+) *$/i.exec(authorization)?.[1] ?? '';
}

/** `WWW-Authenticate` of a 401 (RFC 9110 11.6.1, RFC 6750 3). */
export function challenge(code: string): string | null {
  if (code === 'credentials_missing') return 'Bearer realm="latchkey"';
  return code === 'credentials_invalid' || code === 'token_expired'
    ? 'Bearer realm="latchkey", error="invalid_token"'
    : null;
}
