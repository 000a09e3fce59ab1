import type { Dispatcher } from 'undici';
import type { ActivationAttempt } from '../../domain/agent/activated-key.ts';
import { activatedKey, partsOfKey } from '../../domain/agent/activated-key.ts';
import { requestIdHeader } from '../../domain/header-names.ts';
import type { License } from '../../domain/license.ts';
import { notApplied, type NotApplied, type Outcome } from '../../domain/outbox/outcome.ts';
import type { UpstreamChange } from '../../service/ports.ts';
import { type Dialect, type DialectResponse, isChallenge } from '../../upstream/dialects.ts';
import type { Transport } from '../../upstream/exchange.ts';
import { commonHeaders, Sender, type UpstreamClock } from '../../upstream/sender.ts';
import type { JsonObject, Parsed } from '../../upstream/wire.ts';
import type { Activated, Activation, ConnectSettings, FindActivation, StoreClient } from '../store.ts';
import {
  activationOf,
  closed,
  closedLicense,
  findActivation,
  givenBack,
  isLimit,
  readActivation,
  readLicense,
  texts,
  unknownLicense,
  withMark,
  writeCall,
} from './wire.ts';

/** Polar’s own sentence; null: something else answered. */
function sentenceIn({ body }: DialectResponse): string | null {
  const { error, detail } = body ?? {};
  return typeof error === 'string' && typeof detail === 'string' ? detail : null;
}

/** How Polar’s responses are understood where they are not those of the specification. */
export const received: Dialect = {
  refusalOf(response) {
    const { status, body } = response;
    if (isChallenge(response)) return { reason: 'challenged', what: 'a firewall asks for proof of a human' };
    if (body === null || status < 400 || status >= 500 || status === 429) return null;
    if (isUnknown(response)) return { reason: 'missing', what: texts.unknown };
    const isNo = isClosed(response) || hasConditions(response);
    if (isNo || (status === 400 && isLimit(sentenceIn(response))))
      return { reason: 'refused', what: 'refused' };
    const isAboutToken = status === 401 || status === 403;
    // Polar refuses no request of this agent otherwise: something in between does.
    const what = isAboutToken ? 'the store refuses upstream.access_token' : 'not a text of Polar';
    return { reason: 'rejected', what };
  },
};

/** The same, if some refusals are answers to a request. */
function accepting(isAnswer: (response: DialectResponse) => boolean): Dialect {
  return {
    refusalOf: (response, request) => (isAnswer(response) ? null : received.refusalOf(response, request)),
    isAnswer,
  };
}

const isUnknown = (response: DialectResponse): boolean => says(response, texts.unknown);
const hasConditions = (response: DialectResponse): boolean => says(response, texts.conditions);
const isClosed = (response: DialectResponse): boolean =>
  response.status === 404 && closed(sentenceIn(response)) !== null;

function says(response: DialectResponse, sentence: string): boolean {
  return response.status === 404 && sentenceIn(response) === sentence;
}

export const ofVerdict = accepting(isClosed);
/** A read has no conditions: an activation that has some exists, and its key is good. */
const ofRead = accepting((response) => isClosed(response) || hasConditions(response));
/** An activation that is unknown has been given back. */
const ofDeactivation: Dialect = {
  ...accepting(isUnknown),
  isEmptyAnswer: ({ status }) => status === 204,
};
/** The caller gets each refusal of an activation as Polar has said it. */
const ofActivation = accepting((response) => {
  const { status, body } = response;
  if (status === 422) return body?.['error'] === 'RequestValidationError';
  return (status === 403 || isUnknown(response)) && sentenceIn(response) !== null && !isChallenge(response);
});

type Call<Value> = {
  path: string;
  /** Null: a GET. */
  body: JsonObject | null;
  request: 'verify' | 'change' | 'activate';
  licenseKey: string;
  signal: AbortSignal;
  token?: string;
  requestId?: string | null;
  dialect?: Dialect;
  read: (body: JsonObject) => Parsed<Value>;
};

const absent = async (): Promise<NotApplied> => notApplied('rejected', 'Polar does not offer this');

const publicPath = '/v1/customer-portal/license-keys';

/** The client of Polar. No request needs a credential but the one that finds a lost activation. */
export class PolarClient implements StoreClient {
  readonly createCoupon = absent;
  readonly listCoupons = absent;
  readonly getCoupon = absent;
  readonly redeem = absent;
  readonly voidRedemption = absent;
  readonly probe = absent;
  readonly ask = absent;
  readonly #sender: Sender;
  readonly #settings: ConnectSettings;
  readonly #clock: UpstreamClock;
  readonly #base: URL;

  constructor(transport: Transport, settings: ConnectSettings, clock: UpstreamClock) {
    this.#sender = new Sender(transport, { ...settings, dialect: received }, clock);
    this.#settings = settings;
    this.#clock = clock;
    this.#base = new URL(settings.baseUrl);
  }

  async verify(productId: string, storedKey: string, signal: AbortSignal): Promise<Outcome<License>> {
    const outcome = await this.#call({
      path: `${publicPath}/validate`,
      body: this.#named(productId, storedKey),
      request: 'verify',
      dialect: ofRead,
      licenseKey: storedKey,
      signal,
      read: (body) =>
        body['detail'] === texts.conditions
          ? { value: unknownLicense(storedKey), shows: 'enabled' }
          : readVerdict(body, { storedKey, conditions: null }),
    });
    // A key may be late. An activation that is known was given back.
    const isActivation = partsOfKey(storedKey).activationId !== null;
    if (!isActivation || outcome.outcome !== 'not_applied' || outcome.reason !== 'missing') return outcome;
    return { ...outcome, license: { enabled: false, extra: givenBack } };
  }

  /** Validates an activation under conditions, which only the store can compare. */
  verifyWith(
    productId: string,
    { licenseKey, parameters = {} }: Pick<Activation, 'licenseKey' | 'parameters'>,
    signal: AbortSignal,
  ): Promise<Outcome<License>> {
    const { conditions, conditionsName } = parameters as ActivationParameters;
    const more = Object.keys(conditions).length === 0 ? {} : { conditions };
    return this.#call({
      path: `${publicPath}/validate`,
      body: { ...this.#named(productId, licenseKey), ...more },
      request: 'verify',
      dialect: ofVerdict,
      licenseKey,
      signal,
      read: (body) => readVerdict(body, { storedKey: licenseKey, conditions: conditionsName }),
    });
  }

  async change(
    { kind, productId, licenseKey, amount = 1, requestId }: UpstreamChange,
    signal: AbortSignal,
  ): Promise<Outcome<License>> {
    const isActivation = partsOfKey(licenseKey).activationId !== null;
    const about = { request: 'change', licenseKey, signal, requestId } as const;
    if (kind === 'usage' && !isActivation)
      return withVerdict(
        await this.#call({
          ...about,
          path: `${publicPath}/validate`,
          body: this.#named(productId, licenseKey, amount),
          read: (body) => readLicense(body, { storedKey: licenseKey }),
        }),
      );
    if (kind === 'disable' && isActivation)
      return await this.#call({
        ...about,
        path: `${publicPath}/deactivate`,
        body: this.#named(productId, licenseKey),
        dialect: ofDeactivation,
        read: () => ({ value: closedLicense(licenseKey, givenBack), shows: 'enabled' }),
      });
    return notApplied('refused', 'Polar does not offer this');
  }

  async activate(
    { productId, licenseKey, name, parameters = {} }: Activation,
    { id }: Pick<ActivationAttempt, 'id'>,
    signal: AbortSignal,
  ): Promise<Outcome<Activated>> {
    const { conditions, meta, conditionsName } = parameters as ActivationParameters;
    return await this.#call({
      path: `${publicPath}/activate`,
      body: {
        ...this.#named(productId, licenseKey),
        label: name,
        conditions,
        meta: withMark(meta, id),
      },
      request: 'activate',
      dialect: ofActivation,
      licenseKey,
      signal,
      read: (body) => readActivated(body, { licenseKey, conditions: conditionsName }),
    });
  }

  findsActivations(): FindActivation {
    return async (activation, attempt, signal) => {
      const { licenseKey, productId, parameters = {} } = activation;
      const { conditionsName: conditions } = parameters as ActivationParameters;
      const about = { licenseKey, conditions };
      if (attempt.activationId !== null) {
        const storedKey = activatedKey(licenseKey, attempt.activationId);
        const made = await this.verifyWith(productId, { ...activation, licenseKey: storedKey }, signal);
        if (made.outcome !== 'applied') return made;
        return { ...made, ...readFound(activationOf(made.value), about) };
      }
      const token = this.#settings.accessToken();
      if (token === null) return this.#nothingFound();
      // Only an answer about the key has the id under which its activations are listed.
      const known = await this.verify(productId, licenseKey, signal);
      if (known.outcome !== 'applied') return known;
      const id = known.value.extra?.['id'];
      if (typeof id !== 'string') return this.#nothingFound();
      const found = await this.#call({
        path: `/v1/license-keys/${encodeURIComponent(id)}`,
        body: null,
        request: 'verify',
        licenseKey,
        signal,
        token,
        read: (body) => findActivation(body, attempt.id),
      });
      if (found.outcome !== 'applied') return found;
      return { ...found, ...readFound(found.value, about) };
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#sender[Symbol.asyncDispose]();
  }

  #nothingFound(): Outcome<null> {
    return { outcome: 'applied', value: null, confirmedAt: this.#clock.now(), isCached: false };
  }

  #named(productId: string, storedKey: string, by?: number): JsonObject {
    return writeCall(this.#settings.productKeyOf(productId), storedKey, by);
  }

  async #call<Value>({ path, body, token, ...call }: Call<Value>): Promise<Outcome<Value>> {
    const method = body === null ? 'GET' : 'POST';
    const { requestId = null, licenseKey } = call;
    const options: Dispatcher.DispatchOptions = {
      origin: this.#base.origin,
      method,
      path: `${this.#base.pathname.replace(/\/$/, '')}${path}`,
      headers: {
        ...commonHeaders(this.#settings),
        ...(requestId !== null && { [requestIdHeader.toLowerCase()]: requestId }),
        ...(token !== undefined && { authorization: `Bearer ${token}` }),
        ...(body !== null && { 'content-type': 'application/json' }),
      },
      ...(body !== null && { body: JSON.stringify(body) }),
    };
    const hidden = [token ?? '', partsOfKey(licenseKey).licenseKey];
    return await this.#sender.send(options, { ...call, method, path, hidden });
  }
}

/** What an activation has besides its key and its label. `conditionsName`: as in `conditionsName()`. */
export type ActivationParameters = {
  conditions: JsonObject;
  meta: JsonObject;
  conditionsName: string | null;
};

/** Reads the answer to a validation: the license, or a no. */
export function readVerdict(
  body: JsonObject,
  about: { storedKey: string; conditions: string | null },
): Parsed<License> {
  const extra = closed(body['detail']);
  if (extra !== null) return { value: closedLicense(about.storedKey, extra), shows: 'enabled' };
  return readLicense(body, about);
}

function readActivated(
  body: JsonObject,
  about: { licenseKey: string; conditions: string | null },
): Parsed<Activated> {
  const { error } = body;
  if (typeof error === 'string') {
    const status = { NotPermitted: 403, ResourceNotFound: 404 }[error] ?? 422;
    return { value: { activationId: null, licenses: [], answer: { status, body } } };
  }
  const reading = readActivation(body, about);
  if ('fault' in reading) return reading;
  const { activationId, license, body: shown } = reading.value;
  return { value: { activationId, licenses: [license], answer: { status: 200, body: shown } } };
}

/** The activation that was found; null: none, or it is not to be read. */
function readFound(
  body: JsonObject | null,
  about: { licenseKey: string; conditions: string | null },
): { value: Activated | null } {
  const reading = body === null ? null : readActivated(body, about);
  return { value: reading !== null && 'value' in reading ? reading.value : null };
}

/** Adds what a refusal says about the key. */
function withVerdict(outcome: Outcome<License>): Outcome<License> {
  if (outcome.outcome !== 'not_applied' || outcome.reason !== 'refused') return outcome;
  const extra = closed(outcome.message);
  return extra === null ? outcome : { ...outcome, license: { enabled: false, extra } };
}
