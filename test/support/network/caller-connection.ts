import { connect, type Socket } from 'node:net';
import { connect as connectSecurely } from 'node:tls';
import { onTestFinished } from 'vitest';
import { certificate } from './certificate.ts';
import type { Listener } from './raw-http.ts';

/** The caller's side of one connection. */
export class CallerConnection {
  readonly socket: Socket;
  readonly closed: Promise<unknown>;
  #received = '';

  private constructor(socket: Socket) {
    this.socket = socket;
    this.closed = new Promise((resolve) => socket.once('close', resolve));
    socket.on('error', () => {});
    socket.on('data', (chunk: Buffer) => (this.#received += chunk.toString()));
    onTestFinished(() => {
      socket.destroy();
    });
  }

  static async open(listener: Listener): Promise<CallerConnection> {
    if ('socket' in listener) return await CallerConnection.#on(connect(listener.socket), 'connect');
    const { protocol, port } = new URL(listener.tcp);
    if (protocol === 'http:') return await CallerConnection.#on(connect(Number(port)), 'connect');
    const secure = connectSecurely({ port: Number(port), ca: certificate, servername: 'localhost' });
    return await CallerConnection.#on(secure, 'secureConnect');
  }

  static async #on(socket: Socket, opened: 'connect' | 'secureConnect'): Promise<CallerConnection> {
    const connection = new CallerConnection(socket);
    await Promise.race([new Promise((resolve) => socket.once(opened, resolve)), connection.closed]);
    return connection;
  }

  /** Opens only TCP to a listener that waits for a TLS handshake. */
  static async openWithoutHandshake(listener: Listener): Promise<CallerConnection> {
    const port = 'tcp' in listener ? Number(new URL(listener.tcp).port) : 0;
    return await CallerConnection.#on(connect(port), 'connect');
  }

  /** Sends a request and returns the head of the response; empty if the connection closes first. */
  async ask(bytes: string): Promise<string> {
    this.#received = '';
    this.socket.write(bytes);
    const answered = new Promise<void>((resolve) => {
      this.socket.on('data', () => {
        if (this.#received.includes('\r\n\r\n')) resolve();
      });
    });
    await Promise.race([answered, this.closed]);
    return this.#received.split('\r\n\r\n', 1)[0] ?? '';
  }
}
