import type { Dispatcher } from 'undici';
import { instanceHeader } from '../domain/header-names.ts';
import type { Outcome } from '../domain/outbox/outcome.ts';
import type { Clock } from '../service/ports.ts';
import { classify, sentAtOf, type ResponseContext } from './classification.ts';
import type { Dialect } from './dialects.ts';
import type { Transport } from './exchange.ts';

export type Method = 'GET' | 'PUT' | 'POST' | 'DELETE';

/** A request and its result, without credentials and license keys. */
export type SentRequest = {
  method: Method;
  /** Below `/api/v2`, unless it begins with `/agent` or `/sync`. */
  path: string;
  requestId: string | null;
  outcome: Outcome<unknown>['outcome'];
  /** Of the response; null if there was none. */
  status: number | null;
  /** In ms. */
  durationMs: number;
};

/** The clock that dates responses. */
export type UpstreamClock = Pick<Clock, 'now' | 'monotonic'> & {
  /**
   * The latest time that the upstream has confirmed, in epoch ms; it never goes back. Null before the first response.
   * No response gets a later date.
   */
  confirmed(): number | null;
};

/** How requests are sent and responses understood, whatever the store. */
export type SenderSettings = {
  dialect: Dialect;
  /** Our `User-Agent`. */
  userAgent: string;
  /** The instance id of this process, by which it recognizes its own responses; null if it has none. */
  self: string | null;
  /** Called with each request and its result. */
  onOutcome?: (request: SentRequest) => void;
  /** Called with the upstream's own clock (epoch ms; null if unknown) for each valid response. */
  onDate?: (epochMs: number | null) => void;
};

/** A request that is sent, and how to understand its response. */
type SentCall<Value> = Pick<ResponseContext<Value>, 'request' | 'read' | 'hidden'> &
  Pick<SentRequest, 'method' | 'path'> & {
    signal: AbortSignal;
    requestId?: string | null;
    /** Absent: the dialect of the settings. */
    dialect?: Dialect;
    /** For how long the upstream may wait for a change. */
    waitMs?: number;
  };

/** Sends requests to one upstream, and says what their responses prove. */
export class Sender implements AsyncDisposable {
  readonly #transport: Transport;
  readonly #settings: SenderSettings;
  readonly #clock: UpstreamClock;

  constructor(transport: Transport, settings: SenderSettings, clock: UpstreamClock) {
    this.#transport = transport;
    this.#settings = settings;
    this.#clock = clock;
  }

  async send<Value>(options: Dispatcher.DispatchOptions, call: SentCall<Value>): Promise<Outcome<Value>> {
    const startedAt = this.#clock.monotonic();
    const { exchange, discard } = await this.#transport.send(options, call.signal, call.waitMs);
    const { self } = this.#settings;
    const { read, request, hidden, dialect = this.#settings.dialect } = call;
    const [now, confirmed] = [this.#clock.now(), this.#clock.confirmed()];
    const outcome = classify(exchange, { read, request, dialect, self, hidden, now, confirmed });
    this.#settings.onOutcome?.({
      method: call.method,
      path: call.path,
      requestId: call.requestId ?? null,
      outcome: outcome.outcome,
      status: exchange.type === 'answered' ? exchange.status : null,
      durationMs: this.#clock.monotonic() - startedAt,
    });
    if (outcome.outcome === 'ambiguous') discard();
    if (outcome.outcome !== 'applied' || outcome.isCached || exchange.type !== 'answered') return outcome;
    this.#settings.onDate?.(sentAtOf(exchange));
    // This response may have shown that the clock was ahead.
    const latest = this.#clock.confirmed() ?? this.#clock.now();
    return { ...outcome, confirmedAt: Math.min(outcome.confirmedAt, latest) };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#transport[Symbol.asyncDispose]();
  }
}

/** The headers of each request to an upstream. */
export function commonHeaders({
  userAgent,
  self,
}: Pick<SenderSettings, 'userAgent' | 'self'>): Record<string, string> {
  return {
    accept: 'application/json',
    // Without the header any coding is allowed (RFC 9110 section 12.5.3), and nothing here decompresses.
    'accept-encoding': 'identity',
    // A cache must not answer for the store: a read decides about a lost response.
    'cache-control': 'no-cache',
    'user-agent': userAgent,
    // If this request reaches our own listener, the listener must not ask the upstream in turn.
    ...(self !== null && { [instanceHeader.toLowerCase()]: self }),
  };
}
