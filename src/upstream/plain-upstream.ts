import type { Dispatcher } from 'undici';
import { type Coupon, type CouponTerms, foldCouponCode } from '../domain/coupon.ts';
import { instanceHeader } from '../domain/header-names.ts';
import type { License } from '../domain/license.ts';
import type { LicenseOperationKind } from '../domain/operation.ts';
import type { Outcome } from '../domain/outcome.ts';
import type { Clock, CouponPage, Upstream } from '../service/ports.ts';
import type { Page } from '../domain/page.ts';
import { classify, sentAtOf, type Understanding } from './classification.ts';
import type { ConnectionSettings } from './connections.ts';
import type { Dialect, RequestKind } from './dialects/dialect.ts';
import { networkTransport, type Transport } from './transport.ts';
import { readCoupon, readLicense, writeCoupon, writeLicenseKey } from './wire.ts';

/** How requests of the specification are made and their answers understood; the functions are asked anew for each request. */
export type SpecificationSettings = Pick<ConnectionSettings, 'baseUrl'> & {
  apiKey: () => string | null;
  secretOf: (productKey: string) => string | null;
  /** The names of the headers that carry the credentials. */
  headers: { apiKey: string; productSecret: string };
  dialect: Dialect;
  /** What we call ourselves (`User-Agent`). */
  userAgent: string;
  /** The instance id of this process, by which it knows its own answers; null: it has none. */
  self: string | null;
  /** Told the upstream's own clock, in epoch ms (null: it did not say), with every answer in the specification's shape. */
  onDate?: (epochMs: number | null) => void;
};

/** What the client of an upstream needs to know. */
export type PlainUpstreamSettings = ConnectionSettings & SpecificationSettings;

/** How each request is sent. */
const methods: Readonly<Record<RequestKind, 'GET' | 'PUT' | 'POST'>> = {
  verify: 'GET',
  change: 'PUT',
  createCoupon: 'POST',
  listCoupons: 'GET',
  getCoupon: 'GET',
};

type Route = { request: RequestKind; path: string; signal: AbortSignal };

/** One request of the specification. Parameters go into the query of a GET, into the form of anything else. */
type Question<Value> = Route & {
  parameters: Record<string, string>;
  header: string;
  credential: string;
  /** Beside the credential, what no detail may repeat. */
  hidden: readonly string[];
  read: Understanding<Value>['read'];
};

/** Makes the client of a server that speaks the specification, in one dialect or another, and nothing else. */
export function plainUpstream(
  settings: PlainUpstreamSettings,
  clock: Pick<Clock, 'now'>,
): Upstream & AsyncDisposable {
  return plainUpstreamOver(networkTransport(settings), settings, clock);
}

/** The same client over whatever carries its requests. */
export function plainUpstreamOver(
  transport: Transport,
  settings: SpecificationSettings,
  clock: Pick<Clock, 'now'>,
): Upstream & AsyncDisposable {
  return new PlainUpstream(transport, settings, clock);
}

class PlainUpstream implements Upstream, AsyncDisposable {
  readonly #transport: Transport;
  readonly #settings: SpecificationSettings;
  readonly #clock: Pick<Clock, 'now'>;
  readonly #base: URL;

  constructor(transport: Transport, settings: SpecificationSettings, clock: Pick<Clock, 'now'>) {
    this.#transport = transport;
    this.#settings = settings;
    this.#clock = clock;
    this.#base = new URL(settings.baseUrl);
  }

  verify(productKey: string, licenseKey: string, signal: AbortSignal): Promise<Outcome<License>> {
    return this.#askLicense(productKey, licenseKey, { request: 'verify', path: '/license/verify', signal });
  }

  change(
    productKey: string,
    licenseKey: string,
    kind: LicenseOperationKind,
    signal: AbortSignal,
  ): Promise<Outcome<License>> {
    return this.#askLicense(productKey, licenseKey, { request: 'change', path: `/license/${kind}`, signal });
  }

  createCoupon(terms: CouponTerms, signal: AbortSignal): Promise<Outcome<Coupon>> {
    const sameCode = ({ code }: Coupon): boolean => foldCouponCode(code) === foldCouponCode(terms.code);
    const route: Route = { request: 'createCoupon', path: '/coupons', signal };
    return this.#askCoupons(route, writeCoupon(terms), (body) => readCoupon(body, sameCode));
  }

  listCoupons({ limit, offset }: Page, signal: AbortSignal): Promise<Outcome<CouponPage>> {
    const parameters = { limit: String(limit), offset: String(offset) };
    const route: Route = { request: 'listCoupons', path: '/coupons', signal };
    return this.#askCoupons(route, parameters, (body) => this.#settings.dialect.readCoupons(body));
  }

  getCoupon(id: number, signal: AbortSignal): Promise<Outcome<Coupon>> {
    const route: Route = { request: 'getCoupon', path: `/coupons/${id}`, signal };
    return this.#askCoupons(route, {}, (body) => readCoupon(body, (coupon) => coupon.id === id));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#transport[Symbol.asyncDispose]();
  }

  async #askLicense(productKey: string, licenseKey: string, route: Route): Promise<Outcome<License>> {
    const credential = this.#settings.secretOf(productKey);
    if (credential === null) return withoutCredential(`no secret is configured for product ${productKey}`);
    return this.#ask({
      ...route,
      parameters: writeLicenseKey(licenseKey),
      header: this.#settings.headers.productSecret,
      credential,
      hidden: [licenseKey],
      read: (body) => readLicense(body, licenseKey),
    });
  }

  async #askCoupons<Value>(
    route: Route,
    parameters: Record<string, string>,
    read: Understanding<Value>['read'],
  ): Promise<Outcome<Value>> {
    const credential = this.#settings.apiKey();
    if (credential === null) return withoutCredential('no API key is configured');
    const header = this.#settings.headers.apiKey;
    return this.#ask({ ...route, parameters, header, credential, hidden: [], read });
  }

  async #ask<Value>(question: Question<Value>): Promise<Outcome<Value>> {
    const { came, leave } = await this.#transport.send(this.#requestOf(question), question.signal);
    const { dialect, self } = this.#settings;
    const { read, request, credential } = question;
    const hidden = [credential, ...question.hidden];
    const outcome = classify(came, { read, request, dialect, self, hidden, now: this.#clock.now() });
    if (outcome.outcome === 'ambiguous') leave();
    if (outcome.outcome !== 'applied' || outcome.isCached || came.type !== 'answered') return outcome;
    const sentAt = sentAtOf(came);
    this.#settings.onDate?.(sentAt);
    // The answer may just have shown that the clock was ahead: nothing is confirmed in the future.
    return { ...outcome, confirmedAt: Math.min(outcome.confirmedAt, this.#clock.now()) };
  }

  #requestOf({
    request,
    path,
    parameters,
    header,
    credential,
  }: Question<unknown>): Dispatcher.DispatchOptions {
    const encoded = new URLSearchParams(parameters).toString();
    const target = `${this.#base.pathname.replace(/\/+$/, '')}/api/v2${path}`;
    const { userAgent, self } = this.#settings;
    const headers = {
      accept: 'application/json',
      // A cache on the way must not answer for the store: a lost answer is settled by what a read says.
      'cache-control': 'no-cache',
      'user-agent': userAgent,
      // Our own listener, should this lead to it, must not ask upstream in turn.
      ...(self !== null && { [instanceHeader.toLowerCase()]: self }),
      [header]: credential,
    };
    const { origin } = this.#base;
    const method = methods[request];
    if (method === 'GET') {
      return { origin, method, path: encoded === '' ? target : `${target}?${encoded}`, headers };
    }
    const form = { ...headers, 'content-type': 'application/x-www-form-urlencoded' };
    return { origin, method, path: target, headers: form, body: encoded };
  }
}

/** Nothing is sent without a credential: it would only be refused. */
function withoutCredential(detail: string): Outcome<never> {
  return { outcome: 'not_applied', reason: 'unauthorized', status: null, detail, retryAfterMs: null };
}
