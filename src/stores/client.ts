import type { Dispatcher } from 'undici';
import { partsOfKey } from '../domain/agent/activated-key.ts';
import { requestIdHeader } from '../domain/header-names.ts';
import type { License, LicenseExtra } from '../domain/license.ts';
import { notApplied, type NotApplied, type Outcome } from '../domain/outbox/outcome.ts';
import type { ResponseContext } from '../upstream/classification.ts';
import type { Dialect, RequestKind } from '../upstream/dialects.ts';
import type { Transport } from '../upstream/exchange.ts';
import { commonHeaders, type Method, Sender, type UpstreamClock } from '../upstream/sender.ts';
import type { JsonObject } from '../upstream/wire.ts';
import type { ConnectSettings } from './store.ts';

/** A request to the API of a store. */
export type StoreCall<Value> = {
  request: RequestKind;
  /** Default: POST. */
  method?: Method;
  /** Below the base URL, without a query. */
  path: string;
  query?: Record<string, string>;
  form?: Record<string, string>;
  json?: JsonObject;
  /** The access token of the seller; absent or null: no credential is needed. */
  token?: string | null;
  /** The media type to ask for, unless it is `application/json`. */
  accept?: string;
  /** As it is stored. Null: the request is about no license key. */
  licenseKey: string | null;
  signal: AbortSignal;
  requestId?: string | null;
  /** Absent: that of the store. */
  dialect?: Dialect;
  read: ResponseContext<Value>['read'];
};

const absent = async (): Promise<NotApplied> => notApplied('rejected', 'the store does not offer this');

/** What the clients of stores with an API of their own share: such a store has no coupons, and is no Latchkey. */
export class ForeignClient implements AsyncDisposable {
  readonly createCoupon = absent;
  readonly listCoupons = absent;
  readonly getCoupon = absent;
  readonly redeem = absent;
  readonly voidRedemption = absent;
  readonly probe = absent;
  readonly ask = absent;
  protected readonly settings: ConnectSettings;
  protected readonly clock: UpstreamClock;
  readonly #sender: Sender;
  readonly #base: URL;

  constructor(
    transport: Transport,
    settings: ConnectSettings,
    { clock, dialect }: { clock: UpstreamClock; dialect: Dialect },
  ) {
    this.#sender = new Sender(transport, { ...settings, dialect }, clock);
    this.settings = settings;
    this.clock = clock;
    this.#base = new URL(settings.baseUrl);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#sender[Symbol.asyncDispose]();
  }

  /** Sends a request once. */
  protected async send<Value>(call: StoreCall<Value>): Promise<Outcome<Value>> {
    const { method = 'POST', path, query, form, json, token = null, requestId = null, licenseKey } = call;
    const search = query === undefined ? '' : `?${new URLSearchParams(query).toString()}`;
    const options: Dispatcher.DispatchOptions = {
      origin: this.#base.origin,
      method,
      path: `${this.#base.pathname.replace(/\/$/, '')}${path}${search}`,
      headers: {
        ...commonHeaders(this.settings),
        ...(call.accept !== undefined && { accept: call.accept }),
        ...(requestId !== null && { [requestIdHeader.toLowerCase()]: requestId }),
        ...(token !== null && { authorization: `Bearer ${token}` }),
        ...(form !== undefined && { 'content-type': 'application/x-www-form-urlencoded' }),
        ...(json !== undefined && { 'content-type': 'application/json' }),
      },
      ...(form !== undefined && { body: new URLSearchParams(form).toString() }),
      ...(json !== undefined && { body: JSON.stringify(json) }),
    };
    const hidden = [token ?? '', partsOfKey(licenseKey ?? '').licenseKey];
    const { request, signal, dialect, read } = call;
    return await this.#sender.send(options, {
      request,
      method,
      path,
      signal,
      requestId,
      hidden,
      read,
      ...(dialect !== undefined && { dialect }),
    });
  }
}

/** Adds what a refusal says about the license key. `closed`: the body of a no with a text of the store; null: the text is none. */
export function withVerdict(
  closed: (message: unknown) => LicenseExtra | null,
  outcome: Outcome<License>,
): Outcome<License> {
  if (outcome.outcome !== 'not_applied' || outcome.reason !== 'refused') return outcome;
  const extra = closed(outcome.message);
  return extra === null ? outcome : { ...outcome, license: { enabled: false, extra } };
}
