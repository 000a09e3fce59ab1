import { readFileSync } from 'node:fs';
import { filled, isSocketNamed, type AddressOptions } from './address.ts';
import { ConfigurationError } from './error.ts';

/** What the program shows of itself. A token stands for the others. */
export interface CredentialOptions {
  /**
   * A token (`latchkey token issue`); default: `LATCHKEY_TOKEN`, else what is in the file `LATCHKEY_TOKEN_FILE`,
   * either of which may be the product's secret. A socket with a grant of its own (`url: 'unix:…'`) needs none.
   */
  readonly token?: string | undefined;
  /** The secret of the product, for license keys. */
  readonly productSecret?: string | undefined;
  /** The API key of the account, for coupons at checkout. */
  readonly apiKey?: string | undefined;
}

export type CredentialKind = 'productSecret' | 'apiKey';

/**
 * Gives the header for a kind of route, which takes tokens too; none where a socket is named, which may carry a grant.
 * Throws a `ConfigurationError` when there is nothing to show.
 */
export function credentialHeader(
  options: AddressOptions & CredentialOptions,
  kind: CredentialKind,
  environment: Readonly<Record<string, string | undefined>>,
): Record<string, string> {
  const name = kind === 'apiKey' ? 'service-api-key' : 'product-secret-key';
  const given = options[kind];
  if (given !== undefined) return { [name]: checked(given, kind, oneLine) };
  if (options.token !== undefined) return { [name]: checked(options.token, 'token', oneWord) };
  const ofEnvironment = filled(environment['LATCHKEY_TOKEN']);
  if (ofEnvironment !== undefined) return { [name]: checked(ofEnvironment, 'LATCHKEY_TOKEN', oneLine) };
  const file = filled(environment['LATCHKEY_TOKEN_FILE']);
  if (file !== undefined) return { [name]: checked(read(file), 'LATCHKEY_TOKEN_FILE', oneLine) };
  if (isSocketNamed(options, environment)) return {};
  throw new ConfigurationError(`Give connect() a token or ${kind === 'apiKey' ? 'an' : 'a'} ${kind}.`);
}

/** What sets one product's program apart from another's: its secret, else its token, or the file that keeps one. */
export function credentialScope(
  { productSecret, token }: CredentialOptions,
  environment: Readonly<Record<string, string | undefined>>,
): string {
  const given = productSecret ?? token ?? filled(environment['LATCHKEY_TOKEN']);
  return given ?? filled(environment['LATCHKEY_TOKEN_FILE']) ?? '';
}

function read(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    throw new ConfigurationError(`LATCHKEY_TOKEN_FILE: ${(error as Error).message}`);
  }
}

/** What an existing store issued may have spaces in it (src/http/wire/common/kind.ts); a token has none. */
const oneLine = /^[ -~]+$/;
const oneWord = /^[!-~]+$/;

/** The value itself is not told: it is a secret. Plain JavaScript may give what is no string. */
function checked(text: unknown, name: string, pattern: RegExp): string {
  const value = typeof text === 'string' ? text.trim() : null;
  if (value === '') throw new ConfigurationError(`There is no credential in ${name}.`);
  if (value === null || !pattern.test(value)) {
    const wanted = pattern === oneWord ? 'one word' : 'one line';
    throw new ConfigurationError(`What is in ${name} is no credential, which is ${wanted} of plain ASCII.`);
  }
  return value;
}
