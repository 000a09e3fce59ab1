import { connect, type Socket } from 'node:net';
import type { Listener } from './raw-http.ts';

/** Opens a connection for raw bytes. */
export function openSocket(listener: Listener): Socket {
  const socket =
    'socket' in listener
      ? connect(listener.socket)
      : connect({ host: '127.0.0.1', port: Number(new URL(listener.tcp).port) });
  return socket.setEncoding('latin1');
}

/** One connection on which requests are sent one after the other, as raw bytes. */
export class KeptConnection implements AsyncDisposable {
  readonly #listener: Listener;
  #socket: Socket | null = null;

  constructor(listener: Listener) {
    this.#listener = listener;
  }

  /** Returns the raw response; opens a new connection if the previous one was closed. */
  async send(bytes: string): Promise<string> {
    if (this.#socket === null || this.#socket.destroyed || this.#socket.readableEnded)
      this.#socket = openSocket(this.#listener);
    const socket = this.#socket;
    const hasBody = !bytes.startsWith('HEAD ');
    const { promise, resolve, reject } = Promise.withResolvers<string>();
    let received = '';
    const take = (chunk: string): void => {
      received += chunk;
      if (isWhole(received, hasBody)) resolve(received);
    };
    const end = (): void => resolve(received);
    socket.on('data', take).once('end', end).once('error', reject);
    socket.write(bytes);
    try {
      return await promise;
    } finally {
      socket.off('data', take).off('end', end).off('error', reject);
      if (/^connection: close\r$/im.test(received)) socket.destroy();
    }
  }

  /** Returns all bytes until the connection is closed. */
  async sendLast(bytes: string): Promise<string> {
    const socket = this.#socket ?? openSocket(this.#listener);
    socket.write(bytes);
    let received = '';
    for await (const chunk of socket) received += String(chunk);
    return received;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#socket?.destroy();
  }
}

function isWhole(received: string, hasBody: boolean): boolean {
  const end = received.indexOf('\r\n\r\n');
  if (end === -1) return false;
  const length = hasBody
    ? Number(/^content-length: (\d+)\r$/im.exec(received.slice(0, end + 2))?.[1] ?? 0)
    : 0;
  return received.length >= end + 4 + length;
}

/**
 * Removes what differs between two responses to the same request: the time, and the ids that the server made.
 */
export function withoutInstant(answer: string): string {
  const id = /^x-request-id: ([0-9a-f-]{36})\r$/im.exec(answer)?.[1];
  const undated = answer.replace(/^Date: .*\r\n/im, '');
  return id === undefined ? undated : undated.replaceAll(id, 'ID');
}

let heads = 0;

/** The same request with a head that was never sent before. */
export function withNewHead(bytes: string): string {
  heads += 1;
  return bytes.replace('\r\n', `\r\nX-Head: ${heads}\r\n`);
}
