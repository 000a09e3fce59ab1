import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import type { Target } from './job.ts';

const headEnd = Buffer.from('\r\n\r\n');
const lengthName = '\r\ncontent-length: ';

/** A keep-alive connection with one request at a time. It reads only the necessary part of a response. */
export class Connection {
  /** Called with the status of each response. */
  onResponse: (status: number) => void = () => undefined;
  onBroken: () => void = () => undefined;
  readonly #socket: Socket;
  #received: Buffer = Buffer.alloc(0);

  private constructor(socket: Socket) {
    this.#socket = socket;
    socket.setNoDelay(true);
    socket.on('data', (chunk: Buffer) => this.#read(chunk));
    socket.on('error', () => undefined);
    socket.on('close', () => this.onBroken());
  }

  static async open(target: Target): Promise<Connection> {
    const socket = 'port' in target ? connect(target.port, '127.0.0.1') : connect(target.socket);
    await once(socket, 'connect');
    return new Connection(socket);
  }

  send(request: string): void {
    this.#socket.write(request, 'latin1');
  }

  close(): void {
    this.onBroken = () => undefined;
    this.#socket.destroy();
  }

  #read(chunk: Buffer): void {
    const received = this.#received.length === 0 ? chunk : Buffer.concat([this.#received, chunk]);
    const end = received.indexOf(headEnd);
    if (end < 0 || received.length < end + 4 + bodyLength(received, end)) {
      this.#received = received;
      return;
    }
    this.#received = Buffer.alloc(0);
    // "HTTP/1.1 200": the status has a fixed position.
    this.onResponse(Number(received.toString('latin1', 9, 12)));
  }
}

function bodyLength(received: Buffer, headLength: number): number {
  const head = received.toString('latin1', 0, headLength).toLowerCase();
  const at = head.indexOf(lengthName);
  if (at < 0) throw new Error(`the load generator reads answers with a Content-Length only, not: ${head}`);
  return Number.parseInt(head.slice(at + lengthName.length, at + lengthName.length + 12), 10);
}
