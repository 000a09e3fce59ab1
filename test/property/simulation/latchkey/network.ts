import type { Dispatcher } from 'undici';
import type { Exchange, Transport } from '../../../../src/upstream/exchange.ts';
import type { VirtualClock } from '../../../support/harness/virtual-clock.ts';
import { readRequest } from '../ledger.ts';
import { isChange, reconcileAfterMs, timeoutMs, type Sender } from '../network.ts';
import type { SeededRandom } from '../seeded-random.ts';
import type { SimulatedAuthority } from './authority.ts';

/** How the network treats requests now. Shares are from 0 to 1. */
export type Weather = {
  trouble: number;
  away: 'refused' | 'lost_request' | null;
  unauthorized: number;
  /** What a gateway answers instead of `/sync/v1`; null: nothing. */
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

/** The network between agents and a Latchkey: it loses, delays and repeats requests, and answers on its own. */
export class LatchkeyNetwork {
  weather: Weather = calm;
  /** The operations that left by the plain protocol. */
  readonly sentPlain: Set<string> = new Set();
  /** The operations of all pushes that left. */
  readonly pushed: Map<string, { kind: string; key: string }> = new Map();
  /** How many requests left. */
  requests = 0;
  /** What was found broken. */
  readonly broken: string[] = [];
  /** Requests to `/sync/v1`, by their path. */
  readonly asked: Map<string, number> = new Map();
  readonly #authority: SimulatedAuthority;
  readonly #clock: VirtualClock;
  readonly #random: SeededRandom;
  readonly #forEver: AbortSignal = new AbortController().signal;

  constructor(authority: SimulatedAuthority, clock: VirtualClock, random: SeededRandom) {
    this.#authority = authority;
    this.#clock = clock;
    this.#random = random;
  }

  change(weather: Partial<Weather>): void {
    this.weather = { ...this.weather, ...weather };
  }

  transport(sender: Sender): Transport {
    return {
      send: async (request, signal, limitMs = timeoutMs) => {
        if (sender.isDead) return await new Promise<never>(() => undefined);
        this.requests += 1;
        const isPlain = request.path.startsWith('/api/v2');
        if (request.path.startsWith('/sync/v1')) this.#notePush(request);
        const operation = isPlain ? this.#operationOf(request, sender) : null;
        const ending = new AbortController();
        const end = (): void => ending.abort();
        signal.addEventListener('abort', end, { once: true });
        // A response that comes after the limit, or to a process that is dead, is not read.
        const limit = this.#clock.sleep(limitMs, ending.signal).then(
          () => silent,
          () => silent,
        );
        const exchange = await Promise.race([this.#travel(request, operation, ending.signal), limit]);
        signal.removeEventListener('abort', end);
        ending.abort();
        // A dead process hears nothing.
        return sender.isDead ? await new Promise<never>(() => undefined) : sent(exchange);
      },
      [Symbol.asyncDispose]: () => Promise.resolve(),
    };
  }

  #notePush({ path, body }: Dispatcher.DispatchOptions): void {
    this.asked.set(path, (this.asked.get(path) ?? 0) + 1);
    if (!path.endsWith('/push') || typeof body !== 'string') return;
    const { operations } = JSON.parse(body) as {
      operations: { id: string; kind: string; license_key?: string }[];
    };
    for (const { id, kind, license_key: key = '' } of operations) this.pushed.set(id, { kind, key });
    const firstUse = operations.findIndex(({ kind }) => kind === 'usage' || kind === 'decrease');
    const behind = operations.slice(firstUse).find(({ kind }) => kind === 'disable');
    const { license_key: key } = behind ?? {};
    const isHead =
      operations.find((each) => each.license_key === key && each.kind.endsWith('able')) === behind;
    if (firstUse !== -1 && behind !== undefined && isHead)
      this.broken.push(`revocation: the disable ${behind.id} is behind uses`);
  }

  #operationOf(request: Dispatcher.DispatchOptions, sender: Sender): string | null {
    const parsed = readRequest(request);
    if (!isChange(parsed)) return null;
    const { operation } = sender.originOf(parsed);
    if (operation !== null) this.sentPlain.add(operation);
    return operation;
  }

  async #travel(
    request: Dispatcher.DispatchOptions,
    operation: string | null,
    signal: AbortSignal,
  ): Promise<Exchange> {
    const { weather } = this;
    const fate = this.#fate(request);
    await this.#pass(this.#random.between(1, 300));
    switch (fate) {
      case 'refused':
        return refused;
      case 'lost_request':
        return await this.#silence();
      case 'lost_answer':
        await this.#arrive(request, operation, signal);
        return this.#random.chance(0.5) ? reset : await this.#silence();
      case 'late':
        void this.#arriveLate(request, operation);
        return this.#random.chance(0.5) ? reset : await this.#silence();
      case 'twice':
        // Only what is repeated byte for byte may arrive twice: a proxy repeats no PUT.
        if (request.path.startsWith('/sync/v1')) void this.#arriveLate(request, operation);
        return await this.#arrive(request, operation, signal);
      case 'error_before':
        return answer(503, '<html>later</html>');
      case 'error_after':
        await this.#arrive(request, operation, signal);
        return answer(502, '<html>a bad day</html>');
      case 'garbage_after':
        await this.#arrive(request, operation, signal);
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
        return await this.#arrive(request, operation, signal);
      default:
        return fate satisfies never;
    }
  }

  #fate(request: Dispatcher.DispatchOptions): (typeof troubles)[number] | 'unauthorized' | 'gateway' | 'ok' {
    const { weather } = this;
    if (weather.away !== null) return weather.away;
    if (weather.gateway !== null && request.path.startsWith('/sync/v1')) return 'gateway';
    if (this.#random.chance(weather.unauthorized)) return 'unauthorized';
    return this.#random.chance(weather.trouble) ? this.#random.pick(troubles) : 'ok';
  }

  async #arrive(
    request: Dispatcher.DispatchOptions,
    operation: string | null,
    signal: AbortSignal,
  ): Promise<Exchange> {
    const reply = await this.#authority.handle(request, operation, signal);
    if (reply === null) return reset;
    await this.#pass(this.#random.between(1, 100));
    return answer(reply.status, JSON.stringify(reply.body), {
      ...reply.headers,
      date: new Date(this.#clock.now()).toUTCString(),
    });
  }

  /** It arrives when its sender no longer waits. */
  async #arriveLate(request: Dispatcher.DispatchOptions, operation: string | null): Promise<void> {
    const latestMs = request.path.startsWith('/sync/v1') ? this.weather.latestMs : calm.latestMs;
    await this.#pass(this.#random.between(1, latestMs - 400));
    await this.#authority.handle(request, operation, this.#forEver);
  }

  async #silence(): Promise<Exchange> {
    return await new Promise<never>(() => undefined);
  }

  async #pass(ms: number): Promise<void> {
    await this.#clock.sleep(ms, this.#forEver);
  }
}

function sent(exchange: Exchange): Awaited<ReturnType<Transport['send']>> {
  return { exchange, discard: () => undefined };
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
