import type { IncomingMessage } from 'node:http';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { allows, type Principal } from '../../domain/access/principal.ts';
import { credentialHeaders } from '../../domain/header-names.ts';
import type { ProblemCode } from '../../domain/problem/problem-table.ts';
import type { RoleName } from '../../domain/role.ts';
import type { App, RateLimiters, ServerSettings } from '../app.ts';
import { closeAfter } from './connections.ts';
import { type Head, stateOf } from './request-state.ts';
import type { WebPage } from '../web-page.ts';
import { ProblemError } from '../problem-error.ts';
import type { Access, Route } from '../route.ts';
import {
  type CredentialKind,
  type KnownCredential,
  lasting,
  licensePrincipal,
} from '../../service/access/credential.ts';

type AdmissionParts = {
  app: App;
  pages: readonly WebPage[];
  settings: Pick<ServerSettings, 'principal' | 'public' | 'servesPages'>;
  broken: { refusalOf(request: IncomingMessage): ProblemError | undefined };
};

/** Checks, before the body is read, whether a request may reach its route; throws a problem otherwise. */
export async function admit(
  { app, pages, settings, broken }: AdmissionParts,
  route: Route,
  reply: FastifyReply,
): Promise<void> {
  checkReadiness(app, route, reply);
  await checkAccess({ app, pages, settings }, route, reply);
  route.check?.(app, settings, reply.request);
  if (!isOffered(route, app.role)) throw refusalIn(app.role, route);
  checkCoding(reply.request, route, broken);
}

function checkReadiness(app: App, route: Route, reply: FastifyReply): void {
  const { state } = app.readiness();
  if (route.always !== true && (state === 'starting' || state === 'draining')) {
    throw new ProblemError(state, 'Try again in a moment.', { retryAfterS: 1 });
  }
  // The caller's next request must open a new connection, which reaches another process.
  if (state === 'leaving' && !staysOpen(route, reply)) closeAfter(reply);
}

function staysOpen(route: Route, { request }: FastifyReply): boolean {
  return route.staysOpen?.(stateOf(request).query) === true;
}

async function checkAccess(
  { app, pages, settings }: Omit<AdmissionParts, 'broken'>,
  route: Route,
  reply: FastifyReply,
): Promise<void> {
  const requestState = stateOf(reply.request);
  if (route.access === 'anyone' || route.isOpen?.(app) === true) {
    // Connections are kept open only for callers with a credential, and for the devices of customers.
    if (settings.public === undefined && !staysOpen(route, reply)) closeAfter(reply);
  } else {
    if (app.role === 'holder' && route.access.credential === 'api_key') throw refusalIn('holder', route);
    if (app.foreignStore !== null && isAboutCoupons(route.access))
      throw new ProblemError('not_offered_by_store', `Coupons of ${app.foreignStore} are not served here.`);
    if (!pages.some((page) => page.admit(app, route, reply.request))) {
      const knownCredential = await authorize(route.access, requestState.head, app, settings.principal);
      requestState.knownCredential = knownCredential;
      requestState.principal = knownCredential.principal;
    }
  }
  if (route.operatorOnly === true && requestState.principal?.isOperator === false) {
    throw new ProblemError('operator_only', 'This concerns more than the account of the credential.');
  }
}

function isAboutCoupons({ scope }: Rule): boolean {
  return scope === 'coupons:read' || scope === 'coupons:write';
}

/** Refuses a body that was cut off, or that would have to be decoded first. */
function checkCoding(request: FastifyRequest, route: Route, broken: AdmissionParts['broken']): void {
  const { contentEncoding, transferEncoding } = stateOf(request).head;
  // An event is not decoded: its signature covers the bytes that were sent.
  if (contentEncoding.length > 0 && route.takesEvent !== true) {
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
    throw new ProblemError('unsupported_media_type', 'The only transfer coding of a body is chunked.');
  }
}

type SentSecret = { kind: CredentialKind; secret: string };

type Rule = Exclude<Access, 'anyone'>;

/**
 * Authorizes a request by its credential or, if it has none, by the principal of its socket. Throws if the credential is
 * wrong, lacks the scope or exceeds its rate (src/http/README.md, Credentials and scopes).
 */
async function authorize(
  { credential, scope }: Rule,
  head: Head,
  {
    credentials,
    dialect,
    digest,
    rates,
    licenseCredential,
  }: Pick<App, 'credentials' | 'dialect' | 'digest' | 'rates' | 'licenseCredential'>,
  socketPrincipal: Principal | null,
): Promise<KnownCredential> {
  // A holder knows no secret of a product. It ignores the one that existing software sends.
  const takesLicenseKey = licenseCredential !== null && credential === 'product_secret';
  const [first, ...more] = sentSecrets(head, takesLicenseKey ? 'bearer' : credential);
  if (more.length > 0) throw new ProblemError('malformed_request', 'Send one credential only.');
  const ofSocket = socketPrincipal === null ? null : lasting(socketPrincipal);
  const sent = first === undefined ? null : { kind: first.kind, digest: digest(first.secret) };
  const knownCredential = sent === null ? ofSocket : await credentials.find(sent);
  if (sent === null && knownCredential === null && takesLicenseKey) {
    if (!allows(unnamed, scope)) throw scopeMissing(scope);
    // The license key may be in the body, which is read later.
    return lasting(unnamed);
  }
  if (sent === null && knownCredential === null) {
    throw new ProblemError(
      'credentials_missing',
      `Send ${expected(credential, dialect)}, or a token as Bearer.`,
    );
  }
  const principal = knownCredential === null ? null : credentials.use(knownCredential);
  if (knownCredential === null || principal === null) throw wrongCredential(rates, 'credentials_invalid');
  if (principal === 'expired') throw wrongCredential(rates, 'token_expired');
  const waitMs = rates.requests.take(principal.credential);
  if (waitMs > 0) throw rateLimited('This credential sends too many requests.', waitMs);
  if (!allows(principal, scope)) throw scopeMissing(scope);
  return knownCredential;
}

function scopeMissing(scope: Rule['scope']): ProblemError {
  return new ProblemError('scope_missing', `The scope ${scope} is needed.`);
}

function expected(credential: Rule['credential'], { apiKeyHeaders }: App['dialect']): string {
  const { apiKey, productSecret } = credentialHeaders;
  if (credential === 'api_key') return `the API key as ${[apiKey, ...apiKeyHeaders].join(' or ')}`;
  if (credential === 'product_secret') return `the product secret key as ${productSecret}`;
  return `a credential as ${apiKey} or ${productSecret}`;
}

/** The different credentials of the kind that a route accepts, and Bearer tokens. The other kind is ignored. */
function sentSecrets(head: Head, credential: Rule['credential'] | 'bearer'): SentSecret[] {
  const sent: SentSecret[] = [];
  const add = (kind: CredentialKind, values: readonly string[]): void => {
    for (const secret of new Set(values)) if (secret !== '') sent.push({ kind, secret });
  };
  if (credential === 'api_key' || credential === 'any') add('api_key', head.apiKey);
  if (credential === 'product_secret' || credential === 'any') add('product_secret', head.productSecret);
  add('bearer', head.authorization.map(bearerToken));
  return sent;
}

/** The token of `Authorization: Bearer`; '' for any other scheme, which is ignored. */
export function bearerToken(authorization: string): string {
  return /^Bearer +(\S+) *$/i.exec(authorization)?.[1] ?? '';
}

/** `WWW-Authenticate` of a 401 (RFC 9110 11.6.1, RFC 6750 3). */
export function challenge(code: string): string | null {
  if (code === 'credentials_missing') return 'Bearer realm="latchkey"';
  return code === 'credentials_invalid' || code === 'token_expired'
    ? 'Bearer realm="latchkey", error="invalid_token"'
    : null;
}

const wrong = {
  credentials_invalid: 'This credential is not known here.',
  token_expired: 'This token has expired.',
} as const;

/** The problem of a request with a wrong credential. Requests with a valid credential do not count here. */
function wrongCredential({ failures }: RateLimiters, code: keyof typeof wrong): ProblemError {
  // Clients that guess cannot be distinguished, so they share one bucket.
  const waitMs = failures.take('');
  return waitMs > 0
    ? rateLimited('Too many wrong credentials are sent.', waitMs)
    : new ProblemError(code, wrong[code]);
}

/** A 429 with a `Retry-After` of `waitMs`. */
function rateLimited(detail: string, waitMs: number): ProblemError {
  return new ProblemError('rate_limited', detail, { retryAfterS: Math.ceil(waitMs / 1000) });
}

/* On a holder, the license key of a request is its credential (src/http/README.md, Leases). */

/** The principal of a request to a holder before its license key is read, which may be in the body. */
export const unnamed: Principal = licensePrincipal('license');

/**
 * Names the principal of a request after the license key in one of these sets of parameters, and counts the request against
 * the rate of the key.
 */
export function nameByLicense(
  { licenseCredential, rates }: Pick<App, 'licenseCredential' | 'rates'>,
  state: Pick<ReturnType<typeof stateOf>, 'principal' | 'knownCredential'>,
  sets: readonly unknown[],
): void {
  if (licenseCredential === null || state.principal !== unnamed) return;
  const licenseKey = sets.map(licenseKeyIn).find((each) => each !== null) ?? null;
  const { credential } = unnamed;
  const principal = licensePrincipal(licenseKey === null ? credential : licenseCredential(licenseKey));
  const waitMs = rates.requests.take(principal.credential);
  if (waitMs > 0) {
    const more = { retryAfterS: Math.ceil(waitMs / 1000) };
    throw new ProblemError('rate_limited', 'This license key is used in too many requests.', more);
  }
  state.principal = principal;
  state.knownCredential = lasting(principal);
}

function licenseKeyIn(values: unknown): string | null {
  const { licenseKey } = (values ?? {}) as { licenseKey?: unknown };
  return typeof licenseKey === 'string' ? licenseKey : null;
}

type Offer = Pick<Route, 'roles' | 'elsewhere'>;

const everyRole: readonly RoleName[] = ['authority', 'agent', 'holder'];

/** What the usual refusals say. */
const details: Partial<Record<ProblemCode, string>> = {
  not_the_authority: 'Ask the upstream for this.',
  not_an_agent: 'Only an agent has an upstream to sync with.',
  not_a_holder: 'Only a holder has leases of its own: leases.issuer is not configured here.',
  not_offered_by_holder: 'A holder has leases of license keys, and nothing else of the store.',
};

/** Whether a role offers a route. */
export function isOffered({ roles = everyRole }: Offer, role: RoleName): boolean {
  return roles.includes(role);
}

/** The refusal of a route that a role does not offer. */
export function refusalIn(role: RoleName, route: Offer): ProblemError {
  const code = codeIn(role, route);
  return new ProblemError(code, route.elsewhere?.detail ?? details[code] ?? '');
}

/** The codes with which roles refuse a route that they do not offer. */
export function refusalsElsewhere(route: Offer): readonly ProblemCode[] {
  return everyRole.filter((role) => !isOffered(route, role)).map((role) => codeIn(role, route));
}

function codeIn(role: RoleName, { roles = [], elsewhere }: Offer): ProblemCode {
  if (elsewhere?.code !== undefined) return elsewhere.code;
  if (roles.join() === 'agent') return 'not_an_agent';
  if (roles.join() === 'holder') return 'not_a_holder';
  return role === 'holder' ? 'not_offered_by_holder' : 'not_the_authority';
}
