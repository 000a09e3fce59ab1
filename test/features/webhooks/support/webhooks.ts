import { lookup } from 'node:dns/promises';
import { randomUUID } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { once } from 'node:events';
import type { Clock } from '../../../../src/service/ports.ts';
import type { WebhookSender } from '../../../../src/features/webhooks/service/endpoint.ts';
import type { EventSender, SenderParts } from '../../../../src/features/webhooks/sender.ts';
import { trustSystemAnd } from '../../../../src/daemon/system/trust.ts';
import { silent } from '../../../support/silent-log.ts';

export const loopback = [{ address: '127.0.0.0', prefix: 8 }];

type Needed = Pick<SenderParts, 'reader' | 'writer'> & Partial<SenderParts>;

const machineClock: Clock = {
  now: () => Date.now(),
  monotonic: () => Math.round(performance.now()),
  sleep: (ms, signal) =>
    new Promise((resolve, reject) => {
      const timer = setTimeout(resolve, ms);
      signal.addEventListener('abort', () => {
        clearTimeout(timer);
        reject(signal.reason as Error);
      });
    }),
};

/** What sends events in a test: to receivers on loopback, which the addresses of `allow` name. */
export async function openSender(parts: Needed): Promise<EventSender> {
  const { EventSender: Loaded } = await import('../../../../src/features/webhooks/sender.ts');
  return new Loaded({
    clock: machineClock,
    random: { uuid: () => randomUUID() },
    log: silent,
    expiringMs: () => 7 * 86_400_000,
    address: {
      allow: () => loopback,
      own: () => ['127.0.0.1'],
      resolve: async (host) => await lookup(host, { all: true }),
    },
    trust: trustSystemAnd(),
    version: '0.0.0',
    isAlone: true,
    count: () => undefined,
    ...parts,
  });
}

/** The same, loaded at its first use. */
export function lazySender(parts: Needed): WebhookSender {
  let sender: Promise<EventSender> | null = null;
  const load = (): Promise<EventSender> => (sender ??= openSender(parts));
  return {
    check: async (url) => await (await load()).check(url),
    test: async (endpoint) => await (await load()).test(endpoint),
    replay: async (endpoint, event) => await (await load()).replay(endpoint, event),
    wake: () => undefined,
  };
}

export type Received = { path: string; headers: Record<string, string>; body: string };

/** A receiver of events on loopback. */
export type Receiver = AsyncDisposable & {
  url: string;
  received: Received[];
  /** Answers the requests from now on; default: 204. */
  answer: (response: ServerResponse, received: Received) => void;
  /** Resolves when so many requests have arrived. */
  until(count: number): Promise<readonly Received[]>;
};

export async function openReceiver(path = '/hook'): Promise<Receiver> {
  const waiting = new Set<() => void>();
  const handle = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const body = await readBody(request);
    const headers = Object.fromEntries(
      Object.entries(request.headers).map(([name, value]) => [name, String(value)]),
    );
    const received = { path: request.url ?? '', headers, body };
    receiver.received.push(received);
    for (const check of waiting) check();
    receiver.answer(response, received);
  };
  const server = createServer((request, response) => void handle(request, response));
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as AddressInfo;
  const receiver: Receiver = {
    url: `http://127.0.0.1:${port}${path}`,
    received: [],
    answer: (response) => response.writeHead(204).end(),
    until: (count) =>
      new Promise((resolve) => {
        const check = (): void => {
          if (receiver.received.length < count) return;
          waiting.delete(check);
          resolve(receiver.received);
        };
        waiting.add(check);
        check();
      }),
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  return receiver;
}

async function readBody(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString();
}
