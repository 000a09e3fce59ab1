import { randomBytes, randomUUID } from 'node:crypto';
import type { AddressOptions } from './address.ts';
import {
  credentialHeader,
  credentialScope,
  type CredentialKind,
  type CredentialOptions,
} from './credential.ts';
import {
  AgentUnavailableError,
  ConfigurationError,
  isProblem,
  LeaseError,
  ProblemError,
  type ProblemCode,
} from './error.ts';
import { LastKnown, type LastKnownOptions } from './last-known.ts';
import {
  checkNow,
  checkTrust,
  leaseRefusals,
  readDocuments,
  verifyLease,
  type LeaseTrust,
  type LeaseVerdict,
} from './lease.ts';
import { isMs, RetryingTransport, type CallOptions, type RetryOptions } from './retry.ts';
import type { Request } from './transport.ts';
import type { Cart, ChangedLicense, Quote, Redemption, Undetermined, Verdict } from './types.ts';
import {
  readLicenseBody,
  readProvenance,
  readQuote,
  readRedemption,
  writeCart,
  type Headers,
} from './wire.ts';

/** Where the agent is, and the credentials of the program. Every option has a default. */
export interface ConnectOptions extends AddressOptions, CredentialOptions {
  /** Stores verdicts in a file, for the time when the agent itself is down. Default: nothing is stored. */
  readonly lastKnown?: LastKnownOptions | undefined;
  /** What `lease` trusts. The calls then need no secret: a holder asks for none. */
  readonly leases?: LeaseTrust | undefined;
}

export interface LeaseOptions extends CallOptions {
  /** Whether the issuer has to sign the nonce now. If it cannot be reached, the device has signed it: see `nonceSignedBy`. */
  readonly fresh?: boolean | undefined;
  /** The time at which the lease must be valid. Default: the system clock. */
  readonly now?: Date | number | undefined;
}

export interface ChangeOptions extends CallOptions {
  /**
   * The key under which the change counts once. Default: a new key for each call. If the program may restart before
   * the answer, pass a key and store it together with the reason for the change. 1 to 255 printable characters.
   */
  readonly idempotencyKey?: string | undefined;
  /** How long the agent waits for the store's confirmation, in ms, up to 30,000. Default: it does not wait. */
  readonly waitMs?: number | undefined;
}

/** The refusals that mean that there is no such key. An empty or an overlong text cannot be a key. */
const noSuchKey: readonly ProblemCode[] = ['license_not_found', 'parameters_invalid', 'headers_too_large'];
const readDeadlineMs = 5_000;
const changeDeadlineMs = 15_000;
/** An agent that starts on a busy machine is ready by then. */
const defaultReachMs = 2_000;
/** How long a holder waits for the issuer, in seconds. */
const issuerWaitS = 5;

/**
 * Makes a client of the agent on this machine. The first call looks for the agent, and so does every call after the
 * agent stopped answering.
 *
 * @example
 * const latchkey = connect({ productSecret: 'the-product-secret' });
 */
export function connect(options: ConnectOptions = {}): LatchkeyClient {
  return new LatchkeyClient(options);
}

/** A client of a Latchkey agent (src/http/README.md). It can be shared: calls may run at the same time. */
export class LatchkeyClient {
  readonly #options: ConnectOptions;
  readonly #transport: RetryingTransport;
  readonly #lastKnown: LastKnown | null;
  /** The highest version of a key statement that was seen. */
  #keysVersion = 0;

  constructor(options: ConnectOptions) {
    this.#options = options;
    this.#transport = new RetryingTransport(options);
    const { lastKnown, leases } = options;
    if (leases !== undefined) checkTrust(leases);
    const scope = credentialScope(options, process.env);
    this.#lastKnown = lastKnown === undefined ? null : new LastKnown(lastKnown, scope);
  }

  /**
   * Says whether a license key may be used. A failure on the way is a verdict, too: `undetermined`. Rejects with the
   * signal's reason, or with a `ProblemError` or a `ConfigurationError` if the program itself does something wrong,
   * such as sending a wrong credential.
   *
   * @example
   * const verdict = await latchkey.verify('WTKP4-66NL5-HMKQW-GFSCZ');
   * if (verdict.verdict === 'valid') console.log(verdict.license.buyerEmail);
   */
  async verify(licenseKey: string, options: CallOptions = {}): Promise<Verdict> {
    const verdict = await this.#verify(licenseKey, options);
    return (await this.#lastKnown?.resolve(licenseKey, verdict)) ?? verdict;
  }

  /**
   * Asks a holder for the lease of a license key, with a fresh nonce, and checks it with the root keys of the vendor
   * (`connect({ leases })`). A program that only answers on the holder's port, or repeats a recorded answer, gets the verdict
   * `undetermined`.
   *
   * @example
   * const latchkey = connect({ leases: { issuer, product, roots } });
   * const said = await latchkey.lease('WTKP4-66NL5-HMKQW-GFSCZ');
   * if (said.verdict === 'valid') console.log(said.license.uses, said.expiresAt);
   */
  async lease(
    licenseKey: string,
    { fresh = false, now, ...options }: LeaseOptions = {},
  ): Promise<LeaseVerdict> {
    const trust = this.#options.leases;
    if (trust === undefined) throw new ConfigurationError('Give connect() the option leases.');
    if (typeof fresh !== 'boolean') throw new ConfigurationError('fresh must be true or false.');
    // Before the request: a mistake of the program is no verdict.
    const nowMs = now === undefined ? undefined : checkNow(now);
    const nonce = randomBytes(32).toString('base64url');
    const { method, headers, ...rest } = this.#request(
      'GET',
      `/agent/v1/lease?${this.#licenseForm(licenseKey)}&nonce=${nonce}`,
      'productSecret',
    );
    const prefer = fresh ? { prefer: `wait=${issuerWaitS}` } : {};
    const deadlineMs = readDeadlineMs + (fresh ? issuerWaitS * 1000 : 0);
    try {
      const { value: documents } = await this.#send(
        { method, headers: { ...headers, ...prefer }, ...rest },
        readOptions(options, false, deadlineMs),
        readDocuments,
      );
      const minKeysVersion = Math.max(this.#keysVersion, trust.minKeysVersion ?? 0);
      const verdict = verifyLease({ ...trust, ...documents, minKeysVersion, licenseKey, nonce, now: nowMs });
      this.#keysVersion = Math.max(this.#keysVersion, verdict.keysVersion);
      return verdict;
    } catch (error) {
      return leaseFailure(error);
    }
  }

  /**
   * Counts a use of the key.
   *
   * @example
   * const { license } = await latchkey.use('WTKP4-66NL5-HMKQW-GFSCZ', { idempotencyKey: 'install 4711' });
   */
  async use(licenseKey: string, options: ChangeOptions = {}): Promise<ChangedLicense> {
    return await this.#change('usage', licenseKey, options);
  }

  /** Takes back a use of the key. At 0 uses it changes nothing. */
  async undo(licenseKey: string, options: ChangeOptions = {}): Promise<ChangedLicense> {
    return await this.#change('decrease', licenseKey, options);
  }

  /** Disables the key: the agent refuses it from now on. */
  async disable(licenseKey: string, options: ChangeOptions = {}): Promise<ChangedLicense> {
    return await this.#change('disable', licenseKey, options);
  }

  /** Enables the key. The returned license is not `enabled` before the store has confirmed the change. */
  async enable(licenseKey: string, options: ChangeOptions = {}): Promise<ChangedLicense> {
    return await this.#change('enable', licenseKey, options);
  }

  /**
   * Computes what a coupon takes off a cart. It needs an API key, or a token with the scope `coupons:read`.
   *
   * @example
   * const cart = { code: 'SPRING', items: [{ productKey: 'RGsF', amount: 1_900 }] };
   * const { redeemable, total } = await latchkey.quote(cart);
   */
  async quote(cart: Cart, options: CallOptions = {}): Promise<Quote> {
    const request = this.#request('POST', '/agent/v1/quote', 'apiKey', writeCart(cart));
    return (await this.#send(request, readOptions(options, true), readQuote)).value;
  }

  /**
   * Redeems a coupon for an order, once. It needs an API key, or a token with the scope `coupons:write`.
   *
   * @example
   * const { discount } = await latchkey.redeem('order-1017', cart);
   */
  async redeem(order: string, cart: Cart, options: ChangeOptions = {}): Promise<Redemption> {
    const request = this.#request('POST', '/agent/v1/redemptions', 'apiKey', { order, ...writeCart(cart) });
    return (await this.#send(...asChange(request, options), readRedemption)).value;
  }

  /**
   * Ends the running calls as if the agent did not answer: a change may have been counted. Closes the idle
   * connections. A program also exits without this call.
   */
  close(): void {
    this.#transport.close();
  }

  async #verify(licenseKey: string, options: CallOptions): Promise<Verdict> {
    const path = `/api/v2/license/verify?${this.#licenseForm(licenseKey)}`;
    try {
      const request = this.#request('GET', path, 'productSecret');
      const { value: license, headers } = await this.#send(
        request,
        readOptions(options, false),
        readLicenseBody,
      );
      if (!license.enabled) return { verdict: 'refused', reason: 'disabled', license, source: 'agent' };
      return { verdict: 'valid', license, source: 'agent', ...readProvenance(headers) };
    } catch (error) {
      if (noSuchKey.some((code) => isProblem(error, code))) {
        return { verdict: 'refused', reason: 'not_found', license: null, source: 'agent' };
      }
      const reason = undeterminedReason(error);
      if (reason === null) throw error;
      return { verdict: 'undetermined', reason, license: null, error: error as Undetermined['error'] };
    }
  }

  async #change(action: string, licenseKey: string, options: ChangeOptions): Promise<ChangedLicense> {
    const path = `/api/v2/license/${action}`;
    const request = this.#request('PUT', path, 'productSecret', this.#licenseForm(licenseKey));
    const { value: license, headers } = await this.#send(...asChange(request, options), readLicenseBody);
    return { license, ...readProvenance(headers) };
  }

  /** A holder that has several products needs the product, too. */
  #licenseForm(licenseKey: unknown): string {
    // Plain JavaScript may pass a value that is not a string. Without this check, the key would be "undefined".
    if (typeof licenseKey !== 'string') {
      const type = licenseKey === null ? 'null' : typeof licenseKey;
      throw new ConfigurationError(`The license key must be a string, not ${type}.`);
    }
    const product = this.#options.leases?.product;
    const form = { license_key: licenseKey, ...(product !== undefined && { product_key: product }) };
    return new URLSearchParams(form).toString();
  }

  async #send<Value>(
    request: Request,
    options: RetryOptions,
    read: (body: unknown) => Value | null,
  ): Promise<{ value: Value; headers: Headers }> {
    const { body, headers } = await this.#transport.send(request, options);
    const value = read(body);
    if (value !== null) return { value, headers };
    const { idempotencyKey } = options;
    const details = { idempotencyKey, mayHaveCounted: idempotencyKey !== null };
    throw new AgentUnavailableError('Cannot read the response: is this a Latchkey agent?', details);
  }

  /** `body`: a string is sent as a form, an object as JSON. */
  #request(
    method: Request['method'],
    path: string,
    credential: CredentialKind,
    body: string | object | null = null,
  ): Request {
    const type = typeof body === 'string' ? 'application/x-www-form-urlencoded' : 'application/json';
    const headers = {
      // With this header the agent answers with problem details, whatever dialect it is configured to speak.
      accept: 'application/problem+json, application/json',
      ...credentialHeader(this.#options, credential, process.env),
      ...(body !== null && { 'content-type': type }),
    };
    const text = typeof body === 'string' || body === null ? body : JSON.stringify(body);
    return { method, path, headers, body: text };
  }
}

/** The verdict if there is no lease that can be believed. Throws the mistakes of the program itself. */
function leaseFailure(error: unknown): LeaseVerdict {
  if (error instanceof LeaseError) {
    return { verdict: 'undetermined', reason: error.code === 'expired' ? 'expired' : 'not_proven', error };
  }
  if (isProblem(error)) {
    const refusal = leaseRefusals[error.code];
    if (refusal !== undefined) return { verdict: 'refused', reason: refusal, isSigned: false, error };
  }
  // The issuer did not understand the holder: this is no mistake of the program.
  const isOfHolder = isProblem(error, 'lease_request_invalid') || isProblem(error, 'out_of_sequence');
  const reason = isOfHolder ? 'unknown' : undeterminedReason(error);
  if (reason === null) throw error;
  return { verdict: 'undetermined', reason, error: error as AgentUnavailableError | ProblemError };
}

function readOptions(
  options: CallOptions,
  retriesUntilDeadline: boolean,
  defaultMs = readDeadlineMs,
): RetryOptions {
  return { ...limitsOf(options, defaultMs), idempotencyKey: null, retriesUntilDeadline };
}

/** Adds the idempotency key to a request, and gives the options to send it with. */
function asChange(request: Request, options: ChangeOptions): [Request, RetryOptions] {
  const { waitMs = 0, idempotencyKey = randomUUID(), ...callOptions } = options;
  if (!isMs(waitMs, 30_000)) throw new ConfigurationError('waitMs must be 0 to 30,000.');
  const headers = {
    ...request.headers,
    'idempotency-key': quoted(idempotencyKey),
    ...(waitMs > 0 && { prefer: `wait=${Math.ceil(waitMs / 1_000)}` }),
  };
  const limits = limitsOf(callOptions, changeDeadlineMs + waitMs);
  return [
    { ...request, headers },
    { ...limits, idempotencyKey, retriesUntilDeadline: true },
  ];
}

/** Writes a string of RFC 8941, so that a key may contain spaces. */
function quoted(idempotencyKey: unknown): string {
  if (typeof idempotencyKey !== 'string' || !/^[ -~]{1,255}$/.test(idempotencyKey)) {
    throw new ConfigurationError('An idempotencyKey has 1 to 255 printable ASCII characters.');
  }
  return `"${idempotencyKey.replaceAll(/["\\\\]/g, String.raw`\$&`)}"`;
}

/** Null: the program itself did something wrong, or ended the call. */
function undeterminedReason(error: unknown): Undetermined['reason'] | null {
  if (error instanceof AgentUnavailableError) return 'agent_unavailable';
  if (!(error instanceof ProblemError)) return null;
  if (error.code === 'upstream_unreachable') return 'unknown';
  if (error.code === 'verdict_expired') return 'expired';
  return error.status >= 500 || error.status === 429 || error.status === 408 ? 'busy' : null;
}

/** How long a call may take. The default deadline is shortened if no agent is reached. */
function limitsOf(
  { deadlineMs, signal }: CallOptions,
  defaultMs: number,
): Pick<RetryOptions, 'deadlineMs' | 'reachMs' | 'signal'> {
  if (deadlineMs === undefined) return { deadlineMs: defaultMs, reachMs: defaultReachMs, signal };
  return { deadlineMs, reachMs: deadlineMs, signal };
}
