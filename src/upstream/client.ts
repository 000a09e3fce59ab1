import type { Dispatcher } from 'undici';
import { type Coupon, type CouponTerms, foldCouponCode } from '../domain/checkout/coupon.ts';
import { idempotencyKeyHeader, operationHeader, requestIdHeader } from '../domain/header-names.ts';
import type { License } from '../domain/license.ts';
import { notApplied, type Outcome } from '../domain/outbox/outcome.ts';
import type {
  ChangeRequest,
  CouponPage,
  Keyed,
  LatchkeyRequest,
  StoredRedemption,
  SyncUpstream,
  Upstream,
  UpstreamChange,
  UpstreamPage,
  UpstreamRedemption,
} from '../service/ports.ts';
import {
  readRedemption,
  writeRedemption,
  readCoupon,
  readCoupons,
  readLicense,
  writeCoupon,
  writeLicenseKey,
} from './wire.ts';
import { emptyBody, type ResponseContext } from './classification.ts';
import type { ConnectionSettings } from './connections.ts';
import { specification, type Dialect, type RequestKind } from './dialects.ts';
import { networkTransport, type Transport } from './exchange.ts';
import { commonHeaders, type Method, Sender, type SenderSettings, type UpstreamClock } from './sender.ts';

/** How to send requests and read responses; the functions are called for each request. */
export type RequestSettings = SenderSettings &
  Pick<ConnectionSettings, 'baseUrl'> & {
    apiKey: () => string | null;
    secretOf: (productId: string) => string | null;
    /** The names of the headers that carry the credentials. */
    headers: { apiKey: string; productSecret: string };
  };

export type UpstreamClientSettings = ConnectionSettings & RequestSettings;

/** The method of each request. */
const methods = {
  verify: 'GET',
  change: 'PUT',
  createCoupon: 'POST',
  listCoupons: 'GET',
  getCoupon: 'GET',
  redeem: 'POST',
  voidRedemption: 'DELETE',
  probe: 'GET',
  ask: 'POST',
} as const satisfies Partial<Record<RequestKind, Method>>;

/** `requestId`: the id of the caller's request, by which the upstream's log can be searched. */
type Route = { request: keyof typeof methods; path: string; signal: AbortSignal } & Partial<ChangeRequest>;

/**
 * One request. Parameters go into the query of a GET, and into the form of a PUT or POST; a text is sent as JSON, and
 * null is no body.
 */
type ApiCall<Value> = Route & {
  parameters: Record<string, string> | string | null;
  header: string;
  credential: string;
  /** Values to mask in the details of errors, in addition to the credential. */
  hidden: readonly string[];
  read: ResponseContext<Value>['read'];
  /** Absent: the dialect of the settings. */
  dialect?: Dialect;
  /** For how long the upstream may wait for a change. */
  waitMs?: number;
};

/** The client of a server that speaks the specification in one of the dialects, and of the change feed of a Latchkey. */
export function upstreamClient(settings: UpstreamClientSettings, clock: UpstreamClock): UpstreamClient {
  return upstreamClientOver(networkTransport(settings), settings, clock);
}

/** The same client with another transport. */
export function upstreamClientOver(
  transport: Transport,
  settings: RequestSettings,
  clock: UpstreamClock,
): UpstreamClient {
  return new UpstreamClient(transport, settings, clock);
}

class UpstreamClient implements Upstream, SyncUpstream, AsyncDisposable {
  readonly #sender: Sender;
  readonly #settings: RequestSettings;
  readonly #base: URL;

  constructor(transport: Transport, settings: RequestSettings, clock: UpstreamClock) {
    this.#sender = new Sender(transport, settings, clock);
    this.#settings = settings;
    this.#base = new URL(settings.baseUrl);
  }

  verify(productId: string, licenseKey: string, signal: AbortSignal): Promise<Outcome<License>> {
    return this.#callLicense(productId, licenseKey, { request: 'verify', path: '/license/verify', signal });
  }

  async change(
    { productId, licenseKey, kind, amount = 1, ...about }: UpstreamChange,
    signal: AbortSignal,
  ): Promise<Outcome<License>> {
    // It was recorded while the upstream was a store that takes such a use.
    if (amount > 1) return notApplied('refused', `this upstream counts one use at a time, and not ${amount}`);
    const route: Route = { request: 'change', path: `/license/${kind}`, ...about, signal };
    return await this.#callLicense(productId, licenseKey, route);
  }

  createCoupon(terms: CouponTerms, about: ChangeRequest, signal: AbortSignal): Promise<Outcome<Coupon>> {
    const sameCode = ({ code }: Coupon): boolean => foldCouponCode(code) === foldCouponCode(terms.code);
    const route: Route = { request: 'createCoupon', path: '/coupons', ...about, signal };
    return this.#callCoupons(route, writeCoupon(terms), (body) =>
      readCoupon(body, sameCode, { mayBeProvisional: about.keyed !== undefined }),
    );
  }

  listCoupons({ limit, offset, cursor }: UpstreamPage, signal: AbortSignal): Promise<Outcome<CouponPage>> {
    const begin = cursor === undefined ? { offset: String(offset) } : { cursor };
    const parameters = { limit: String(limit), ...begin };
    const route: Route = { request: 'listCoupons', path: '/coupons', signal };
    return this.#callCoupons(route, parameters, readCoupons);
  }

  getCoupon(id: number, signal: AbortSignal): Promise<Outcome<Coupon>> {
    const route: Route = { request: 'getCoupon', path: `/coupons/${id}`, signal };
    return this.#callCoupons(route, {}, (body) => readCoupon(body, (coupon) => coupon.id === id));
  }

  redeem(
    { order, cart, answeredAt, ...about }: UpstreamRedemption,
    signal: AbortSignal,
  ): Promise<Outcome<StoredRedemption>> {
    const route: Route = { request: 'redeem', path: redemptionPath, ...about, signal };
    const body = writeRedemption({ order, cart, answeredAt });
    return this.#callCoupons(route, body, (answer) => readRedemption(answer, order));
  }

  voidRedemption(
    { order, ...about }: ChangeRequest & { order: string },
    signal: AbortSignal,
  ): Promise<Outcome<null>> {
    const path = `${redemptionPath}/${encodeURIComponent(order)}`;
    const route: Route = { request: 'voidRedemption', path, ...about, signal };
    return this.#callCoupons(route, null, (body) =>
      body === emptyBody ? { value: null } : { fault: 'the response is not that of a void' },
    );
  }

  probe(productId: string, signal: AbortSignal): Promise<Outcome<null>> {
    const route: Route = { request: 'probe', path: '/sync/v1', signal };
    return this.#callProduct(productId, {
      ...latchkeyOnly,
      ...route,
      parameters: {},
      hidden: [],
      read: noValue,
    });
  }

  ask<Value>(
    productId: string,
    { body: parameters, ...rest }: LatchkeyRequest<Value>,
    signal: AbortSignal,
  ): Promise<Outcome<Value>> {
    return this.#callProduct(productId, { ...latchkeyOnly, ...rest, request: 'ask', parameters, signal });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#sender[Symbol.asyncDispose]();
  }

  #callLicense(productId: string, licenseKey: string, route: Route): Promise<Outcome<License>> {
    return this.#callProduct(productId, {
      ...route,
      parameters: writeLicenseKey(licenseKey),
      hidden: [licenseKey],
      read: (body, { isLatchkey }) => readLicense(body, licenseKey, isLatchkey),
    });
  }

  async #callProduct<Value>(
    productId: string,
    call: Omit<ApiCall<Value>, 'header' | 'credential'>,
  ): Promise<Outcome<Value>> {
    const credential = this.#settings.secretOf(productId);
    if (credential === null) return withoutCredential('no secret is configured for the product of this key');
    return this.#call({ ...call, header: this.#settings.headers.productSecret, credential });
  }

  async #callCoupons<Value>(
    route: Route,
    parameters: ApiCall<Value>['parameters'],
    read: ResponseContext<Value>['read'],
  ): Promise<Outcome<Value>> {
    const credential = this.#settings.apiKey();
    if (credential === null) return withoutCredential('no API key is configured');
    const header = this.#settings.headers.apiKey;
    return this.#call({ ...route, parameters, header, credential, hidden: [], read });
  }

  #call<Value>(call: ApiCall<Value>): Promise<Outcome<Value>> {
    const hidden = [call.credential, ...call.hidden];
    return this.#sender.send(this.#requestOf(call), { ...call, hidden, method: methods[call.request] });
  }

  #requestOf({
    request,
    path,
    parameters,
    header,
    credential,
    requestId = null,
    keyed,
  }: ApiCall<unknown>): Dispatcher.DispatchOptions {
    const prefix = /^\/(?:agent|sync)\//.test(path) ? '' : '/api/v2';
    const target = `${this.#base.pathname.replace(/\/$/, '')}${prefix}${path}`;
    const headers = {
      ...commonHeaders(this.#settings),
      ...(requestId !== null && { [requestIdHeader.toLowerCase()]: requestId }),
      ...(keyed !== undefined && keyedHeaders(keyed)),
      [header]: credential,
    };
    const { origin } = this.#base;
    const method = methods[request];
    if (parameters === null) return { origin, method, path: target, headers };
    if (typeof parameters === 'string') {
      const json = { ...headers, 'content-type': 'application/json' };
      return { origin, method, path: target, headers: json, body: parameters };
    }
    const encoded = new URLSearchParams(parameters).toString();
    if (method === 'GET') {
      return { origin, method, path: encoded === '' ? target : `${target}?${encoded}`, headers };
    }
    const form = { ...headers, 'content-type': 'application/x-www-form-urlencoded' };
    return { origin, method, path: target, headers: form, body: encoded };
  }
}

const redemptionPath = '/agent/v1/redemptions';

/** Only a Latchkey has a change feed, and a Latchkey of any dialect answers it in the same way. */
const latchkeyOnly = { dialect: specification };

const noValue = (): { value: null } => ({ value: null });

/** A Latchkey of any dialect answers a refusal with its code. */
const acceptsProblem = 'application/json, application/problem+json';

function keyedHeaders({ id, createdAt, epoch, isRepeat, seenRevision }: Keyed): Record<string, string> {
  const about = [
    `created=${createdAt}`,
    ...(epoch === null ? [] : [`epoch=${epoch}`]),
    ...(isRepeat ? ['repeat'] : []),
    ...(seenRevision === null ? [] : [`seen=${seenRevision}`]),
  ];
  return {
    accept: acceptsProblem,
    [idempotencyKeyHeader.toLowerCase()]: id,
    [operationHeader.toLowerCase()]: about.join(', '),
  };
}

/** A request without a credential would only be refused, so it is not sent. */
function withoutCredential(detail: string): Outcome<never> {
  return notApplied('unauthorized', detail);
}
