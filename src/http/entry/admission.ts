import type { IncomingMessage } from 'node:http';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { LRUCache } from 'lru-cache';
import {
  allows,
  type Principal,
  reaches,
  type Tenant,
  type TenantFilter,
} from '../../domain/access/principal.ts';
import { credentialHeaders } from '../../domain/header-names.ts';
import type { App, RateLimiter, RateLimiters, ServerSettings } from '../app.ts';
import { closeBehind } from './connections.ts';
import { unnamed } from './license-credential.ts';
import { type Head, stateOf } from './request-state.ts';
import { isOffered, refusalIn } from './roles.ts';
import type { Page } from '../page.ts';
import { ProblemError } from '../problem-error.ts';
import type { Access, Owned, Route } from '../route.ts';
import {
  type CredentialKind,
  type KnownCredential,
  lasting,
  type CredentialCache,
  type Credentials,
  type SentCredential,
  cacheKeyOf,
} from '../../service/access/credential.ts';
import type { ChangeFeed } from '../../service/writer.ts';
import {
  foreignProduct,
  notFound,
  unknownAccount,
  type ParameterFault,
} from '../../domain/problem/problem.ts';
import { storedLicenseKey } from '../../service/pasted-keys.ts';
import { TokenBucket, type Rate } from '../../domain/token-bucket.ts';
import type { AuthorityReader, Awaitable } from '../../service/tables.ts';

type AdmissionParts = {
  app: App;
  pages: readonly Page[];
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
  if (state === 'leaving' && !staysOpen(route, reply)) closeBehind(reply);
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
    if (settings.public === undefined && !staysOpen(route, reply)) closeBehind(reply);
  } else {
    if (app.role === 'holder' && route.access.credential === 'api_key') throw refusalIn('holder', route);
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

/** How many credentials are cached, and how many names have a token bucket. */
const maxNames = 10_000;

/** Caches accepted credentials until a commit changes any credential. Wrong ones are not cached: attackers send many. */
export class AnnouncedCredentialCache implements CredentialCache {
  readonly #changes: ChangeFeed;

  constructor(changes: ChangeFeed) {
    this.#changes = changes;
  }

  cached(credentials: Credentials): Credentials {
    const resolvedCredentials = new LRUCache<string, KnownCredential>({ max: maxNames });
    let generation = 0;
    this.#changes.subscribe((changes) => {
      if (changes.every((change) => typeof change === 'object')) return;
      generation += 1;
      resolvedCredentials.clear();
    });
    const read = async (sent: SentCredential): Promise<KnownCredential | null> => {
      const readIn = generation;
      const knownCredential = await credentials.find(sent);
      if (knownCredential !== null && readIn === generation)
        resolvedCredentials.set(cacheKeyOf(sent), knownCredential);
      return knownCredential;
    };
    return {
      find: (sent) => resolvedCredentials.get(cacheKeyOf(sent)) ?? read(sent),
      use: (knownCredential) => credentials.use(knownCredential),
    };
  }
}

/** A token bucket for each name, in bounded memory: the least recently used bucket is evicted. */
export class NamedRateLimiter implements RateLimiter {
  readonly #buckets = new LRUCache<string, TokenBucket>({ max: maxNames });
  readonly #perSecond: () => number;
  readonly #monotonic: () => number;
  readonly #burst: number;

  /** `perSecond` is called each time; 0: no limit. `monotonic`: monotonic ms. `burst`: at least the tokens of a second. */
  constructor(perSecond: () => number, monotonic: () => number, burst = 1) {
    this.#perSecond = perSecond;
    this.#monotonic = monotonic;
    this.#burst = burst;
  }

  take(name: string): number {
    const perSecond = this.#perSecond();
    if (perSecond === 0) return 0;
    const rate: Rate = { perSecond, burst: Math.max(this.#burst, perSecond) };
    const bucket = this.#buckets.get(name) ?? new TokenBucket();
    this.#buckets.set(name, bucket);
    return bucket.take(rate, this.#monotonic());
  }
}

/** The configured requests per second; 0: no limit. */
type RateSettings = { readonly rate: number; readonly failedRate: number };

export function rateLimiters(settings: () => RateSettings, monotonic: () => number): RateLimiters {
  return {
    requests: new NamedRateLimiter(() => settings().rate, monotonic),
    failures: new NamedRateLimiter(() => settings().failedRate, monotonic),
  };
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

/** The owner of a resource; null if the resource does not exist. */
type Owner = { accountId: string | null; productKey: string | null } | null;

const owners: Record<Owned, (reader: AuthorityReader, id: string) => Awaitable<Owner>> = {
  account: async ({ accounts }, id) => {
    const account = await accounts.get(id);
    return account === null ? null : { ...account, productKey: null };
  },
  collection: async ({ collections }, id) => {
    const collection = await collections.get(id);
    return collection === null ? null : { ...collection, productKey: null };
  },
  product: ({ products }, id) => products.get(id),
  // An unknown purchase costs the same reads as another account's purchase, so that timing reveals nothing.
  purchase: async ({ purchases, licenses, products }, id) => {
    const purchase = await purchases.get(id);
    const license = await licenses.get(purchase?.licenseKey ?? '');
    return await products.get(license?.productKey ?? '');
  },
};

/**
 * Refuses a path to a resource that does not exist or that the credential cannot access: with the same response, after
 * the same reads. Returns null if the credential can access the resource. The owner of a resource never changes, so the
 * check runs before the transaction. An operator's path is not checked: the use case refuses a missing resource.
 */
export async function checkOwner(
  { reader }: Pick<App, 'reader'>,
  principal: Principal,
  owned: Owned,
  id: string,
): Promise<ReturnType<typeof notFound> | null> {
  if (principal.isOperator) return null;
  const owner = await owners[owned](reader, id);
  return owner !== null && reaches(principal, owner) ? null : notFound(owned);
}

/**
 * The tenant in which a license key is looked up. For an operator it is the account that has the key; for any other
 * credential it is the credential's own tenant.
 */
export async function tenantForLicense(
  { reader, role }: Pick<App, 'reader' | 'role'>,
  { isOperator, tenant }: Principal,
  licenseKey: string | null,
): Promise<Tenant> {
  if (!isOperator || role !== 'authority' || licenseKey === null) return tenant;
  const license = await reader.licenses.get(await storedLicenseKey(reader, licenseKey));
  const product = license === null ? null : await reader.products.get(license.productKey);
  return product === null ? tenant : { accountId: product.accountId, productKey: null };
}

/** The fault of a parameter that names an account that the credential cannot access. */
export function foreignAccountFaults(
  { isOperator, tenant }: Principal,
  accountId: string | undefined,
): ParameterFault[] {
  if (isOperator || accountId === undefined || accountId === tenant.accountId) return [];
  return [unknownAccount];
}

/** The fault of a parameter that names an account that does not exist or that the credential cannot access. */
export async function accountFaults(
  { reader }: Pick<App, 'reader'>,
  principal: Principal,
  accountId: string | undefined,
): Promise<ParameterFault[]> {
  const unreached = foreignAccountFaults(principal, accountId);
  if (unreached.length > 0 || accountId === undefined) return unreached;
  return (await reader.accounts.get(accountId)) === null ? [unknownAccount] : [];
}

/** The fault of a parameter that names a product that does not exist or that the credential cannot access. */
export async function productFaults(
  { reader, role }: Pick<App, 'reader' | 'role'>,
  principal: Principal,
  productKey: string | undefined,
): Promise<ParameterFault[]> {
  // All products of an agent belong to one account. An operator can access every product.
  if (principal.isOperator || productKey === undefined || role !== 'authority') return [];
  const product = await reader.products.get(productKey);
  return product !== null && reaches(principal, product) ? [] : [foreignProduct()];
}

/** The only account that a credential can access; null: every account. */
export function accessibleAccount({ isOperator, tenant }: Principal): string | null {
  return isOperator ? null : tenant.accountId;
}

/**
 * Whether the product filter names a product that does not exist or that the tenant cannot access. Checked before the
 * list is read, so that timing does not reveal the product.
 */
export async function isUnknownProduct(
  { reader }: Pick<App, 'reader'>,
  { tenant, productKey }: TenantFilter & { productKey?: string | undefined },
): Promise<boolean> {
  if (tenant === undefined || productKey === undefined) return false;
  const product = await reader.products.get(productKey);
  const isReached = tenant.productKey === null || tenant.productKey === productKey;
  return product?.accountId !== tenant.accountId || !isReached;
}

/** Restricts a list to the records that the credential can access. `accountId`: the account that the caller names. */
export function tenantFilter({ isOperator, tenant }: Principal, accountId?: string): TenantFilter {
  if (!isOperator) return { tenant };
  return accountId === undefined ? {} : { tenant: { accountId, productKey: null } };
}
