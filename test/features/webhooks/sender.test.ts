import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import { setImmediate } from 'node:timers/promises';
import { Webhook } from 'standardwebhooks';
import { expect, test } from 'vitest';
import type { WebhookEndpoint } from '../../../src/features/webhooks/domain/webhook.ts';
import type { Clock } from '../../../src/service/ports.ts';
import type { Writer } from '../../../src/service/writer.ts';
import type { EventSender } from '../../../src/features/webhooks/sender.ts';
import { day, Harness, hour, second } from '../../support/harness/service-harness.ts';
import { silent } from '../../support/silent-log.ts';
import { loopback, openReceiver, openSender, type Receiver } from './support/webhooks.ts';

type Sleeper = { at: number; wake: () => void };

/** A store with a product, a sender that delivers to receivers on loopback, and a clock that the test moves. */
class SenderHarness extends Harness {
  readonly #sleepers = new Set<Sleeper>();
  readonly #ending = new AbortController();
  readonly #recorded: string[] = [];
  readonly #watching = new Set<() => void>();
  allow = loopback;
  sender!: EventSender;
  #running: Promise<void> = Promise.resolve();

  static async open(more: { resolve?: () => Promise<readonly { address: string; family: number }[]> } = {}) {
    const harness = new SenderHarness();
    await harness.writer.write('startAuthority', { adminTokenDigest: 'a', place: 'here', apiKeyDigest: 'b' });
    await harness.writer.write('addProduct', {
      name: 'Press',
      recurring: false,
      accountId: 'default',
      productKey: 'press',
      secret: null,
    });
    harness.sender = await openSender({
      reader: harness.store,
      writer: harness.watchedWriter(),
      clock: harness.clock(),
      address: {
        allow: () => harness.allow,
        own: () => [],
        resolve: more.resolve ?? (async () => [{ address: '127.0.0.1', family: 4 }]),
      },
    });
    return harness;
  }

  /** Starts to deliver. */
  start(): void {
    this.#running = this.sender.run(this.#ending.signal);
  }

  clock(): Clock {
    return {
      now: () => this.now,
      monotonic: () => this.monotonic,
      sleep: (ms, signal) =>
        new Promise((resolve, reject) => {
          const sleeper = { at: this.monotonic + ms, wake: resolve };
          this.#sleepers.add(sleeper);
          signal.addEventListener('abort', () => {
            this.#sleepers.delete(sleeper);
            reject(signal.reason as Error);
          });
        }),
    };
  }

  /** Moves the clock, and wakes what slept until then. */
  override pass(ms: number): void {
    super.pass(ms);
    for (const sleeper of [...this.#sleepers].filter(({ at }) => at <= this.monotonic)) {
      this.#sleepers.delete(sleeper);
      sleeper.wake();
    }
  }

  /** Tells when an attempt was recorded. */
  watchedWriter(): Writer {
    const { writer } = this;
    const write = async (...request: Parameters<Writer['write']>): Promise<unknown> => {
      const result = await writer.write(...request);
      const [name, command] = request;
      if (name === 'recordDelivery') {
        const { attempt } = command as { attempt: { error: string | null } };
        this.#recorded.push(attempt.error ?? 'delivered');
        for (const check of this.#watching) check();
      }
      return result;
    };
    return { write: write as Writer['write'] };
  }

  /** The results of attempts, as soon as there are so many. */
  recorded(count: number): Promise<readonly string[]> {
    return new Promise((resolve) => {
      const check = (): void => {
        if (this.#recorded.length < count) return;
        this.#watching.delete(check);
        resolve(this.#recorded);
      };
      this.#watching.add(check);
      check();
    });
  }

  async add(url: string): Promise<WebhookEndpoint> {
    const added = await this.writer.write('addWebhook', { url, types: null });
    if (!added.ok) throw new Error(added.problem.detail);
    return added.value;
  }

  async sell(licenseKey: string): Promise<void> {
    const terms = { buyerEmail: 'buyer@example.com', soldAt: null, uses: 0, enabled: true };
    const sold = await this.writer.write('addPurchase', { productKey: 'press', licenseKey, ...terms });
    if (!sold.ok) throw new Error(sold.problem.detail);
  }

  stored(endpointId: string): WebhookEndpoint | null {
    return this.store.webhooks.get(endpointId);
  }

  override async [Symbol.asyncDispose](): Promise<void> {
    this.#ending.abort();
    this.pass(3 * second);
    await this.#running;
    await super[Symbol.asyncDispose]();
  }
}

function keysOf({ received }: Receiver): unknown[] {
  return received.map(
    ({ body }) => (JSON.parse(body) as { data: { license_key?: string } }).data.license_key,
  );
}

test('events arrive in their order, signed, each with an id and a growing revision, and without an e-mail address', async () => {
  await using receiver = await openReceiver('/hook?of=latchkey');
  await using harness = await SenderHarness.open();
  const { secret, endpointId } = await harness.add(receiver.url);
  for (const licenseKey of ['ONE', 'TWO', 'THREE']) await harness.sell(licenseKey);
  harness.start();
  const received = await receiver.until(3);
  expect(keysOf(receiver)).toEqual(['ONE', 'TWO', 'THREE']);
  expect(await harness.recorded(3)).toEqual(['delivered', 'delivered', 'delivered']);
  const revisions: number[] = [];
  for (const { path, headers, body } of received) {
    expect(path).toBe('/hook?of=latchkey');
    expect(headers).toMatchObject({ 'content-type': 'application/json', 'user-agent': 'latchkey/0.0.0' });
    expect(body).not.toContain('@');
    // The clock of the test is not that of the library, which refuses old events.
    const signedAt = Number(headers['webhook-timestamp']) * 1000;
    expect(signedAt).toBe(harness.now);
    const signature = new Webhook(secret).sign(headers['webhook-id'] ?? '', new Date(signedAt), body);
    expect(headers['webhook-signature']).toBe(signature);
    const { type, timestamp, data } = JSON.parse(body) as Record<string, never> & {
      data: { revision: number };
    };
    expect([type, timestamp]).toEqual(['license.issued', '2026-01-01T00:00:00+00:00']);
    revisions.push(data.revision);
  }
  expect(revisions).toEqual([...new Set(revisions)].toSorted((one, other) => one - other));
  expect(new Set(received.map(({ headers }) => headers['webhook-id'])).size).toBe(3);
  const deliveries = harness.store.webhooks.deliveries(endpointId, { limit: 10, offset: 0 });
  expect(deliveries.map(({ isDelivered, attempts, status }) => [isDelivered, attempts, status])).toEqual(
    Array.from({ length: 3 }, () => [true, 1, 204]),
  );
});

test('an event that a receiver refuses is repeated under its id, before the events behind it', async () => {
  await using receiver = await openReceiver();
  await using harness = await SenderHarness.open();
  const { endpointId } = await harness.add(receiver.url);
  await harness.sell('ONE');
  await harness.sell('TWO');
  receiver.answer = (response) => response.writeHead(500).end();
  harness.start();
  expect(await harness.recorded(1)).toEqual(['answered 500']);
  expect(harness.stored(endpointId)).toMatchObject({
    failures: 1,
    lastError: 'answered 500',
    state: 'active',
  });
  receiver.answer = (response) => response.writeHead(200).end('thanks');
  harness.pass(second);
  await harness.recorded(3);
  expect(keysOf(receiver)).toEqual(['ONE', 'ONE', 'TWO']);
  const [first, again] = receiver.received;
  expect(again?.body).toBe(first?.body);
  expect(again?.headers['webhook-id']).toBe(first?.headers['webhook-id']);
  expect(harness.stored(endpointId)).toMatchObject({ failures: 0, lastError: null, failingSince: null });
});

test('a receiver that fails now and then gets the event again after a tenth of a second', async () => {
  await using receiver = await openReceiver();
  await using harness = await SenderHarness.open();
  await harness.add(receiver.url);
  await harness.sell('ONE');
  await harness.sell('TWO');
  receiver.answer = (response) => response.writeHead(receiver.received.length === 1 ? 503 : 204).end();
  harness.start();
  await harness.recorded(1);
  await setImmediate();
  harness.pass(second / 10);
  expect(await harness.recorded(3)).toEqual(['answered 503', 'delivered', 'delivered']);
});

test('an answer that is not HTTP is reported without the words of a library', async () => {
  const server = createServer((socket) => socket.end('HTTP/1.1 099 Odd\r\nContent-Length: 0\r\n\r\n'));
  await once(server.listen(0, '127.0.0.1'), 'listening');
  await using harness = await SenderHarness.open();
  await harness.add(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`);
  await harness.sell('ONE');
  harness.start();
  expect(await harness.recorded(1)).toEqual(['the response is not valid HTTP']);
  server.close();
});

test('a receiver that answers 500 for a day gets every event afterwards, in order', async () => {
  await using receiver = await openReceiver();
  await using harness = await SenderHarness.open();
  const { endpointId } = await harness.add(receiver.url);
  receiver.answer = (response) => response.writeHead(500).end();
  harness.start();
  for (let hours = 0; hours < 24; hours += 1) {
    await harness.sell(`KEY-${hours}`);
    harness.pass(hour);
    await harness.recorded(hours + 1);
  }
  expect(harness.stored(endpointId)).toMatchObject({ state: 'active', failures: 24 });
  receiver.answer = (response) => response.writeHead(204).end();
  harness.pass(hour);
  await harness.recorded(48);
  expect(keysOf(receiver).slice(24)).toEqual(Array.from({ length: 24 }, (_, hours) => `KEY-${hours}`));
});

test('an endpoint that fails for three days is paused, and gets what it has missed when it is resumed', async () => {
  await using receiver = await openReceiver();
  await using harness = await SenderHarness.open();
  const { endpointId } = await harness.add(receiver.url);
  await harness.sell('ONE');
  receiver.answer = (response) => response.writeHead(503).end();
  harness.start();
  await harness.recorded(1);
  harness.pass(3 * day);
  await harness.recorded(2);
  expect(harness.stored(endpointId)).toMatchObject({ state: 'paused', lastError: 'answered 503' });
  await harness.sell('TWO');
  receiver.answer = (response) => response.writeHead(204).end();
  await harness.writer.write('resumeWebhook', { endpointId });
  harness.sender.wake();
  await harness.recorded(4);
  expect(keysOf(receiver)).toEqual(['ONE', 'ONE', 'ONE', 'TWO']);
});

test('a redirect is a failure, and is not followed', async () => {
  await using other = await openReceiver();
  await using receiver = await openReceiver();
  await using harness = await SenderHarness.open();
  await harness.add(receiver.url);
  await harness.sell('ONE');
  receiver.answer = (response) => response.writeHead(307, { location: other.url }).end();
  harness.start();
  expect(await harness.recorded(1)).toEqual(['answered 307: redirects are not followed']);
  expect(other.received).toEqual([]);
});

test('a receiver that hangs is left after ten seconds, and holds up no other endpoint', async () => {
  await using hanging = await openReceiver();
  await using receiver = await openReceiver();
  await using harness = await SenderHarness.open();
  const { endpointId } = await harness.add(hanging.url);
  await harness.add(receiver.url);
  hanging.answer = () => undefined;
  await harness.sell('ONE');
  harness.start();
  await hanging.until(1);
  expect(await harness.recorded(1)).toEqual(['delivered']);
  harness.pass(10 * second);
  expect(await harness.recorded(2)).toContain('no answer within 10 s');
  expect(harness.stored(endpointId)).toMatchObject({ failures: 1, claim: null });
});

test('the status decides although the answer never ends: at most 64 KiB of the answer are read', async () => {
  await using receiver = await openReceiver();
  await using harness = await SenderHarness.open();
  await harness.add(receiver.url);
  await harness.sell('ONE');
  let sent = 0;
  const closed = Promise.withResolvers<void>();
  receiver.answer = (response) => {
    response.writeHead(200);
    response.on('close', () => closed.resolve());
    const send = (): void => {
      while (!response.closed && response.write(randomBytes(65_536))) sent += 65_536;
      response.once('drain', send);
    };
    send();
  };
  harness.start();
  expect(await harness.recorded(1)).toEqual(['delivered']);
  await closed.promise;
  // What was sent lies in the buffers of the system.
  expect(sent).toBeLessThan(64 * 1024 * 1024);
});

test('a name that resolves to a private address at its second look-up gets nothing', async () => {
  await using receiver = await openReceiver();
  let lookups = 0;
  const resolve = async () => {
    lookups += 1;
    return [{ address: lookups === 1 ? '127.0.0.1' : '10.0.0.1', family: 4 }];
  };
  await using harness = await SenderHarness.open({ resolve });
  const url = new URL(receiver.url);
  url.hostname = 'hooks.example';
  await harness.add(url.href);
  await harness.sell('ONE');
  harness.start();
  expect(await harness.recorded(1)).toEqual(['delivered']);
  expect(lookups).toBe(1);
  expect(receiver.received[0]?.headers['host']).toBe(url.host);
  await harness.sell('TWO');
  harness.pass(second);
  expect(await harness.recorded(2)).toEqual([
    'delivered',
    '10.0.0.1 is not in webhooks.out.allow, and plain http is only for addresses there',
  ]);
  expect(receiver.received).toHaveLength(1);
});

test('an address that webhooks.out.allow no longer names gets nothing', async () => {
  await using receiver = await openReceiver();
  await using harness = await SenderHarness.open();
  await harness.add(receiver.url);
  await harness.sell('ONE');
  harness.allow = [];
  harness.start();
  expect(await harness.recorded(1)).toEqual([
    '127.0.0.1 is not in webhooks.out.allow, and plain http is only for addresses there',
  ]);
  expect(receiver.received).toEqual([]);
});

test('a proxy of the environment is not used', async () => {
  await using proxy = await openReceiver();
  await using receiver = await openReceiver();
  await using harness = await SenderHarness.open();
  await harness.add(receiver.url);
  await harness.sell('ONE');
  process.env['HTTP_PROXY'] = new URL(proxy.url).origin;
  try {
    harness.start();
    expect(await harness.recorded(1)).toEqual(['delivered']);
  } finally {
    delete process.env['HTTP_PROXY'];
  }
  expect(proxy.received).toEqual([]);
});

test('a process that ends lets an attempt go on for two seconds, and the next process delivers the event again', async () => {
  await using receiver = await openReceiver();
  await using harness = await SenderHarness.open();
  const { endpointId } = await harness.add(receiver.url);
  await harness.sell('ONE');
  receiver.answer = () => undefined;
  const ending = new AbortController();
  const running = harness.sender.run(ending.signal);
  await receiver.until(1);
  ending.abort();
  harness.pass(2 * second);
  await running;
  expect(harness.stored(endpointId)).toMatchObject({ failures: 0 });
  receiver.answer = (response) => response.writeHead(204).end();
  harness.start();
  expect(await harness.recorded(1)).toEqual(['delivered']);
  const [first, again] = receiver.received;
  expect(again?.headers['webhook-id']).toBe(first?.headers['webhook-id']);
});

test('a process that ends after a delivery leaves the next event to another process', async () => {
  await using receiver = await openReceiver();
  await using harness = await SenderHarness.open();
  const { endpointId } = await harness.add(receiver.url);
  await harness.sell('ONE');
  await harness.sell('TWO');
  const ending = new AbortController();
  receiver.answer = (response) => {
    ending.abort();
    response.writeHead(204).end();
  };
  await harness.sender.run(ending.signal);
  expect(keysOf(receiver)).toEqual(['ONE']);
  expect(harness.stored(endpointId)).toMatchObject({ claim: null, claimedUntil: null });
});

test('a process that ends while it claims an event lets the attempt go on for two seconds only', async () => {
  await using receiver = await openReceiver();
  await using harness = await SenderHarness.open();
  await harness.add(receiver.url);
  await harness.sell('ONE');
  receiver.answer = () => undefined;
  const ending = new AbortController();
  const claiming: Writer['write'] = (name, ...more) => {
    if (name === 'claimDelivery') ending.abort();
    return harness.writer.write(name, ...more);
  };
  const sender = await openSender({
    reader: harness.store,
    writer: { write: claiming },
    clock: harness.clock(),
  });
  let hasEnded = false;
  const running = sender.run(ending.signal).then(() => (hasEnded = true));
  await receiver.until(1);
  harness.pass(2 * second);
  await expect.poll(() => hasEnded).toBe(true);
  await running;
});

test('a store that takes no writes is tried every second, and logged once a minute', async () => {
  await using harness = await SenderHarness.open();
  await harness.add('http://127.0.0.1/');
  await harness.sell('ONE');
  let tries = 0;
  const logged: string[] = [];
  const failing = (): Promise<never> => {
    tries += 1;
    return Promise.reject(new Error('the disk is full'));
  };
  const ending = new AbortController();
  const sender = await openSender({
    reader: harness.store,
    writer: { write: failing },
    clock: harness.clock(),
    log: { ...silent, warn: (_, message) => void logged.push(message) },
  });
  const running = sender.run(ending.signal);
  for (let seconds = 1; seconds <= 60; seconds += 1) {
    await expect.poll(() => tries, { interval: 1 }).toBe(seconds);
    await setImmediate();
    harness.pass(second);
  }
  expect(logged).toEqual(['events cannot be delivered now']);
  await expect.poll(() => logged.length).toBe(2);
  ending.abort();
  await running;
});
