import type { SecureContext } from 'node:tls';
import { failWith } from '../../domain/problem/problem.ts';
import { signingSecrets, type Attempt, type WebhookEndpoint, type WebhookEvent } from './domain/webhook.ts';
import { recordTimedEvents } from '../../service/timed-events.ts';
import type { Clock, Log, Random } from '../../service/ports.ts';
import type { AuthorityReader } from '../../service/tables.ts';
import type { ClaimedDelivery } from './service/delivery.ts';
import type { WebhookSender } from './service/endpoint.ts';
import type { Writer } from '../../service/writer.ts';
import { Wake } from '../../sync/waiting.ts';
import { eventBody, testBody } from './wire/webhook.ts';
import { findDestination, type AddressParts } from './address.ts';
import { post } from './request.ts';
import { signedHeaders } from './signature.ts';
import { minuteMs } from '../../domain/time.ts';

/*
 * Delivers events. Each endpoint gets its events one after the other, in the order of their numbers:
 *
 *   due        an event is above the position of the endpoint, and no wait or claim holds it
 *   claimed    one process has the endpoint for half a minute, and posts one event
 *   delivered  the position moves to the event, and the next event is claimed in the same transaction
 *   failed     the endpoint waits (features/webhooks/domain/webhook.ts); after three days it is paused
 */

/** How often new events are looked for, in ms: another thread or another node writes them. */
const pollMs = 1_000;
/** How often events are looked for that only the time causes, in ms. */
const timedEveryMs = minuteMs;
/** How long an attempt may take, in ms. */
const attemptMs = 10_000;
/** How often it is logged that the store takes no results, in ms. */
const reportEveryMs = minuteMs;
/** How long attempts may still take when the process ends, in ms. */
const endingMs = 2_000;

export type SenderParts = {
  reader: Pick<AuthorityReader, 'webhooks'>;
  writer: Writer;
  clock: Clock;
  random: Pick<Random, 'uuid'>;
  log: Log;
  address: AddressParts;
  /** The trusted authorities; called for the first request over TLS. */
  trust: () => SecureContext;
  version: string;
  /** How long before its end a license is reported, in ms. */
  expiringMs: () => number;
  /** Whether no other process uses the store. */
  isAlone: boolean;
  /** Counts an attempt. */
  count: (result: 'delivered' | 'failed') => void;
};

export class EventSender implements WebhookSender {
  readonly #parts: SenderParts;
  readonly #wake: Wake;
  readonly #active = new Map<string, Promise<void>>();
  #timedAt = -Infinity;
  #reportedAt = -Infinity;

  constructor(parts: SenderParts) {
    this.#parts = parts;
    this.#wake = new Wake(parts.clock);
  }

  /** Delivers until the signal aborts, then until the attempts under way have ended. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.#round(signal).catch((error: unknown) => this.#report(error));
      await this.#wake.wait(pollMs, signal);
    }
    await Promise.all(this.#active.values());
  }

  wake(): void {
    this.#wake.up();
  }

  async check(url: string): ReturnType<WebhookSender['check']> {
    return await findDestination(url, this.#parts.address);
  }

  async test(endpoint: WebhookEndpoint): Promise<Attempt> {
    const { clock, random } = this.#parts;
    const now = clock.now();
    return await this.#attempt(endpoint, { id: random.uuid(now), body: testBody(now) });
  }

  async replay(endpoint: WebhookEndpoint, event: WebhookEvent): Promise<Attempt> {
    return await this.#attempt(endpoint, { id: event.eventId, body: eventBody(event) });
  }

  async #round(signal: AbortSignal): Promise<void> {
    const { reader, clock, isAlone } = this.#parts;
    await this.#recordTimed();
    const due = await reader.webhooks.due(clock.now(), isAlone);
    for (const endpointId of due.filter((id) => !this.#active.has(id))) {
      const delivering = this.#deliver(endpointId, signal)
        .catch((error: unknown) => this.#report(error))
        .finally(() => this.#active.delete(endpointId));
      this.#active.set(endpointId, delivering);
    }
  }

  async #recordTimed(): Promise<void> {
    const { writer, clock, expiringMs } = this.#parts;
    if (clock.monotonic() < this.#timedAt + timedEveryMs) return;
    this.#timedAt = clock.monotonic();
    await recordTimedEvents(writer, { expiringMs: expiringMs() });
  }

  /** Delivers the events of an endpoint until there is none, or an attempt fails. */
  async #deliver(endpointId: string, signal: AbortSignal): Promise<void> {
    const { writer, clock, random, isAlone } = this.#parts;
    const claim = random.uuid(clock.now());
    const claimed = await writer.write('claimDelivery', { endpointId, claim, isAlone });
    let next: ClaimedDelivery | null = claimed.ok ? claimed.value : null;
    while (next !== null) {
      const { endpoint, event }: ClaimedDelivery = next;
      const attempt = await this.#attempt(endpoint, { id: event.eventId, body: eventBody(event) }, signal);
      // The event is delivered again after the next start.
      if (signal.aborted && attempt.error !== null) return;
      const recorded = await writer.write('recordDelivery', {
        endpointId,
        claim,
        event,
        attempt,
        isLast: signal.aborted,
      });
      if (!recorded.ok || recorded.value === null) return;
      this.#log(recorded.value.endpoint, event, attempt);
      ({ next } = recorded.value);
      if (next === null) this.#wakeAt(recorded.value.endpoint.nextAt, signal);
    }
  }

  /** Wakes the loop for an endpoint that waits for less than a round. */
  #wakeAt(nextAt: number | null, signal: AbortSignal): void {
    const { clock } = this.#parts;
    const waitMs = nextAt === null ? 0 : nextAt - clock.now();
    if (waitMs > 0 && waitMs < pollMs)
      void clock.sleep(waitMs, signal).then(
        () => this.wake(),
        () => undefined,
      );
  }

  async #attempt(
    { url, ...secrets }: WebhookEndpoint,
    { id, body }: { id: string; body: string },
    ending: AbortSignal | null = null,
  ): Promise<Attempt> {
    const { clock, address, version, trust, count } = this.#parts;
    const startedAt = clock.monotonic();
    using deadline = deadlineOf(clock, ending);
    const { signal } = deadline;
    const found = await Promise.race([findDestination(url, address), deadline.ended]);
    const durationMs = (): number => clock.monotonic() - startedAt;
    if (!found.ok) {
      count('failed');
      const error = found.problem.errors?.[0]?.detail ?? found.problem.detail;
      return { status: null, error, retryAfterMs: null, durationMs: durationMs() };
    }
    const now = clock.now();
    const message = { id, timestampS: Math.floor(now / 1000), body };
    const headers = {
      'content-type': 'application/json',
      'user-agent': `latchkey/${version}`,
      ...signedHeaders(message, signingSecrets(secrets, now)),
    };
    const result = await post({ destination: found.value, headers, body, trust, signal });
    count(result.error === null ? 'delivered' : 'failed');
    return { ...result, durationMs: durationMs() };
  }

  #log({ endpointId, state }: WebhookEndpoint, { type, eventId }: WebhookEvent, attempt: Attempt): void {
    const { log } = this.#parts;
    const fields = { webhook: endpointId, event: eventId, type, status: attempt.status };
    if (attempt.error === null) {
      log.debug(fields, 'an event was delivered');
      return;
    }
    const failed = { ...fields, error: attempt.error };
    if (state === 'active') {
      log.warn(failed, 'an event could not be delivered');
      return;
    }
    const hint = `repair the receiver, and then run: latchkey webhook resume ${endpointId}`;
    log.error({ ...failed, hint }, 'a webhook endpoint is paused');
  }

  /** The store may be full or away for a while: the next round tries again. */
  #report(error: unknown): void {
    const { clock, log } = this.#parts;
    if (clock.monotonic() < this.#reportedAt + reportEveryMs) return;
    this.#reportedAt = clock.monotonic();
    log.warn({ err: error }, 'events cannot be delivered now');
  }
}

const tooLate = failWith('upstream_unreachable', `no answer within ${attemptMs / 1000} s`);

type Deadline = Disposable & {
  signal: AbortSignal;
  /** Resolves when the attempt must end. */
  ended: Promise<typeof tooLate>;
};

/** Ends an attempt after its time, or soon after the process begins to end. */
function deadlineOf(clock: Clock, ending: AbortSignal | null): Deadline {
  const attempt = new AbortController();
  const over = new AbortController();
  const { promise: ended, resolve } = Promise.withResolvers<typeof tooLate>();
  const end = (): void => {
    attempt.abort(new Error(tooLate.problem.detail));
    resolve(tooLate);
  };
  const endAfter = (ms: number): void => void clock.sleep(ms, over.signal).then(end, () => undefined);
  const onEnding = (): void => endAfter(endingMs);
  endAfter(attemptMs);
  if (ending?.aborted === true) onEnding();
  ending?.addEventListener('abort', onEnding, { once: true });
  return {
    signal: attempt.signal,
    ended,
    [Symbol.dispose]() {
      ending?.removeEventListener('abort', onEnding);
      over.abort();
    },
  };
}
