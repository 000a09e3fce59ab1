import type { Exchange, Transport } from '../../../src/upstream/exchange.ts';
import type { VirtualClock } from '../../support/harness/virtual-clock.ts';
import {
  type ParsedRequest,
  type Origin,
  type Ledger,
  type Reply,
  unknownOrigin,
  readRequest,
} from './ledger.ts';
import type { SeededRandom } from './seeded-random.ts';
import { noFaults, isTroubled, type FaultProfile } from './fault-profile.ts';

/** How long a client waits for an answer, in ms. */
export const timeoutMs = 3_000;
/** The quiet time that the agent is configured with, and that every request is dead before, in ms. */
export const reconcileAfterMs = 10_000;
/** When the last late request has arrived, and the last lost answer was missed, in ms. */
export const quietMs: number = reconcileAfterMs + timeoutMs;

/** One request as it left an agent. */
export type Sent = {
  what: ParsedRequest['what'];
  /** The license key as the upstream files it; another subject as it was sent. */
  subject: string;
  origin: Origin;
  /** Ms of virtual time. */
  at: number;
  /** Whether its answer, once there is one, leaves no uncertainty about what was done. */
  settled: boolean;
};

/** A process that sends, as far as the network looks at it. */
export interface Sender {
  readonly isDead: boolean;
  /** What the outbox of its store says is in flight. */
  originOf(parsed: ParsedRequest): Origin;
}

/** Called for every request, before it leaves and at its response. */
export type Observer = {
  onSend: (sent: Sent, sender: Sender) => void;
  onResponse: (sent: Sent, waitMs: number | null, sender: Sender, now: number) => void;
};

/** The upstream does not answer. */
type Loss = 'refused' | 'lost_request' | 'lost_answer' | 'late' | 'late_reset' | 'late_gateway';
/** A response arrives, but not always from the upstream. */
type UpstreamResponse =
  | 'ok'
  | 'slow'
  | 'error_before'
  | 'error_after'
  | 'garbage_after'
  | 'redirect'
  | 'throttled'
  | 'busy'
  | 'unauthorized'
  | 'firewall'
  | 'declined'
  | 'no_route'
  | 'cached';
type Fate = Loss | UpstreamResponse;

const troubles: readonly [Fate, ...Fate[]] = [
  'refused',
  'lost_request',
  'lost_answer',
  'lost_answer',
  'late',
  'late',
  'late_reset',
  'late_gateway',
  'error_before',
  'error_after',
  'garbage_after',
  'redirect',
  'throttled',
  'busy',
  'firewall',
];

/** Whether such an answer says what was done, to whoever reads it with care. */
const settles: ReadonlySet<Fate> = new Set<Fate>([
  'ok',
  'slow',
  'refused',
  'throttled',
  'unauthorized',
  'declined',
  'no_route',
]);

type Trip = { parsed: ParsedRequest; origin: Origin; fate: Fate };

/** The network between agents and one upstream: latency, losses, gateways, firewalls and caches. */
export class Network {
  faultProfile: FaultProfile = noFaults;
  /** By what a page of the firewall is known for one: nothing went past it. Without, nobody can tell. */
  firewallMarks: Record<string, string> = {};
  readonly ledger: Ledger;
  readonly #clock: VirtualClock;
  readonly #random: SeededRandom;
  readonly #observer: Observer;
  /** Its own, so that what waits by it goes with it. */
  readonly #forEver: AbortSignal = new AbortController().signal;
  readonly #cache = new Map<string, { text: string; at: number }>();
  /** How many answers the upstream has made: each carries its number, so that a store shows which it holds. */
  #answers = 0;

  constructor(parts: { ledger: Ledger; clock: VirtualClock; random: SeededRandom; observer: Observer }) {
    this.ledger = parts.ledger;
    this.#clock = parts.clock;
    this.#random = parts.random;
    this.#observer = parts.observer;
  }

  change(faultProfile: Partial<FaultProfile>): void {
    this.faultProfile = { ...this.faultProfile, ...faultProfile };
  }

  /** The way up of one process. */
  transport(sender: Sender): Transport {
    return {
      send: async (request) => {
        if (sender.isDead) return await new Promise<never>(() => undefined);
        const parsed = readRequest(request);
        const isFresh = (request.headers as Record<string, string>)['cache-control'] === 'no-cache';
        const origin = isChange(parsed) ? sender.originOf(parsed) : unknownOrigin;
        const trip = { parsed, origin, fate: this.#fate(parsed, isFresh) };
        const subject = this.ledger.fold(parsed.subject);
        const sent = { what: parsed.what, subject, origin, at: this.#now(), settled: false };
        this.#observer.onSend(sent, sender);
        const exchange = await this.#travel(trip);
        sent.settled = settles.has(trip.fate) || (trip.fate === 'firewall' && this.#isFirewallMarked);
        this.#observer.onResponse(sent, this.#retryAfterMs(exchange), sender, this.#now());
        return { exchange, discard: () => undefined };
      },
      [Symbol.asyncDispose]: () => Promise.resolve(),
    };
  }

  get #isFirewallMarked(): boolean {
    return Object.keys(this.firewallMarks).length > 0;
  }

  #now(): number {
    return this.#clock.reading().monotonic;
  }

  #fate(parsed: ParsedRequest, isFresh: boolean): Fate {
    const { faultProfile } = this;
    if (faultProfile.away !== null) return faultProfile.away;
    if (isTroubled(faultProfile.poison, parsed)) return faultProfile.poison?.how ?? 'error_before';
    if (isTroubled(faultProfile.noRoute, parsed)) return 'no_route';
    if (this.#random.chance(faultProfile.unauthorized)) return 'unauthorized';
    if (isChange(parsed) && this.#random.chance(faultProfile.declining)) return 'declined';
    if (this.#mayBeCached(parsed, isFresh) && this.#random.chance(faultProfile.caching)) return 'cached';
    if (faultProfile.throttling > 0 && this.#random.chance(faultProfile.throttling)) return 'throttled';
    if (this.#random.chance(faultProfile.trouble)) return this.#random.pick(troubles);
    return this.#random.chance(0.2) ? 'slow' : 'ok';
  }

  async #travel(trip: Trip): Promise<Exchange> {
    const travelMs = this.#random.between(1, 300);
    await this.#pass(travelMs);
    switch (trip.fate) {
      case 'refused':
        return refused;
      case 'lost_request':
        return this.#silence(travelMs);
      case 'lost_answer':
        this.#work(trip);
        return this.#random.chance(0.5) ? reset : this.#silence(travelMs);
      case 'late':
        void this.#late(trip, travelMs);
        return this.#silence(travelMs);
      case 'late_reset':
        void this.#late(trip, travelMs);
        return reset;
      case 'late_gateway':
        void this.#late(trip, travelMs);
        return this.#answer(504, '<html>a gateway has lost patience</html>');
      case 'slow': {
        const reply = this.#work(trip);
        await this.#pass(this.#random.between(1, timeoutMs - travelMs - 1));
        return this.#answer(reply.status, JSON.stringify(reply.body));
      }
      case 'ok':
      case 'cached':
      case 'error_before':
      case 'error_after':
      case 'garbage_after':
      case 'redirect':
      case 'throttled':
      case 'busy':
      case 'unauthorized':
      case 'firewall':
      case 'declined':
      case 'no_route':
        return this.#answered(trip, trip.fate);
      default:
        return trip.fate satisfies never;
    }
  }

  #answered(trip: Trip, fate: Exclude<UpstreamResponse, 'slow'>): Exchange {
    switch (fate) {
      case 'ok': {
        const { status, body } = this.#work(trip);
        const text = JSON.stringify(body);
        if (trip.parsed.what === 'verify' && status === 200) {
          this.#cache.set(urlOf(trip.parsed), { text, at: this.#now() });
        }
        return this.#answer(status, text);
      }
      case 'cached':
        return this.#fromCache(trip.parsed);
      case 'error_before':
        return this.#answer(this.#random.pick([500, 502, 503, 504]), '<html>a bad day</html>');
      case 'error_after':
        this.#work(trip);
        return this.#answer(this.#random.pick([500, 502, 504]), '{"error":"a bad day"}');
      case 'garbage_after':
        this.#work(trip);
        return this.#answer(200, this.#random.pick(['<html>hello</html>', '{"data":', '{}', '[]', '']));
      case 'redirect':
        return this.#answer(this.#random.pick([301, 302, 307]), '', {
          location: 'https://elsewhere.example',
        });
      case 'throttled':
        return this.#answer(429, '{"error":"slow down"}', { 'retry-after': this.#retryAfter() });
      case 'busy':
        return this.#answer(503, '<html>later</html>', { 'retry-after': this.#retryAfter() });
      case 'unauthorized':
        return this.#answer(401, '{"error":"wrong secret"}');
      case 'firewall':
        return this.#answer(403, '<html>blocked</html>', this.firewallMarks);
      case 'declined':
        return this.#answer(this.#random.pick([400, 422]), '{"error":"not like this"}');
      case 'no_route':
        return this.#answer(404, '{"error":"no such route"}');
      default:
        return fate satisfies never;
    }
  }

  /** The request arrives. */
  #work({ parsed, origin }: Trip): Reply {
    const reply = this.ledger.handle(parsed, origin);
    this.#answers += 1;
    const { data } = reply.body;
    if (typeof data !== 'object' || data === null || !('buyer_email' in data)) return reply;
    const body = { data: { ...data, buyer_email: `answer-${this.#answers}@example.com` } };
    return { status: reply.status, body };
  }

  /** It arrives when nobody waits for it any more, but within the reconcile delay after it was sent. */
  async #late(trip: Trip, travelMs: number): Promise<void> {
    const rest = reconcileAfterMs - 1 - travelMs;
    const isNear = this.faultProfile.lateArrivals && this.#random.chance(0.5);
    await this.#pass(isNear ? rest - this.#random.between(0, 50) : this.#random.between(1, rest - 1_000));
    this.#work(trip);
  }

  #mayBeCached(parsed: ParsedRequest, isFresh: boolean): boolean {
    const cached = parsed.what === 'verify' ? this.#cache.get(urlOf(parsed)) : undefined;
    // Below one second no cache says how old its answer is.
    if (cached === undefined || this.#now() - cached.at < 1_000) return false;
    return !isFresh || this.faultProfile.cacheIsStubborn;
  }

  #fromCache(parsed: ParsedRequest): Exchange {
    const cached = this.#cache.get(urlOf(parsed));
    if (cached === undefined) throw new Error(`nothing is cached of ${parsed.subject}`);
    const age = this.#now() - cached.at;
    const date = { date: new Date(this.#upstreamTime() - age).toUTCString() };
    const own = this.faultProfile.isUndated ? {} : date;
    return this.#answer(200, cached.text, { ...own, age: String(Math.floor(age / 1_000)) });
  }

  #retryAfter(): string {
    const seconds = this.#random.between(0, this.faultProfile.longestWaitS);
    if (this.#random.chance(0.5) || this.faultProfile.isUndated) return String(seconds);
    return new Date(this.#upstreamTime() + seconds * 1000).toUTCString();
  }

  /** For how long an answer asks to be left alone, in ms, by a reading of its own. */
  #retryAfterMs(exchange: Exchange): number | null {
    if (exchange.type === 'failed') return null;
    const { 'retry-after': retryAfter, date } = exchange.headers;
    if (typeof retryAfter !== 'string') return null;
    const isSeconds = /^\d+$/.test(retryAfter);
    const waitMs = isSeconds ? Number(retryAfter) * 1000 : Date.parse(retryAfter) - Date.parse(String(date));
    // Nobody's page keeps an agent away for long: only a JSON object is the upstream's own word.
    return exchange.text.startsWith('{') ? waitMs : Math.min(waitMs, 15 * 60_000);
  }

  #upstreamTime(): number {
    return this.#clock.now() + this.faultProfile.datesAheadMs;
  }

  #answer(status: number, text: string, headers: Record<string, string> = {}): Exchange {
    const date = { date: new Date(this.#upstreamTime()).toUTCString() };
    const own = this.faultProfile.isUndated ? {} : date;
    return { type: 'answered', status, text, headers: { ...own, ...headers } };
  }

  async #silence(waitedMs: number): Promise<Exchange> {
    await this.#pass(timeoutMs - waitedMs);
    return silent;
  }

  async #pass(ms: number): Promise<void> {
    await this.#clock.sleep(ms, this.#forEver);
  }
}

const refused: Exchange = {
  type: 'failed',
  sent: false,
  error: new Error('connection refused'),
  headers: {},
};
const reset: Exchange = { type: 'failed', sent: true, error: new Error('connection reset'), headers: {} };
const silent: Exchange = { type: 'failed', sent: true, error: new Error('no answer in time'), headers: {} };

/** Whether a request is a change. */
export function isChange({ what }: Pick<ParsedRequest, 'what'>): boolean {
  return what !== 'verify' && what !== 'list_coupons' && what !== 'get_coupon';
}

function urlOf({ subject, secret }: ParsedRequest): string {
  return `${secret} ${subject}`;
}
