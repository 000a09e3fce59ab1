import type { LemonSqueezyStore } from '../../../../src/features/sandbox/stores/lemonsqueezy.ts';
import type { Exchange, Transport } from '../../../../src/upstream/exchange.ts';
import type { VirtualClock } from '../../../support/harness/virtual-clock.ts';
import { timeoutMs } from '../network.ts';
import type { SeededRandom } from '../seeded-random.ts';

/** What becomes of a request. A request that arrives late does so before its time limit. */
const troubles = [
  'refused',
  'lost_request',
  'lost_answer',
  'reset_then_late',
  'page',
  'limited',
  'failed',
] as const;

/** The way to a stand-in, in virtual time. */
export class ActivationNetwork {
  /** The share of requests that meet a trouble. */
  trouble = 0;
  isAway = false;
  /** The activations whose answers did not arrive. */
  lostActivations = 0;
  readonly #store: LemonSqueezyStore;
  readonly #clock: VirtualClock;
  readonly #random: SeededRandom;

  constructor(store: LemonSqueezyStore, clock: VirtualClock, random: SeededRandom) {
    this.#store = store;
    this.#clock = clock;
    this.#random = random;
  }

  /** `isDead`: whether the process that sends has ended: it hears nothing any more. */
  transport(isDead: () => boolean): Transport {
    return {
      send: async ({ method, path, headers, body }) => {
        const url = new URL(path, 'http://store.invalid');
        const form = new URLSearchParams(typeof body === 'string' ? body : '');
        const request = {
          name: method === 'GET' ? ('instances' as const) : (url.pathname.split('/').at(-1) as 'validate'),
          path: url.pathname,
          parameters: { ...Object.fromEntries(url.searchParams), ...Object.fromEntries(form) },
          headers: headers as Record<string, string>,
        };
        const exchange = await this.#travel(request);
        return isDead() ? await new Promise<never>(() => undefined) : { exchange, discard: () => undefined };
      },
      [Symbol.asyncDispose]: () => Promise.resolve(),
    };
  }

  async #travel(request: Request): Promise<Exchange> {
    const fate = this.#fate();
    const travelMs = this.#random.between(1, 300);
    await this.#pass(travelMs);
    switch (fate) {
      case 'refused':
        return { type: 'failed', sent: false, error: new Error('refused'), headers: {} };
      case 'lost_request':
        return await this.#silence(travelMs);
      case 'lost_answer':
        this.#carryOut(request, false);
        return this.#random.chance(0.5) ? reset : await this.#silence(travelMs);
      case 'reset_then_late':
        void this.#late(request, travelMs);
        return reset;
      case 'page':
        return answered(503, '<!doctype html><title>We will be back</title>');
      case 'limited':
        return answered(429, '{"message":"Too Many Attempts."}');
      case 'failed':
        this.#carryOut(request, false);
        return answered(500, '{"message":"Server Error"}');
      case 'ok': {
        const { status, body } = this.#carryOut(request, true);
        return answered(status, JSON.stringify(body));
      }
      default:
        return fate satisfies never;
    }
  }

  #fate(): (typeof troubles)[number] | 'ok' {
    if (this.isAway) return this.#random.pick(['refused', 'lost_request']);
    return this.#random.chance(this.trouble) ? this.#random.pick(troubles) : 'ok';
  }

  #carryOut({ name, path, parameters, headers }: Request, arrives: boolean) {
    const licenseKey = parameters['license_key'] ?? '';
    const call = { at: this.#now(), name, path, licenseKey, parameters, headers, status: 0, counted: 0 };
    this.#store.calls.push(call);
    const answer = this.#store.handle(call);
    if (!arrives && call.counted > 0) this.lostActivations += 1;
    return answer;
  }

  async #late(request: Request, travelledMs: number): Promise<void> {
    await this.#pass(this.#random.between(1, timeoutMs - travelledMs - 1));
    this.#carryOut(request, false);
  }

  async #silence(travelledMs: number): Promise<Exchange> {
    await this.#pass(timeoutMs - travelledMs);
    return { type: 'failed', sent: true, error: new Error('no complete response in time'), headers: {} };
  }

  #now(): number {
    return this.#clock.now();
  }

  async #pass(ms: number): Promise<void> {
    await this.#clock.sleep(ms, this.#forEver);
  }

  readonly #forEver: AbortSignal = new AbortController().signal;
}

type Request = {
  name: 'validate' | 'activate' | 'deactivate' | 'instances';
  path: string;
  parameters: Record<string, string>;
  headers: Record<string, string>;
};

const reset: Exchange = { type: 'failed', sent: true, error: new Error('reset'), headers: {} };

function answered(status: number, text: string): Exchange {
  return { type: 'answered', status, headers: {}, text };
}
