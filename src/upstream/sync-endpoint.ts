import type { Dispatcher } from 'undici';
import { notApplied, type Outcome } from '../domain/outbox/outcome.ts';
import type { Reach } from '../domain/sync/follow.ts';
import type { ChangesAnswer, FollowRequest, SyncInfo, SyncUpstream } from '../service/ports.ts';
import { classify, sentAtOf } from './classification.ts';
import type { Transport } from './exchange.ts';
import { commonHeaders, type SpecificationSettings, type UpstreamClock } from './plain-upstream.ts';
import { readChanges, readInfo, writeFollow } from './sync-wire.ts';
import { dialects, type JsonObject, type Parsed } from './wire.ts';

type Settings = Pick<
  SpecificationSettings,
  'baseUrl' | 'apiKey' | 'secretOf' | 'headers' | 'userAgent' | 'self' | 'onOutcome' | 'onDate'
> & { timeoutMs: number };

type Call<Value> = {
  path: string;
  productId: Reach;
  /** Null: a GET. */
  body: string | null;
  read: (body: JsonObject) => Parsed<Value>;
  /** For how long the upstream may wait for a change. */
  waitMs?: number;
  signal: AbortSignal;
};

/** The client of `/sync/v1` of another Latchkey. Each call is one request, and no call rejects. */
export class SyncEndpoint implements SyncUpstream {
  readonly #transport: Transport;
  readonly #settings: Settings;
  readonly #clock: UpstreamClock;

  constructor(transport: Transport, settings: Settings, clock: UpstreamClock) {
    this.#transport = transport;
    this.#settings = settings;
    this.#clock = clock;
  }

  async info(productId: Reach, signal: AbortSignal): Promise<Outcome<SyncInfo>> {
    return await this.#call({ path: '/sync/v1', productId, body: null, read: readInfo, signal });
  }

  async changes(
    productId: string,
    agent: string,
    request: FollowRequest,
    signal: AbortSignal,
  ): Promise<Outcome<ChangesAnswer>> {
    const body = writeFollow(agent, request);
    const waitMs = request.waitS * 1_000;
    return await this.#call({ path: '/sync/v1/changes', productId, body, read: readChanges, waitMs, signal });
  }

  async #call<Value>(call: Call<Value>): Promise<Outcome<Value>> {
    const { secretOf, apiKey, self, timeoutMs, onOutcome, onDate } = this.#settings;
    const credential = call.productId === null ? apiKey() : secretOf(call.productId);
    if (credential === null) return notApplied('unauthorized', 'no credential is configured for it');
    const startedAt = this.#clock.monotonic();
    const limitMs = timeoutMs + (call.waitMs ?? 0);
    const { exchange, discard } = await this.#transport.send(
      this.#requestOf(call, credential),
      call.signal,
      limitMs,
    );
    const outcome = classify(exchange, {
      read: call.read,
      request: call.body === null ? 'verify' : 'change',
      dialect: dialects.specification,
      self,
      hidden: [credential, ...(call.body === null ? [] : namesIn(call.body))],
      now: this.#clock.now(),
      confirmed: this.#clock.confirmed(),
    });
    onOutcome?.({
      method: call.body === null ? 'GET' : 'POST',
      path: call.path,
      requestId: null,
      outcome: outcome.outcome,
      status: exchange.type === 'answered' ? exchange.status : null,
      durationMs: this.#clock.monotonic() - startedAt,
    });
    if (outcome.outcome === 'ambiguous') discard();
    if (outcome.outcome === 'applied' && exchange.type === 'answered') onDate?.(sentAtOf(exchange));
    return outcome;
  }

  #requestOf({ path, body, productId }: Call<unknown>, credential: string): Dispatcher.DispatchOptions {
    const { baseUrl, headers: names } = this.#settings;
    const { origin, pathname } = new URL(baseUrl);
    const target = `${pathname.replace(/\/$/, '')}${path}`;
    const headers = {
      ...commonHeaders(this.#settings),
      [productId === null ? names.apiKey : names.productSecret]: credential,
    };
    return body === null
      ? { origin, method: 'GET', path: target, headers }
      : {
          origin,
          method: 'POST',
          path: target,
          headers: { ...headers, 'content-type': 'application/json' },
          body,
        };
  }
}

const secretMembers: ReadonlySet<string> = new Set(['agent', 'license_key', 'follow', 'unfollow', 'watch']);

/** The id of the agent and the license keys in a body: an upstream that quotes the request must not get them into a log. */
function namesIn(body: string): string[] {
  const names: string[] = [];
  JSON.parse(body, (member: string, value: unknown) => {
    if (secretMembers.has(member)) names.push(...[value].flat().filter((each) => typeof each === 'string'));
    return value;
  });
  return names;
}
