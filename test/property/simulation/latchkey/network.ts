import type { Dispatcher } from 'undici';
import { idempotencyKeyHeader } from '../../../../src/domain/header-names.ts';
import type { Exchange, Transport } from '../../../../src/upstream/exchange.ts';
import type { VirtualClock } from '../../../support/harness/virtual-clock.ts';
import { reconcileAfterMs, timeoutMs, type Sender } from '../network.ts';
import type { SeededRandom } from '../seeded-random.ts';
import { headerOf } from './authority.ts';
import type { Answering } from './served.ts';

/** How the network treats requests now. Shares are from 0 to 1. */
export type Weather = {
  trouble: number;
  away: 'refused' | 'lost_request' | null;
  unauthorized: number;
  /** What a gateway answers instead of the change feed; null: nothing. */
  gateway: 'missing' | 'nonsense' | 'page' | null;
  /** How late a request may arrive that its sender no longer waits for, in ms. */
  latestMs: number;
};

export const calm: Weather = {
  trouble: 0,
  away: null,
  unauthorized: 0,
  gateway: null,
  latestMs: reconcileAfterMs - 1,
};

const troubles = [
  'refused',
  'lost_request',
  'lost_answer',
  'lost_answer',
  'late',
  'late',
  'twice',
  'error_before',
  'error_after',
  'garbage_after',
  'throttled',
] as const;

type Fate = (typeof troubles)[number] | 'unauthorized' | 'gateway' | 'ok';
type Request = Dispatcher.DispatchOptions;

const keyInBody = /(?:^|&)license_key=([^&]*)/;

/** The network between agents and a Latchkey: it loses, delays and repeats requests, and answers on its own. */
export class LatchkeyNetwork {
  weather: Weather = calm;
  /** How many requests left. */
  requests = 0;
  /** What was found broken. */
  readonly broken: string[] = [];
  /** The last requests that carried a change of a license under a key. */
  readonly keyed: Request[] = [];
  /** The operations of late copies by which something was created. */
  readonly takenLate: Set<string> = new Set();
  /** The operations that were refused at first, and then carried out. */
  readonly judgedAgain: Set<string> = new Set();
  readonly #refused = new Set<string>();
  readonly #upstream: Answering;
  readonly #clock: VirtualClock;
  readonly #random: SeededRandom;
  readonly #forEver: AbortSignal = new AbortController().signal;

  constructor(upstream: Answering, clock: VirtualClock, random: SeededRandom) {
    this.#upstream = upstream;
    this.#clock = clock;
    this.#random = random;
  }

  change(weather: Partial<Weather>): void {
    this.weather = { ...this.weather, ...weather };
  }

  transport(sender: Sender): Transport {
    /** The license keys of the changes under way. */
    const underWay = new Set<string>();
    return {
      send: async (request, signal, waitMs = 0) => {
        if (sender.isDead) return await new Promise<never>(() => undefined);
        this.requests += 1;
        const licenseKey = this.#noteChange(request);
        if (licenseKey !== null && underWay.has(licenseKey))
          this.broken.push(`order: two changes of ${licenseKey} are under way`);
        if (licenseKey !== null) underWay.add(licenseKey);
        const exchange = await this.#exchange(request, signal, timeoutMs + waitMs);
        if (licenseKey !== null) underWay.delete(licenseKey);
        // A dead process hears nothing.
        if (sender.isDead) return await new Promise<never>(() => undefined);
        return { exchange, discard: () => undefined };
      },
      [Symbol.asyncDispose]: () => Promise.resolve(),
    };
  }

  /** The license key of a change; null: it is another request. */
  #noteChange(request: Request): string | null {
    const { method, path } = request;
    const body = typeof request.body === 'string' ? request.body : '';
    if (method === 'GET' || path.startsWith('/sync/v1')) return null;
    if (headerOf(request, idempotencyKeyHeader) === null)
      this.broken.push(`key: a change has no Idempotency-Key: ${method} ${path} ${body}`);
    if (method !== 'PUT') return null;
    this.keyed.push(request);
    if (this.keyed.length > 20) this.keyed.shift();
    return keyInBody.exec(body)?.[1] ?? '';
  }

  /** A response that comes after the limit, or to a process that is dead, is not read. */
  async #exchange(request: Request, signal: AbortSignal, limitMs: number): Promise<Exchange> {
    const ending = new AbortController();
    const end = (): void => ending.abort();
    signal.addEventListener('abort', end, { once: true });
    const limit = this.#clock.sleep(limitMs, ending.signal).then(
      () => silent,
      () => silent,
    );
    const exchange = await Promise.race([this.#travel(request, ending.signal), limit]);
    signal.removeEventListener('abort', end);
    ending.abort();
    return exchange;
  }

  async #travel(request: Request, signal: AbortSignal): Promise<Exchange> {
    const { weather } = this;
    const fate = this.#fate(request);
    await this.#pass(this.#random.between(1, 300));
    switch (fate) {
      case 'refused':
        return refused;
      case 'lost_request':
        return await this.#silence();
      case 'lost_answer':
        await this.#arrive(request, signal);
        return this.#random.chance(0.5) ? reset : await this.#silence();
      case 'late':
        void this.#arriveLate(request);
        return this.#random.chance(0.5) ? reset : await this.#silence();
      case 'twice':
        void this.#arriveLate(request);
        return await this.#arrive(request, signal);
      case 'error_before':
        return answer(503, '<html>later</html>');
      case 'error_after':
        await this.#arrive(request, signal);
        return answer(502, '<html>a bad day</html>');
      case 'garbage_after':
        await this.#arrive(request, signal);
        return answer(
          200,
          this.#random.pick(['<html>hello</html>', '{"data":', '{}', '[]', '', '{"data":{}}']),
        );
      case 'throttled':
        return answer(429, '{"error":"slow down"}', {
          'retry-after': String(this.#random.between(0, 8)),
        });
      case 'unauthorized':
        return answer(401, '{"error":"wrong secret"}');
      case 'gateway':
        if (weather.gateway === 'missing') return answer(404, '{"error":"no such route"}');
        return weather.gateway === 'page'
          ? answer(404, '<html>404</html>')
          : answer(200, '{"data":{"ok":true}}');
      case 'ok':
        return await this.#arrive(request, signal);
      default:
        return fate satisfies never;
    }
  }

  #fate(request: Request): Fate {
    const { weather } = this;
    if (weather.away !== null) return weather.away;
    if (weather.gateway !== null && request.path.startsWith('/sync/v1')) return 'gateway';
    if (this.#random.chance(weather.unauthorized)) return 'unauthorized';
    return this.#random.chance(weather.trouble) ? this.#random.pick(troubles) : 'ok';
  }

  async #arrive(request: Request, signal: AbortSignal): Promise<Exchange> {
    const response = await this.#upstream.handle(request, signal);
    if (response === null) return reset;
    this.#noteVerdict(request, response);
    await this.#pass(this.#random.between(1, 100));
    return answer(response.status, response.text, response.headers);
  }

  #noteVerdict(request: Request, { status }: { status: number }): void {
    const operation = headerOf(request, idempotencyKeyHeader) ?? '';
    if (status === 409) this.#refused.add(operation);
    if (status === 201 && this.#refused.has(operation)) this.judgedAgain.add(operation);
  }

  /** It arrives when its sender no longer waits. */
  async #arriveLate(request: Request): Promise<void> {
    await this.#pass(this.#random.between(1, this.weather.latestMs - 400));
    const response = await this.#upstream.handle(request, this.#forEver);
    if (response?.status === 201) this.takenLate.add(headerOf(request, idempotencyKeyHeader) ?? '');
  }

  async #silence(): Promise<Exchange> {
    return await new Promise<never>(() => undefined);
  }

  async #pass(ms: number): Promise<void> {
    await this.#clock.sleep(ms, this.#forEver);
  }
}

function answer(status: number, text: string, headers: Record<string, string> = {}): Exchange {
  return { type: 'answered', status, text, headers };
}

const refused: Exchange = {
  type: 'failed',
  sent: false,
  error: new Error('connection refused'),
  headers: {},
};
const reset: Exchange = { type: 'failed', sent: true, error: new Error('connection reset'), headers: {} };
const silent: Exchange = { type: 'failed', sent: true, error: new Error('no answer in time'), headers: {} };
