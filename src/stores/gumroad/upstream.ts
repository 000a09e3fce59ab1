import type { KeyPage } from '../../domain/agent/preload.ts';
import type { License } from '../../domain/license.ts';
import type { LicenseOperationKind } from '../../domain/outbox/operation.ts';
import { notApplied, type Outcome } from '../../domain/outbox/outcome.ts';
import type { UpstreamChange } from '../../service/ports.ts';
import { challenged, type Dialect, isChallenge, type RequestKind } from '../../upstream/dialects.ts';
import type { Transport } from '../../upstream/exchange.ts';
import type { UpstreamClock } from '../../upstream/sender.ts';
import type { JsonObject, Parsed } from '../../upstream/wire.ts';
import { ForeignClient, type StoreCall, withVerdict } from '../client.ts';
import type { ConnectSettings, StoreClient } from '../store.ts';
import { closed, readLicense, readRotated, readSales, texts, writeCall, writeSalesQuery } from './wire.ts';

/** How Gumroad’s responses are understood where they are not those of the specification. */
export const received: Dialect = {
  refusalOf(response, request) {
    const { status, body, text } = response;
    if (isChallenge(response)) return challenged;
    if (status === 404 && body !== null) {
      if (body['message'] === texts.unknown) return { reason: 'missing', what: texts.unknown };
      if (closed(body['message']) === null) return { reason: 'rejected', what: 'not a text of Gumroad' };
      // Nothing is counted, and nothing is changed any more.
      return request === 'verify' ? null : { reason: 'refused', what: texts.disabled };
    }
    // Gumroad refuses no request of this agent so: something in between does.
    if ((status === 400 || status === 422) && body !== null)
      return { reason: 'rejected', what: 'not a text of Gumroad' };
    // Nobody who asks for a credential has done anything. The token is not needed to verify, so reads go on.
    const isAboutToken = status === 401 || status === 403;
    return isAboutToken && (body !== null || text.trim() === '')
      ? {
          reason: 'rejected',
          what: `the store refuses upstream.access_token, which needs ${scopeOf(request)}`,
        }
      : null;
  },
  isAnswer: ({ status, body }, request) =>
    status === 404 && request === 'verify' && closed(body?.['message']) !== null,
};

function scopeOf(request: RequestKind): string {
  return `the scope ${request === 'listKeys' ? 'view_sales' : 'edit_products'}`;
}

const verifyPath = '/v2/licenses/verify';

/** The names of the seller's changes, under `/v2/licenses`. */
const sellerChanges: Readonly<Record<Exclude<LicenseOperationKind, 'usage'>, string>> = {
  decrease: 'decrement_uses_count',
  enable: 'enable',
  disable: 'disable',
};

type Call<Value> = Omit<StoreCall<Value>, 'request' | 'method' | 'path' | 'licenseKey'> & {
  licenseKey: string;
};

const withoutToken = notApplied('rejected', 'upstream.access_token is not configured');

/** The client of Gumroad. A verify needs no credential; changes by the seller need an access token. */
export class GumroadClient extends ForeignClient implements StoreClient {
  constructor(transport: Transport, settings: ConnectSettings, clock: UpstreamClock) {
    super(transport, settings, { clock, dialect: received });
  }

  verify(productId: string, licenseKey: string, signal: AbortSignal): Promise<Outcome<License>> {
    const form = this.#form(productId, licenseKey, false);
    return this.#verify({ request: 'verify', licenseKey, form, signal });
  }

  async change(
    { kind, productId, licenseKey, requestId }: UpstreamChange,
    signal: AbortSignal,
  ): Promise<Outcome<License>> {
    if (kind === 'usage') {
      const form = this.#form(productId, licenseKey, true);
      return this.#verify({ request: 'change', licenseKey, form, signal, requestId });
    }
    const read = (body: JsonObject): Parsed<License> => afterChange(kind, this.#read(body, licenseKey));
    const name = sellerChanges[kind];
    return withVerdict(
      closed,
      await this.#changeAsSeller(name, { productId, licenseKey, requestId, signal, read }),
    );
  }

  /** Gives the customer a new license key. The caller waits for it. */
  rotate(productId: string, licenseKey: string, signal: AbortSignal): Promise<Outcome<JsonObject>> {
    return this.#changeAsSeller('rotate', { productId, licenseKey, signal, read: readRotated });
  }

  /** Reads ten sales, from the newest on. */
  async listKeys(productId: string, after: string | null, signal: AbortSignal): Promise<Outcome<KeyPage>> {
    const token = this.settings.accessToken();
    if (token === null) return withoutToken;
    const query = writeSalesQuery(this.settings.productKeyOf(productId), after);
    const call = { method: 'GET', path: '/v2/sales', request: 'listKeys', licenseKey: null } as const;
    return await this.send({ ...call, token, query, signal, read: readSales });
  }

  async #verify(
    call: Omit<Call<License>, 'read'> & Pick<StoreCall<License>, 'request'>,
  ): Promise<Outcome<License>> {
    const read = (body: JsonObject): Parsed<License> => this.#read(body, call.licenseKey);
    return withVerdict(closed, await this.send({ ...call, path: verifyPath, read }));
  }

  async #changeAsSeller<Value>(
    name: string,
    { productId, ...call }: Call<Value> & { productId: string },
  ): Promise<Outcome<Value>> {
    const token = this.settings.accessToken();
    if (token === null) return withoutToken;
    const form = this.#form(productId, call.licenseKey);
    const path = `/v2/licenses/${name}`;
    return await this.send({ ...call, method: 'PUT', path, token, form, request: 'change' });
  }

  #form(productId: string, licenseKey: string, isCounted?: boolean): Record<string, string> {
    return writeCall(this.settings.productKeyOf(productId), licenseKey, isCounted);
  }

  #read(body: JsonObject, licenseKey: string): Parsed<License> {
    return readLicense(body, licenseKey, this.clock.now());
  }
}

/** A response to a change shows the purchase, also if the key is disabled. */
function afterChange(kind: LicenseOperationKind, reading: Parsed<License>): Parsed<License> {
  if ('fault' in reading) return reading;
  if (kind === 'decrease') return { ...reading, shows: 'uses' };
  if (kind !== 'disable') return reading;
  return { value: { ...reading.value, enabled: false, extra: closed(texts.disabled) ?? {} } };
}
