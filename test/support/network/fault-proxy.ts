import { once } from 'node:events';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { freePort } from './free-port.ts';

/** The state of the network; every state except `pass` is a failure. */
export type NetworkFault =
  | { readonly kind: 'pass' }
  /** The port is closed, and open connections are reset. */
  | { readonly kind: 'refuse' }
  /** Connections are accepted, and all their bytes are swallowed. */
  | { readonly kind: 'blackhole' }
  /** Every connection is reset as soon as it is open. */
  | { readonly kind: 'reset_on_connect' }
  /**
   * The request arrives, but its response becomes a reset; with `containing`, only a response with this text.
   */
  | { readonly kind: 'reset_answer'; readonly containing?: string }
  /** The request arrives, but its response never does, and the connection stays open. */
  | { readonly kind: 'half_open' }
  /** The first `afterBytes` bytes of later responses arrive, then the connection ends. */
  | { readonly kind: 'cut_answer'; readonly afterBytes: number }
  /** All bytes arrive, `delayMs` late in each direction. */
  | { readonly kind: 'latency'; readonly delayMs: number };

interface Connection {
  readonly client: Socket;
  readonly target: Socket;
  /** Response bytes since the fault began. */
  answeredBytes: number;
  /**
   * `deaf`: nothing reaches the target; `mute`: nothing reaches the client. A connection that lost a byte
   * never recovers.
   */
  deaf: boolean;
  mute: boolean;
}

/**
 * A network in front of a local port that a test can break while it runs. It has no back-pressure, so it is
 * for small messages only.
 */
export class FaultProxy implements AsyncDisposable {
  readonly #targetPort: number;
  readonly #connections: Set<Connection> = new Set();
  #server: Server | undefined;
  #port = 0;
  #resetResponses = 0;
  #swallowed = 0;
  #fault: NetworkFault = { kind: 'pass' };

  constructor(targetPort: number) {
    this.#targetPort = targetPort;
  }

  get port(): number {
    return this.#port;
  }

  get url(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  /** How many responses became resets. */
  get resetResponses(): number {
    return this.#resetResponses;
  }

  /** How many chunks from callers were swallowed. */
  get swallowed(): number {
    return this.#swallowed;
  }

  /** The number of open connections. */
  get connections(): number {
    return this.#connections.size;
  }

  /**
   * Changes the fault, for open connections too. Resolves once the listener is open or closed accordingly.
   */
  async become(fault: NetworkFault): Promise<void> {
    this.#fault = fault;
    for (const connection of this.#connections) connection.answeredBytes = 0;
    if (fault.kind === 'refuse' || fault.kind === 'reset_on_connect') this.resetAll();
    await (fault.kind === 'refuse' ? this.#close() : this.#listen());
  }

  /** Resets every open connection, as a router that lost its table does. */
  resetAll(): void {
    for (const { client, target } of this.#connections) {
      client.resetAndDestroy();
      target.destroy();
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.resetAll();
    await this.#close();
  }

  async #listen(): Promise<void> {
    if (this.#server !== undefined) return;
    this.#server = createServer({ noDelay: true }, (client) => this.#accept(client));
    // While the proxy refuses connections, no other program may take its port.
    this.#port ||= await freePort();
    this.#server.listen(this.#port, '127.0.0.1');
    await once(this.#server, 'listening');
  }

  async #close(): Promise<void> {
    const server = this.#server;
    this.#server = undefined;
    if (server === undefined) return;
    server.close();
    this.resetAll();
    await once(server, 'close');
  }

  #accept(client: Socket): void {
    if (this.#fault.kind === 'reset_on_connect' || this.#server === undefined) {
      client.resetAndDestroy();
      return;
    }
    const target = connect({ host: '127.0.0.1', port: this.#targetPort, noDelay: true });
    const connection: Connection = { client, target, answeredBytes: 0, deaf: false, mute: false };
    this.#connections.add(connection);
    const toTarget = new DelayLine(() => this.#delayMs);
    const toClient = new DelayLine(() => this.#delayMs);

    client.on('data', (chunk: Buffer) => toTarget.push(() => this.#forward(connection, chunk)));
    target.on('data', (chunk: Buffer) => toClient.push(() => this.#answer(connection, chunk)));
    client.on('error', () => target.destroy());
    target.on('error', () => this.#meet(connection).mute || client.resetAndDestroy());
    target.on('end', () => toClient.push(() => this.#meet(connection).mute || client.end()));
    client.on('close', () => {
      target.destroy();
      this.#connections.delete(connection);
    });
  }

  get #delayMs(): number {
    return this.#fault.kind === 'latency' ? this.#fault.delayMs : 0;
  }

  #forward(connection: Connection, chunk: Buffer): void {
    if (this.#meet(connection).deaf) this.#swallowed += 1;
    else connection.target.write(chunk);
  }

  #answer(connection: Connection, chunk: Buffer): void {
    if (this.#meet(connection).mute) return;
    const fault = this.#fault;
    if (fault.kind === 'reset_answer' && chunk.includes(fault.containing ?? '')) {
      this.#resetResponses += 1;
      connection.client.resetAndDestroy();
      return;
    }
    const room = fault.kind === 'cut_answer' ? fault.afterBytes - connection.answeredBytes : Infinity;
    connection.answeredBytes += chunk.length;
    if (chunk.length < room) {
      connection.client.write(chunk);
      return;
    }
    connection.mute = true;
    connection.client.end(chunk.subarray(0, room));
  }

  /** Applies the current fault to a connection; it affects bytes in both directions. */
  #meet(connection: Connection): Connection {
    const { kind } = this.#fault;
    connection.deaf ||= kind === 'blackhole';
    connection.mute ||= kind === 'blackhole' || kind === 'half_open';
    return connection;
  }
}

/** Runs functions later, each after its delay and all in order. */
class DelayLine {
  readonly #delayMs: () => number;
  readonly #waiting: (() => void)[] = [];

  constructor(delayMs: () => number) {
    this.#delayMs = delayMs;
  }

  push(act: () => void): void {
    const delayMs = this.#delayMs();
    if (delayMs === 0 && this.#waiting.length === 0) {
      act();
      return;
    }
    this.#waiting.push(act);
    setTimeout(() => this.#waiting.shift()?.(), delayMs).unref();
  }
}

/** Starts a proxy in front of a port on this machine. Without a fault it passes everything. */
export async function startFaultProxy(targetPort: number): Promise<FaultProxy> {
  const proxy = new FaultProxy(targetPort);
  await proxy.become({ kind: 'pass' });
  return proxy;
}
