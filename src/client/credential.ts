import { readFileSync } from 'node:fs';
import { isSocketNamed, nonEmpty, type AddressOptions, type Environment } from './address.ts';
import { ConfigurationError } from './error.ts';

/** The credentials of the program. A token replaces both of the others. */
export interface CredentialOptions {
  /**
   * A token (`latchkey token issue`). Default: `LATCHKEY_TOKEN`, then the content of the file `LATCHKEY_TOKEN_FILE`.
   * Either variable may give the product's secret instead. A socket with a `grant` (`url: 'unix:…'`) needs none.
   */
  readonly token?: string | undefined;
  /** The secret of the product, for license keys. */
  readonly productSecret?: string | undefined;
  /** The API key of the account, for coupons at checkout. */
  readonly apiKey?: string | undefined;
}

export type CredentialKind = 'productSecret' | 'apiKey';

/**
 * Gives the credential header for a kind of route. The header is empty for a socket, which may have a grant, and for a
 * holder, where the license key is the credential.
 * Throws a `ConfigurationError` if there is no credential.
 */
export function credentialHeader(
  options: AddressOptions & CredentialOptions & { readonly leases?: object | undefined },
  kind: CredentialKind,
  environment: Environment,
): Record<string, string> {
  const name = kind === 'apiKey' ? 'service-api-key' : 'product-secret-key';
  const own = options[kind];
  if (own !== undefined) return { [name]: checked(own, kind, oneLine) };
  if (options.token !== undefined) return { [name]: checked(options.token, 'token', oneWord) };
  const variable = nonEmpty(environment['LATCHKEY_TOKEN']);
  if (variable !== undefined) return { [name]: checked(variable, 'LATCHKEY_TOKEN', oneLine) };
  const file = nonEmpty(environment['LATCHKEY_TOKEN_FILE']);
  if (file !== undefined) return { [name]: checked(readToken(file), 'LATCHKEY_TOKEN_FILE', oneLine) };
  if (options.leases !== undefined || isSocketNamed(options, environment)) return {};
  throw new ConfigurationError(`Give connect() a token or ${kind === 'apiKey' ? 'an' : 'a'} ${kind}.`);
}

/** Distinguishes the program of one product from another's: its secret, its token, or the path of its token file. */
export function credentialScope(
  { productSecret, token }: CredentialOptions,
  environment: Environment,
): string {
  const own = productSecret ?? token ?? nonEmpty(environment['LATCHKEY_TOKEN']);
  return own ?? nonEmpty(environment['LATCHKEY_TOKEN_FILE']) ?? '';
}

function readToken(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    throw new ConfigurationError(`LATCHKEY_TOKEN_FILE: ${(error as Error).message}`);
  }
}

/** A secret from an existing store may contain spaces. A token contains none. */
const oneLine = /^[ -~]+$/;
const oneWord = /^[!-~]+$/;

/** Plain JavaScript may pass a value that is not a string. The error does not show the value: it is a secret. */
function checked(text: unknown, name: string, pattern: RegExp): string {
  const value = typeof text === 'string' ? text.trim() : null;
  if (value === '') throw new ConfigurationError(`${name} is empty.`);
  if (value === null || !pattern.test(value)) {
    const wanted = pattern === oneWord ? 'one word' : 'one line';
    throw new ConfigurationError(`${name} is not a credential: it must be ${wanted} of printable ASCII.`);
  }
  return value;
}
