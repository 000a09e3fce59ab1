import { activatedKey, partsOfKey, type ActivationAttempt } from '../../domain/agent/activated-key.ts';
import type { License } from '../../domain/license.ts';
import { isMissing, notApplied, type Applied, type Outcome } from '../../domain/outbox/outcome.ts';
import type { UpstreamChange } from '../../service/ports.ts';
import { challenged, type Dialect, isChallenge, type RequestKind } from '../../upstream/dialects.ts';
import type { Transport } from '../../upstream/exchange.ts';
import type { UpstreamClock } from '../../upstream/sender.ts';
import { ForeignClient } from '../client.ts';
import type { Activated, Activation, ConnectSettings, FindActivation, StoreClient } from '../store.ts';
import {
  type About,
  activateAnswer,
  type CallName,
  goneInstance,
  type ListedInstance,
  readActivated,
  readDeactivated,
  readInstances,
  readValidated,
  saysUnknown,
  texts,
  verdicts,
  writeActivation,
  writeKey,
} from './wire.ts';

const calls: Partial<Record<RequestKind, CallName>> = {
  verify: 'validate',
  change: 'deactivate',
  activate: 'activate',
};

/**
 * How Lemon Squeezy’s responses are understood. The documents do not say with which status a no comes: the member of the
 * verdict decides.
 */
export const received: Dialect = {
  refusalOf(response, request) {
    const { status, body, text } = response;
    if (isChallenge(response)) return challenged;
    const call = calls[request];
    if (status >= 500 || status === 429) return null;
    if (call === 'validate' && body !== null && saysUnknown(body, call))
      return { reason: 'missing', what: texts.unknown };
    if (call === 'deactivate' && body?.['deactivated'] === false && !saysUnknown(body, call))
      return { reason: 'refused', what: 'Lemon Squeezy refuses the deactivation' };
    if (isAnswer(response, request) || status < 400) return null;
    // No request of this agent is refused so: something in between does. Nobody who asks for a credential has done anything.
    const isCertain = body !== null || ((status === 401 || status === 403) && text.trim() === '');
    return isCertain ? { reason: 'rejected', what: 'not an answer of Lemon Squeezy' } : null;
  },
  isAnswer,
};

function isAnswer(
  { status, body }: Parameters<NonNullable<Dialect['isAnswer']>>[0],
  request: RequestKind,
): boolean {
  const call = calls[request];
  if (call === undefined || body === null || status >= 500 || status === 429) return false;
  // The parameters of an activation are its caller’s own.
  if (call === 'activate' && status === 422 && typeof body['message'] === 'string') return true;
  return typeof body[verdicts[call]] === 'boolean';
}

/** By how much the clocks of this machine and of Lemon Squeezy may differ, in ms. */
const clockSkewMs = 30_000;

/** How many instances the seller’s API lists on one page at most. The latest are on the first. */
const pageSize = 100;

/** The client of Lemon Squeezy. Its license API needs no credential; the list of instances needs the seller’s API key. */
export class LemonSqueezyClient extends ForeignClient implements StoreClient {
  constructor(transport: Transport, settings: ConnectSettings, clock: UpstreamClock) {
    super(transport, settings, { clock, dialect: received });
  }

  async verify(productId: string, storedKey: string, signal: AbortSignal): Promise<Outcome<License>> {
    const { licenseKey, activationId } = partsOfKey(storedKey);
    const outcome = await this.#validate(productId, storedKey, signal);
    if (activationId === null || !isMissing(outcome)) return outcome;
    // No document says with which text an instance is unknown: the license key tells which of the two is gone.
    const isGone =
      outcome.message?.includes('instance') === true ||
      (await this.#validate(productId, licenseKey, signal)).outcome === 'applied';
    return isGone ? { ...outcome, license: { enabled: false, extra: goneInstance } } : outcome;
  }

  async change(
    { kind, licenseKey: storedKey, requestId }: UpstreamChange,
    signal: AbortSignal,
  ): Promise<Outcome<License>> {
    if (kind !== 'disable' || partsOfKey(storedKey).activationId === null)
      return notApplied('refused', 'Lemon Squeezy has no request for this change');
    return await this.send({
      request: 'change',
      path: '/v1/licenses/deactivate',
      form: writeKey(storedKey),
      licenseKey: storedKey,
      signal,
      requestId,
      read: (body) => readDeactivated(body, this.#about(storedKey)),
    });
  }

  /** Sends an activation once. A refusal is an answer, too: the caller gets it as it is. */
  async activate(
    activation: Activation,
    _: ActivationAttempt,
    signal: AbortSignal,
  ): Promise<Outcome<Activated>> {
    const { licenseKey } = activation;
    return await this.send<Activated>({
      request: 'activate',
      path: '/v1/licenses/activate',
      form: writeActivation(activation),
      licenseKey,
      signal,
      read: (body, { status }) => {
        const answer = { status, body };
        const isNo = body['activated'] === false || (status === 422 && typeof body['message'] === 'string');
        if (isNo) return { value: { activationId: null, licenses: [], answer } };
        const reading = readActivated(body, this.#about(licenseKey));
        return 'fault' in reading ? reading : { value: { ...reading.value, answer } };
      },
    });
  }

  /** Only the seller’s API lists instances. */
  findsActivations({ activationId }: ActivationAttempt): FindActivation | null {
    const apiKey = this.settings.accessToken();
    return apiKey === null && activationId === null ? null : (...parts) => this.#find(apiKey ?? '', ...parts);
  }

  async #validate(productId: string, storedKey: string, signal: AbortSignal): Promise<Outcome<License>> {
    const outcome = await this.send({
      request: 'verify',
      path: '/v1/licenses/validate',
      form: writeKey(storedKey),
      licenseKey: storedKey,
      signal,
      // The status of a response is a part of what is stored of it.
      read: (body, { status }) => readValidated(body, this.#about(storedKey), status),
    });
    if (outcome.outcome !== 'applied' || outcome.value.productKey === '') return outcome;
    // Lemon Squeezy validates the keys of all its stores.
    const isOurs = outcome.value.productKey === this.settings.productKeyOf(productId);
    // Perhaps its store is missing in products: this says nothing to software.
    return isOurs ? outcome : notApplied('rejected', `the key is of store ${outcome.value.productKey}`);
  }

  async #find(
    apiKey: string,
    ...[activation, attempt, signal, isStored]: Parameters<FindActivation>
  ): Promise<Outcome<Activated | null>> {
    const { productId, licenseKey, parameters = {} } = activation;
    const nothing = { value: null, confirmedAt: this.clock.now(), isCached: false } as const;
    let { activationId } = attempt;
    if (activationId === null) {
      const listed = await this.#list(apiKey, { keyId: parameters['keyId'], licenseKey, signal });
      // The API key is wrong: another one would have to be configured first.
      if (listed.outcome === 'not_applied' && listed.status === 401)
        return { outcome: 'applied', ...nothing };
      if (listed.outcome !== 'applied') return listed;
      activationId = this.#madeBy(attempt, listed.value, isStored);
    }
    if (activationId === null) return { outcome: 'applied', ...nothing };
    const instance = await this.verify(productId, activatedKey(licenseKey, activationId), signal);
    if (instance.outcome === 'not_applied' && instance.reason === 'missing')
      return { outcome: 'applied', ...nothing };
    if (instance.outcome !== 'applied') return instance;
    return { ...instance, ...found(activationId, instance) };
  }

  /** The one instance that an attempt has made; null: none, or it cannot be told which. */
  #madeBy(
    { name, sentAt }: ActivationAttempt,
    listed: readonly ListedInstance[],
    isStored: (activationId: string) => boolean,
  ): string | null {
    const until = sentAt + this.settings.timeoutMs + clockSkewMs;
    const possible = listed.filter(
      (each) =>
        each.name === name &&
        each.createdAt >= sentAt - clockSkewMs &&
        each.createdAt <= until &&
        !isStored(each.id),
    );
    return possible.length === 1 ? (possible[0]?.id ?? null) : null;
  }

  async #list(
    apiKey: string,
    { keyId, licenseKey, signal }: { keyId: unknown; licenseKey: string; signal: AbortSignal },
  ): Promise<Outcome<readonly ListedInstance[]>> {
    return await this.send({
      request: 'ask',
      method: 'GET',
      path: '/v1/license-key-instances',
      query: { 'filter[license_key_id]': String(keyId), 'page[size]': String(pageSize) },
      accept: 'application/vnd.api+json',
      token: apiKey,
      licenseKey,
      signal,
      read: readInstances,
    });
  }

  #about(storedKey: string): About {
    return { storedKey, now: this.clock.now() };
  }
}

function found(
  activationId: string,
  { value }: Applied<License>,
): Pick<Applied<Activated>, 'outcome' | 'value'> {
  return {
    outcome: 'applied',
    value: { activationId, licenses: [value], answer: activateAnswer(value) },
  };
}
