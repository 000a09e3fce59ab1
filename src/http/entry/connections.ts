import type { IncomingMessage, RequestListener, Server, ServerResponse } from 'node:http';
import type { Server as NetServer, Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { Server as TlsServer } from 'node:tls';
import type { FastifyReply } from 'fastify';
import { ResponseBatch, responseClassOf } from './responses.ts';
import { type Requester, departure, WaitingRequests } from './waiting-requests.ts';

/**
 * How many requests of one connection may wait for their answers. What Node keeps of each is many times what was sent,
 * and it makes requests of all that one read of the connection gave.
 */
const mostUnanswered = 100;

/** How many requests of one connection are handled at once. */
const maxConcurrent = 10;

/** How many bytes of answers may wait on one connection before its next request is handled. */
const maxUnsentBytes = 256 * 1024;

function isRead({ method }: IncomingMessage): boolean {
  return method === 'GET' || method === 'HEAD';
}

/** The response that must end before a request is handled: `before` are the unanswered ones of its connection. */
function blockerOf(request: IncomingMessage, before: readonly ServerResponse[]): ServerResponse | undefined {
  const change = before.findLast(({ req }) => !isRead(req) || !isRead(request));
  if (change !== undefined) return change;
  const [first] = before;
  if (first === undefined) return undefined;
  const unsent = before.reduce((bytes, response) => bytes + response.writableLength, 0);
  return unsent > maxUnsentBytes
    ? first
    : before.filter(({ writableEnded }) => !writableEnded).at(-maxConcurrent);
}

const closing = new WeakSet<ServerResponse>();

/** Says with an answer that its connection ends, so that nothing behind it is carried out (RFC 9112, 9.6). */
export function closeBehind(reply: FastifyReply): FastifyReply {
  closing.add(reply.raw);
  return reply.header('Connection', 'close');
}

/** Whether a connection ends with this answer. */
export function isClosing(response: ServerResponse): boolean {
  return closing.has(response);
}

/**
 * The connections of one listener (src/http/README.md, Limits). A connection is idle while none of its requests
 * is being answered. When there are `maximum`, a new one replaces the one that has been idle for longest; where
 * none is idle, the oldest whose caller does not take its answers; where there is none, one whose request waits for the
 * upstream; where none waits, the new one is closed. Over TLS one that is still in its handshake is replaced first.
 */
export class Connections {
  readonly #maximum: number;
  /** Connections over TLS whose handshake is not done, the oldest first. */
  readonly #handshakes = new Set<Socket>();
  /**
   * The unanswered requests of each connection, in order. An entry for each request would cost more: the tables that a
   * `Map` outgrows keep what was in them until the whole heap is collected.
   */
  readonly #unanswered = new Map<Duplex, ServerResponse[]>();
  /** Those idle for longest come first. */
  readonly #idle = new Set<Duplex>();
  /** Those that close behind an answer that was made early, so that another can have their place. */
  readonly #leaving = new Set<Duplex>();
  /** The class of the responses of a server. */
  readonly responseClass: typeof ServerResponse;
  readonly #batch = new ResponseBatch(() => this.#unanswered.size > 1);
  readonly #waiting: WaitingRequests;

  constructor(maximum: number) {
    this.#maximum = maximum;
    this.responseClass = responseClassOf(this.#batch);
    this.#waiting = new WaitingRequests(maximum);
  }

  /** Follows the connections of a server. Call it before the server listens. */
  watch(server: Server): void {
    if (isTlsServer(server)) {
      server.on('connection', (socket) => this.#beginHandshake(socket));
      server.prependListener('secureConnection', (socket: Socket) => this.#endHandshake(socket));
    } else {
      server.on('connection', (socket) => this.#open(socket));
    }
  }

  /** Whether a request is not looked at, since its connection ends before it: by an answer, or here, where too many wait. */
  isOver(socket: Duplex): boolean {
    const unanswered = this.unanswered(socket);
    if (unanswered.length >= mostUnanswered) {
      this.#batch.send();
      socket.destroy();
    }
    return socket.destroyed || unanswered.some(isClosing);
  }

  /** A request expects to be told to go on (100), which it is in its turn. */
  expect(response: ServerResponse): void {
    const goOn = (): void => {
      if (!response.headersSent) response.writeContinue();
    };
    if (response.socket !== null) {
      goOn();
      return;
    }
    // Behind an answer that is not sent yet, Node would write it between the head and the body of its own, and it
    // closes behind an answer that is made before.
    response.once('socket', goOn);
    response.setHeader('Connection', 'close');
    closing.add(response);
  }

  /**
   * Looks at a request in its turn: reads that were sent without waiting may be done at once, but nothing overtakes a
   * change, and no change a read (RFC 9112, 9.3.2). A request also waits while much of the answers before it waits.
   */
  inTurn(request: IncomingMessage, response: Parameters<RequestListener>[1], look: RequestListener): void {
    const { socket } = request;
    if (this.isOver(socket)) return;
    const before = blockerOf(request, this.unanswered(socket));
    this.#begin(socket, response);
    if (before === undefined) {
      look(request, response);
      return;
    }
    const lookAfter = (blocker: ServerResponse): void => {
      // All requests of a connection may wait for one answer: Node would report more than ten listeners as a leak.
      blocker.setMaxListeners(0);
      blocker.once('close', () => {
        // An answer that ends the connection has ended our side of it by now.
        if (!socket.writable) return;
        const unanswered = this.unanswered(socket);
        const next = blockerOf(request, unanswered.slice(0, unanswered.indexOf(response)));
        if (next === undefined) look(request, response);
        else lookAfter(next);
      });
    };
    lookAfter(before);
  }

  #begin(socket: Duplex, response: ServerResponse): void {
    const unanswered = this.#unanswered.get(socket) ?? [];
    unanswered.push(response);
    this.#idle.delete(socket);
    response.once('close', () => {
      unanswered.splice(unanswered.indexOf(response), 1);
      if (unanswered.length === 0 && !socket.destroyed && !this.#leaving.has(socket)) this.#idle.add(socket);
    });
  }

  /** The requests of a connection that are not answered yet, in order. */
  unanswered(socket: Duplex): readonly ServerResponse[] {
    return this.#unanswered.get(socket) ?? [];
  }

  /** A signal that aborts when the caller leaves, or its place is needed; `requester` null: it does not wait for the upstream. */
  signalFor(response: ServerResponse, requester: Requester | null): AbortSignal {
    return requester === null ? departure(response) : this.#waiting.begin(response, requester);
  }

  /** Resolves when all that are unanswered now have been answered, or their callers have left. */
  async answered(): Promise<void> {
    const unanswered = [...this.#unanswered.values()].flat();
    await Promise.all(
      unanswered.map((response) => new Promise((resolve) => response.once('close', resolve))),
    );
  }

  /** Ends the connections whose handshake is not done: nothing was asked on them yet. */
  endHandshakes(): void {
    for (const socket of this.#handshakes) socket.destroy();
  }

  /** Ends all that requests may come on, also those that Node handed over (CONNECT) and does not know any more. */
  endAll(): void {
    for (const socket of this.#unanswered.keys()) socket.destroy();
  }

  #beginHandshake(socket: Socket): void {
    if (!this.#makeRoom(socket)) return;
    this.#handshakes.add(socket);
    socket.once('close', () => this.#handshakes.delete(socket));
  }

  /** Requests come on another socket than the one that was accepted; both have the same other end. */
  #endHandshake(secure: Socket): void {
    const accepted = [...this.#handshakes].find(
      ({ remotePort, remoteAddress }) =>
        remotePort === secure.remotePort && remoteAddress === secure.remoteAddress,
    );
    if (accepted !== undefined) this.#handshakes.delete(accepted);
    this.#keep(secure);
  }

  /** Closes the connection of a response instead of sending it, once all that was asked before on it is answered. */
  hangUp(response: ServerResponse): void {
    const { socket } = response.req;
    const unanswered = this.unanswered(socket);
    const earlier = unanswered[unanswered.indexOf(response) - 1];
    if (earlier === undefined) socket.destroy();
    else earlier.once('close', () => socket.destroy());
  }

  #open(socket: Duplex): void {
    if (this.#makeRoom(socket)) this.#keep(socket);
  }

  /** Whether there is a place for a new connection, which is closed otherwise. */
  #makeRoom(socket: Duplex): boolean {
    this.#batch.send();
    const taken = this.#handshakes.size + this.#unanswered.size - this.#leaving.size;
    if (taken < this.#maximum) return true;
    const [handshake] = this.#handshakes;
    const [givesWay = this.#oldestUnread()] = this.#idle;
    if (handshake !== undefined) this.#handshakes.delete(handshake);
    else if (givesWay !== undefined) this.#forget(givesWay);
    else if (this.#endWait()) return true;
    const replaced = handshake ?? givesWay ?? socket;
    replaced.destroy();
    return replaced !== socket;
  }

  /** The oldest connection of which all answers are made, and not taken: their caller may never read them. */
  #oldestUnread(): Duplex | undefined {
    return this.#unanswered
      .entries()
      .find(
        ([socket, responses]) =>
          !this.#leaving.has(socket) && responses.every(({ writableEnded }) => writableEnded),
      )?.[0];
  }

  /** Has a request that waits for the upstream answered now, and its connection closed behind that; false: none waits. */
  #endWait(): boolean {
    const response = this.#waiting.endOne();
    if (response === undefined) return false;
    // Those of callers that do not read: they had their answers.
    const [oldest] = this.#leaving;
    if (oldest !== undefined && this.#leaving.size >= this.#maximum) {
      this.#forget(oldest);
      oldest.destroy();
    }
    this.#leaving.add(response.req.socket);
    response.shouldKeepAlive = false;
    closing.add(response);
    return true;
  }

  #keep(socket: Duplex): void {
    this.#unanswered.set(socket, []);
    this.#idle.add(socket);
    socket.once('close', () => this.#forget(socket));
  }

  #forget(socket: Duplex): void {
    this.#idle.delete(socket);
    this.#unanswered.delete(socket);
    this.#leaving.delete(socket);
  }
}

/** Does not import `node:tls`, which takes 1 MiB of memory: most servers listen without it. */
export function isTlsServer(server: NetServer): server is TlsServer {
  return 'setSecureContext' in server;
}
