import { randomUUID } from 'node:crypto';
import type { AddressOptions } from './address.ts';
import { readQuote, readRedemption, writeCart, type Cart, type Quote, type Redemption } from './checkout.ts';
import {
  credentialHeader,
  credentialScope,
  type CredentialKind,
  type CredentialOptions,
} from './credential.ts';
import { AgentAwayError, ConfigurationError, isProblem, ProblemError } from './error.ts';
import { Exchange, isMs, type CallOptions, type Exchanging } from './exchange.ts';
import { LastKnown, type LastKnownOptions } from './last-known.ts';
import { readAnsweredLicense, readProvenance, type ChangedLicense } from './license.ts';
import type { ProblemCode } from './problem-code.ts';
import type { Reply, Request } from './transport.ts';
import type { Undetermined, Verdict } from './verdict.ts';

/** Where the agent is, who asks, and what is remembered; each may be left out. */
export interface ConnectOptions extends AddressOptions, CredentialOptions {
  /** Remembers verdicts for the time when the agent itself is down; default: nothing is. */
  readonly lastKnown?: LastKnownOptions | undefined;
}

export interface ChangeOptions extends CallOptions {
  /**
   * Made anew for each call unless it is given: one of your own, kept with what the change is for, makes it count
   * once also when the program is started again in between. 1 to 255 printable characters.
   */
  readonly idempotencyKey?: string | undefined;
  /** How long the agent waits for the store's confirmation, in ms, up to 30,000; default: it does not. */
  readonly waitMs?: number | undefined;
}

/** What is said of a key that nobody sold, and of what can be none: empty, or longer than any. */
const noKey: readonly ProblemCode[] = ['license_not_found', 'parameters_invalid', 'headers_too_large'];
const askingMs = 5_000;
const changingMs = 15_000;

/** Finds the agent of this machine when it is first asked, and again whenever it does not answer. */
export function connect(options: ConnectOptions = {}): LatchkeyClient {
  return new LatchkeyClient(options);
}

/** Asks a Latchkey agent (src/http/README.md). Safe to share: calls run side by side. */
export class LatchkeyClient {
  readonly #options: ConnectOptions;
  readonly #exchange: Exchange;
  readonly #lastKnown: LastKnown | null;

  constructor(options: ConnectOptions) {
    this.#options = options;
    this.#exchange = new Exchange(options);
    const { lastKnown } = options;
    const scope = credentialScope(options, process.env);
    this.#lastKnown = lastKnown === undefined ? null : new LastKnown(lastKnown, scope);
  }

  /**
   * Tells what is to be thought of a license key. What goes wrong on the way is a verdict, `undetermined`; it
   * rejects with the signal's reason, and with a `ProblemError` or `ConfigurationError` for what the program itself
   * does wrong, such as a credential that is refused.
   */
  async verify(licenseKey: string, options: CallOptions = {}): Promise<Verdict> {
    const said = await this.#ask(licenseKey, options);
    return (await this.#lastKnown?.judge(licenseKey, said)) ?? said;
  }

  /** Counts a use of the key. */
  async use(licenseKey: string, options: ChangeOptions = {}): Promise<ChangedLicense> {
    return await this.#change('usage', licenseKey, options);
  }

  /** Takes a use of the key back; at 0 it changes nothing. */
  async undo(licenseKey: string, options: ChangeOptions = {}): Promise<ChangedLicense> {
    return await this.#change('decrease', licenseKey, options);
  }

  /** Disables the key: it is refused from now on. */
  async disable(licenseKey: string, options: ChangeOptions = {}): Promise<ChangedLicense> {
    return await this.#change('disable', licenseKey, options);
  }

  /** Enables the key; until the store agrees, the license that is answered is not `enabled`. */
  async enable(licenseKey: string, options: ChangeOptions = {}): Promise<ChangedLicense> {
    return await this.#change('enable', licenseKey, options);
  }

  /** Tells what a coupon takes off a cart; needs an API key, or a token of scope `coupons:read`. */
  async quote(cart: Cart, options: CallOptions = {}): Promise<Quote> {
    const request = this.#request('POST', '/agent/v1/quote', 'apiKey', writeCart(cart));
    const asking = { deadlineMs: askingMs, ...filledIn(options), idempotencyKey: null, persists: true };
    return (await this.#make(request, asking, readQuote)).value;
  }

  /** Redeems a coupon for an order, once; needs an API key, or a token of scope `coupons:write`. */
  async redeem(order: string, cart: Cart, options: ChangeOptions = {}): Promise<Redemption> {
    const request = this.#request('POST', '/agent/v1/redemptions', 'apiKey', { order, ...writeCart(cart) });
    return (await this.#make(...changing(request, options), readRedemption)).value;
  }

  /**
   * Ends the calls that are under way, as if the agent did not answer: a change may have been counted. Closes the kept
   * connections, which keep no program alive without it.
   */
  close(): void {
    this.#exchange.close();
  }

  async #ask(licenseKey: string, options: CallOptions): Promise<Verdict> {
    const path = `/api/v2/license/verify?${formOf(licenseKey)}`;
    const asking = { deadlineMs: askingMs, ...filledIn(options), idempotencyKey: null, persists: false };
    try {
      const request = this.#request('GET', path, 'productSecret');
      const { value: license, headers } = await this.#make(request, asking, readAnsweredLicense);
      if (!license.enabled) return { verdict: 'refused', reason: 'disabled', license, source: 'agent' };
      return { verdict: 'valid', license, source: 'agent', ...readProvenance(headers) };
    } catch (error) {
      if (noKey.some((code) => isProblem(error, code))) {
        return { verdict: 'refused', reason: 'not_found', license: null, source: 'agent' };
      }
      const reason = reasonOf(error);
      if (reason === null) throw error;
      return { verdict: 'undetermined', reason, license: null, error: error as Undetermined['error'] };
    }
  }

  async #change(what: string, licenseKey: string, options: ChangeOptions): Promise<ChangedLicense> {
    const request = this.#request('PUT', `/api/v2/license/${what}`, 'productSecret', formOf(licenseKey));
    const { value: license, headers } = await this.#make(...changing(request, options), readAnsweredLicense);
    return { license, ...readProvenance(headers) };
  }

  async #make<Value>(
    request: Request,
    asking: Exchanging,
    read: (body: unknown) => Value | null,
  ): Promise<{ value: Value; headers: Reply['headers'] }> {
    const { body, headers } = await this.#exchange.make(request, asking);
    const value = read(body);
    if (value !== null) return { value, headers };
    const { idempotencyKey } = asking;
    const details = { idempotencyKey, mayHaveCounted: idempotencyKey !== null };
    throw new AgentAwayError('The answer is not understood: is it a Latchkey agent?', details);
  }

  /** `body`: a form as text, or what becomes JSON. */
  #request(
    method: Request['method'],
    path: string,
    credential: CredentialKind,
    body: string | object | null = null,
  ): Request {
    const type = typeof body === 'string' ? 'application/x-www-form-urlencoded' : 'application/json';
    const headers = {
      // Problems are asked for by name, whichever dialect the agent speaks to others.
      accept: 'application/problem+json, application/json',
      ...credentialHeader(this.#options, credential, process.env),
      ...(body !== null && { 'content-type': type }),
    };
    const text = typeof body === 'string' || body === null ? body : JSON.stringify(body);
    return { method, path, headers, body: text };
  }
}

/** Plain JavaScript may give what is no string, of which a text such as `undefined` would be asked for. */
function formOf(licenseKey: unknown): string {
  if (typeof licenseKey !== 'string') {
    const given = licenseKey === null ? 'null' : typeof licenseKey;
    throw new ConfigurationError(`The license key must be a string, not ${given}.`);
  }
  return new URLSearchParams({ license_key: licenseKey }).toString();
}

/** A request under its idempotency key, and how it is asked. */
function changing(request: Request, options: ChangeOptions): [Request, Exchanging] {
  const { waitMs = 0, idempotencyKey = randomUUID(), ...calling } = options;
  if (!isMs(waitMs, 30_000)) throw new ConfigurationError('waitMs is 0 to 30,000.');
  const headers = {
    ...request.headers,
    'idempotency-key': quoted(idempotencyKey),
    ...(waitMs > 0 && { prefer: `wait=${Math.ceil(waitMs / 1_000)}` }),
  };
  const asking = { deadlineMs: changingMs + waitMs, ...filledIn(calling), idempotencyKey, persists: true };
  return [{ ...request, headers }, asking];
}

/** As a string of RFC 8941, in which a key may have spaces. */
function quoted(idempotencyKey: unknown): string {
  if (typeof idempotencyKey !== 'string' || !/^[ -~]{1,255}$/.test(idempotencyKey)) {
    throw new ConfigurationError('An idempotencyKey has 1 to 255 printable ASCII characters.');
  }
  return `"${idempotencyKey.replaceAll(/["\\\\]/g, String.raw`\$&`)}"`;
}

/** Why nobody can say; null: the program itself did something wrong, or ended the call. */
function reasonOf(error: unknown): Undetermined['reason'] | null {
  if (error instanceof AgentAwayError) return 'agent_away';
  if (!(error instanceof ProblemError)) return null;
  if (error.code === 'upstream_unreachable') return 'unknown';
  if (error.code === 'verdict_expired') return 'expired';
  return error.status >= 500 || error.status === 429 || error.status === 408 ? 'busy' : null;
}

/** A deadline that is given as `undefined` is the default one. */
function filledIn({ deadlineMs, signal }: CallOptions): { deadlineMs?: number; signal?: AbortSignal } {
  return { ...(deadlineMs !== undefined && { deadlineMs }), ...(signal !== undefined && { signal }) };
}
