import type { Dispatcher } from 'undici';
import { type Coupon, type CouponTerms, foldCouponCode } from '../domain/checkout/coupon.ts';
import { instanceHeader, requestIdHeader } from '../domain/header-names.ts';
import type { License } from '../domain/license.ts';
import { notApplied, type Outcome } from '../domain/outbox/outcome.ts';
import type { Clock, CouponPage, Upstream, UpstreamChange, UpstreamPage } from '../service/ports.ts';
import { classify, sentAtOf, type Understanding } from './classification.ts';
import type { ConnectionSettings } from './connections.ts';
import type { Dialect, RequestKind } from './dialects.ts';
import { networkTransport, type Transport } from './exchange.ts';
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
  /** Told each request and what came of it. */
  onOutcome?: (request: SentRequest) => void;
  /** Told the upstream's own clock, in epoch ms (null: it did not say), with every answer in the specification's shape. */
  onDate?: (epochMs: number | null) => void;
};

/** A request that was made, and what came of it: never a credential or a license key. */
export type SentRequest = {
  method: 'GET' | 'PUT' | 'POST';
  /** Below `/api/v2`. */
  path: string;
  requestId: string | null;
  outcome: Outcome<unknown>['outcome'];
  /** Of the answer; null: none came. */
  status: number | null;
  /** In ms. */
  durationMs: number;
};

/** What the client of an upstream needs to know. */
export type PlainUpstreamSettings = ConnectionSettings & SpecificationSettings;

/** The clock by which answers are dated. */
export type UpstreamClock = Pick<Clock, 'now' | 'elapsed'> & {
  /**
   * Epoch ms that no later answer of the upstream takes back; null before its first answer. Answers are dated by it, so
   * that none ever lies in the future.
   */
  confirmed(): number | null;
};

/** How each request is sent. */
const methods: Readonly<Record<RequestKind, 'GET' | 'PUT' | 'POST'>> = {
  verify: 'GET',
  change: 'PUT',
  createCoupon: 'POST',
  listCoupons: 'GET',
  getCoupon: 'GET',
};

/** `requestId`: by which the request is found again in the upstream's log, where something here asked for it. */
type Route = { request: RequestKind; path: string; requestId?: string | null; signal: AbortSignal };

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
  clock: UpstreamClock,
): Upstream & AsyncDisposable {
  return plainUpstreamOver(networkTransport(settings), settings, clock);
}

/** The same client over whatever carries its requests. */
export function plainUpstreamOver(
  transport: Transport,
  settings: SpecificationSettings,
  clock: UpstreamClock,
): Upstream & AsyncDisposable {
  return new PlainUpstream(transport, settings, clock);
}

class PlainUpstream implements Upstream, AsyncDisposable {
  readonly #transport: Transport;
  readonly #settings: SpecificationSettings;
  readonly #clock: UpstreamClock;
  readonly #base: URL;

  constructor(transport: Transport, settings: SpecificationSettings, clock: UpstreamClock) {
    this.#transport = transport;
    this.#settings = settings;
    this.#clock = clock;
    this.#base = new URL(settings.baseUrl);
  }

  verify(productKey: string, licenseKey: string, signal: AbortSignal): Promise<Outcome<License>> {
    return this.#askLicense(productKey, licenseKey, { request: 'verify', path: '/license/verify', signal });
  }

  change(
    { productKey, licenseKey, kind, requestId }: UpstreamChange,
    signal: AbortSignal,
  ): Promise<Outcome<License>> {
    const route: Route = { request: 'change', path: `/license/${kind}`, requestId, signal };
    return this.#askLicense(productKey, licenseKey, route);
  }

  createCoupon(
    terms: CouponTerms,
    { requestId }: Pick<UpstreamChange, 'requestId'>,
    signal: AbortSignal,
  ): Promise<Outcome<Coupon>> {
    const sameCode = ({ code }: Coupon): boolean => foldCouponCode(code) === foldCouponCode(terms.code);
    const route: Route = { request: 'createCoupon', path: '/coupons', requestId, signal };
    return this.#askCoupons(route, writeCoupon(terms), (body) => readCoupon(body, sameCode));
  }

  listCoupons({ limit, offset, cursor }: UpstreamPage, signal: AbortSignal): Promise<Outcome<CouponPage>> {
    const begin = cursor === undefined ? { offset: String(offset) } : { cursor };
    const parameters = { limit: String(limit), ...begin };
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
    if (credential === null) return withoutCredential('no secret is configured for the product of this key');
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
    const startedAt = this.#clock.elapsed();
    const { came, leave } = await this.#transport.send(this.#requestOf(question), question.signal);
    const { dialect, self } = this.#settings;
    const { read, request, credential } = question;
    const hidden = [credential, ...question.hidden];
    const [now, confirmed] = [this.#clock.now(), this.#clock.confirmed()];
    const outcome = classify(came, { read, request, dialect, self, hidden, now, confirmed });
    this.#settings.onOutcome?.({
      method: methods[request],
      path: question.path,
      requestId: question.requestId ?? null,
      outcome: outcome.outcome,
      status: came.type === 'answered' ? came.status : null,
      durationMs: this.#clock.elapsed() - startedAt,
    });
    if (outcome.outcome === 'ambiguous') leave();
    if (outcome.outcome !== 'applied' || outcome.isCached || came.type !== 'answered') return outcome;
    this.#settings.onDate?.(sentAtOf(came));
    // The answer may just have shown that the clock was ahead, and a later one may still show that.
    const latest = this.#clock.confirmed() ?? this.#clock.now();
    return { ...outcome, confirmedAt: Math.min(outcome.confirmedAt, latest) };
  }

  #requestOf({
    request,
    path,
    parameters,
    header,
    credential,
    requestId = null,
  }: Question<unknown>): Dispatcher.DispatchOptions {
    const encoded = new URLSearchParams(parameters).toString();
    const target = `${this.#base.pathname.replace(/\/$/, '')}/api/v2${path}`;
    const { userAgent, self } = this.#settings;
    const headers = {
      accept: 'application/json',
      // Left out, it would allow any (RFC 9110 section 12.5.3), and nothing here takes them apart.
      'accept-encoding': 'identity',
      // A cache on the way must not answer for the store: a lost answer is settled by what a read says.
      'cache-control': 'no-cache',
      'user-agent': userAgent,
      // Our own listener, should this lead to it, must not ask upstream in turn.
      ...(self !== null && { [instanceHeader.toLowerCase()]: self }),
      ...(requestId !== null && { [requestIdHeader.toLowerCase()]: requestId }),
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
  return notApplied('unauthorized', detail);
}
