import type { ActivationAttempt } from '../../domain/agent/activated-key.ts';
import { activatedKey, partsOfKey } from '../../domain/agent/activated-key.ts';
import type { License } from '../../domain/license.ts';
import { isMissing, notApplied, type Outcome } from '../../domain/outbox/outcome.ts';
import type { UpstreamChange } from '../../service/ports.ts';
import { challenged, type Dialect, type DialectResponse, isChallenge } from '../../upstream/dialects.ts';
import type { Transport } from '../../upstream/exchange.ts';
import type { UpstreamClock } from '../../upstream/sender.ts';
import type { JsonObject, Parsed } from '../../upstream/wire.ts';
import { ForeignClient, withVerdict } from '../client.ts';
import { closedLicense, unknownLicense } from '../document.ts';
import type { Activated, Activation, ConnectSettings, FindActivation, StoreClient } from '../store.ts';
import {
  activationOf,
  closed,
  findActivation,
  givenBack,
  readActivation,
  readLicense,
  texts,
  tooManyUses,
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
    if (isChallenge(response)) return challenged;
    if (body === null || status < 400 || status >= 500 || status === 429) return null;
    if (isUnknown(response)) return { reason: 'missing', what: texts.unknown };
    const isNo = isClosed(response) || hasConditions(response);
    if (isNo || (status === 400 && tooManyUses.test(sentenceIn(response) ?? '')))
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
  return isUnknown(response) || (status === 403 && body?.['error'] === 'NotPermitted');
});

const publicPath = '/v1/customer-portal/license-keys';

/** The client of Polar. No request needs a credential but the one that finds a lost activation. */
export class PolarClient extends ForeignClient implements StoreClient {
  constructor(transport: Transport, settings: ConnectSettings, clock: UpstreamClock) {
    super(transport, settings, { clock, dialect: received });
  }

  async verify(productId: string, storedKey: string, signal: AbortSignal): Promise<Outcome<License>> {
    const outcome = await this.send({
      path: `${publicPath}/validate`,
      json: this.#named(productId, storedKey),
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
    if (!isMissing(outcome) || partsOfKey(storedKey).activationId === null) return outcome;
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
    return this.send({
      path: `${publicPath}/validate`,
      json: { ...this.#named(productId, licenseKey), ...more },
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
        closed,
        await this.send({
          ...about,
          path: `${publicPath}/validate`,
          json: this.#named(productId, licenseKey, amount),
          read: (body) => readLicense(body, { storedKey: licenseKey }),
        }),
      );
    if (kind === 'disable' && isActivation)
      return await this.send({
        ...about,
        path: `${publicPath}/deactivate`,
        json: this.#named(productId, licenseKey),
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
    return await this.send({
      path: `${publicPath}/activate`,
      json: { ...this.#named(productId, licenseKey), label: name, conditions, meta: withMark(meta, id) },
      request: 'activate',
      dialect: ofActivation,
      licenseKey,
      signal,
      read: (body, { status }) => readActivated(body, { licenseKey, conditions: conditionsName }, status),
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
        // It was given back since, or made under other conditions: the caller needs another one.
        if (made.outcome === 'not_applied' && ['missing', 'refused'].includes(made.reason))
          return this.#nothingFound();
        if (made.outcome !== 'applied') return made;
        return { ...made, ...readFound(activationOf(made.value), about) };
      }
      const token = this.settings.accessToken();
      if (token === null) return this.#nothingFound();
      // Only an answer about the key has the id under which its activations are listed.
      const known = await this.verify(productId, licenseKey, signal);
      if (known.outcome !== 'applied') return known;
      const id = known.value.extra?.['id'];
      if (typeof id !== 'string') return this.#nothingFound();
      const found = await this.send({
        method: 'GET',
        path: `/v1/license-keys/${encodeURIComponent(id)}`,
        request: 'ask',
        licenseKey,
        signal,
        token,
        read: (body) => findActivation(body, attempt.id),
      });
      // Only the token of the organization reads the key; no caller gets what Polar says about the token.
      if (isMissing(found)) return notApplied('rejected', 'upstream.access_token is of another organization');
      if (found.outcome !== 'applied') return found;
      // It may have been made under other conditions than those of this call.
      return { ...found, ...readFound(found.value, { licenseKey, conditions: 'unconfirmed' }) };
    };
  }

  #nothingFound(): Outcome<null> {
    return { outcome: 'applied', value: null, confirmedAt: this.clock.now(), isCached: false };
  }

  #named(productId: string, storedKey: string, by?: number): JsonObject {
    return writeCall(this.settings.productKeyOf(productId), storedKey, by);
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
  status = 200,
): Parsed<Activated> {
  if (status >= 400) return { value: { activationId: null, licenses: [], answer: { status, body } } };
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
