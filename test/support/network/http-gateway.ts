import { createServer, request, type IncomingMessage, type ServerResponse } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';

type Answer = { status: number; body: string };

/** A gateway in front of a server: it passes requests on, or answers them itself. */
export class HttpGateway implements AsyncDisposable {
  /** Answers a request instead of the server; null: the server answers. */
  instead: (method: string, path: string) => Answer | null = () => null;
  /** Whether the answer of the server is lost. */
  loses: (method: string, path: string) => boolean = () => false;
  /** The requests so far: method and path, without the query. */
  readonly requests: string[] = [];
  readonly #server = createServer((incoming, outgoing) => this.#handle(incoming, outgoing));
  /** The address of the server for the next request. */
  target: () => string;

  constructor(target: () => string) {
    this.target = target;
  }

  static async start(target: string | (() => string)): Promise<HttpGateway> {
    const gateway = new HttpGateway(typeof target === 'string' ? () => target : target);
    gateway.#server.listen(0, '127.0.0.1');
    await once(gateway.#server, 'listening');
    return gateway;
  }

  get url(): string {
    const { port } = this.#server.address() as AddressInfo;
    return `http://127.0.0.1:${port}`;
  }

  #handle(incoming: IncomingMessage, outgoing: ServerResponse): void {
    const { method = 'GET', url = '/' } = incoming;
    const [path = '/'] = url.split('?');
    this.requests.push(`${method} ${path}`);
    const answer = this.instead(method, path);
    if (answer !== null) {
      incoming.resume();
      outgoing.writeHead(answer.status, { 'content-type': 'text/html' }).end(answer.body);
      return;
    }
    const { headers } = incoming;
    const passed = request(`${this.target()}${url}`, { method, headers, agent: false }, (response) => {
      if (this.loses(method, path)) {
        outgoing.destroy();
        return;
      }
      outgoing.writeHead(response.statusCode ?? 502, response.rawHeaders);
      response.on('error', () => outgoing.destroy());
      response.pipe(outgoing);
    });
    passed.on('error', () => outgoing.destroy());
    outgoing.on('close', () => passed.destroy());
    incoming.pipe(passed);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, 'close');
  }
}
