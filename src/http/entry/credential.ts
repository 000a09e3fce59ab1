import { credentialHeaders } from '../../domain/header-names.ts';
import { allows, type Principal, type Scope } from '../../domain/access/principal.ts';
import {
  lasting,
  type CredentialKind,
  type Grant,
  type SentCredential,
} from '../../service/access/credential.ts';
import type { App } from '../app.ts';
import type { Head } from './request-headers.ts';
import { ProblemError } from '../problem-error.ts';
import { rateLimited } from './request-rates.ts';

/** Who may use a route: anyone, or a credential of this kind that carries the scope. */
export type Access = 'anyone' | { credential: 'api_key' | 'product_secret' | 'any'; scope: Scope };

type SentSecret = { kind: CredentialKind; secret: string };

/** Whom a request comes from; `sent` is null where its socket tells. */
export type Caller = { sent: SentCredential | null; grant: Grant };

type Rule = Exclude<Access, 'anyone'>;

/**
 * Authorizes a request: finds the grant of its credential, or of its socket when it sends none. Throws when that
 * lacks the scope or exceeds its rate (src/http/README.md, Credentials and scopes).
 */
export async function authorize(
  { credential, scope }: Rule,
  head: Head,
  { credentials, dialect, digest, rates }: Pick<App, 'credentials' | 'dialect' | 'digest' | 'rates'>,
  socketPrincipal: Principal | null,
): Promise<Caller> {
  const [first, ...more] = sentSecrets(head, credential);
  if (more.length > 0) throw new ProblemError('malformed_request', 'Send one credential only.');
  const ofSocket = socketPrincipal === null ? null : lasting(socketPrincipal);
  const sent = first === undefined ? null : { kind: first.kind, digest: digest(first.secret) };
  const grant = sent === null ? ofSocket : await credentials.find(sent);
  if (sent === null && grant === null) {
    throw new ProblemError(
      'credentials_missing',
      `Send ${expected(credential, dialect)}, or a token as Bearer.`,
    );
  }
  const principal = grant === null ? null : credentials.use(grant);
  if (grant === null || principal === null) throw rates.wrongCredential('credentials_invalid');
  if (principal === 'expired') throw rates.wrongCredential('token_expired');
  const waitMs = rates.requests.take(principal.credential);
  if (waitMs > 0) throw rateLimited('This credential sends too many requests.', waitMs);
  if (!allows(principal, scope)) throw new ProblemError('scope_missing', `The scope ${scope} is needed.`);
  return { sent, grant };
}

function expected(credential: Rule['credential'], { apiKeyHeaders }: App['dialect']): string {
  const { apiKey, productSecret } = credentialHeaders;
  if (credential === 'api_key') return `the API key as ${[apiKey, ...apiKeyHeaders].join(' or ')}`;
  if (credential === 'product_secret') return `the product secret key as ${productSecret}`;
  return `a credential as ${apiKey} or ${productSecret}`;
}

/** The different credentials that count for a route: those of its kind, and Bearer; the other kind is ignored. */
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

/** The token of `Authorization: Bearer`; empty for any other scheme, which is not ours. */
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
