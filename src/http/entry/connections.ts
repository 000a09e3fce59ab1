import type { IncomingMessage, RequestListener, Server, ServerResponse } from 'node:http';
import type { Server as NetServer, Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { Server as TlsServer } from 'node:tls';
import type { FastifyReply } from 'fastify';
import { ResponseBatch, responseClassOf } from './server-response.ts';
import type { Principal } from '../../domain/access/principal.ts';
import type { App } from '../app.ts';
import { ProblemError } from '../problem-error.ts';
import type { Route } from '../route.ts';

/**
 * How many requests of one connection may be unanswered. Node parses all requests that one read of the connection
 * returned, and each takes many times the memory of its bytes.
 */
const maxUnanswered = 100;

/** How many requests of one connection are handled at once. */
const maxConcurrent = 10;

/** How many bytes of responses may be unsent on one connection before its next request is handled. */
const maxUnsentBytes = 256 * 1024;

function isRead({ method }: IncomingMessage): boolean {
  return method === 'GET' || method === 'HEAD';
}

/** The response that must end before a request is handled. `before`: the earlier unfinished responses of its connection. */
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

/** How long a connection is idle, in ms, before it is closed rather than a wait ended. */
const restMs = 5_000;

const closing = new WeakSet<ServerResponse>();

/** Closes the connection after this response, so that no later request on it is handled (RFC 9112, 9.6). */
export function closeAfter(reply: FastifyReply): FastifyReply {
  closing.add(reply.raw);
  return reply.header('Connection', 'close');
}

/** Whether a connection is closed after this response. */
export function isClosing(response: ServerResponse): boolean {
  return closing.has(response);
}

/** The connections of one listener (src/http/entry/README.md, Connections). */
export class Connections {
  readonly #maximum: number;
  /** Connections over TLS whose handshake is not complete, the oldest first. */
  readonly #handshakes = new Set<Socket>();
  /**
   * The unfinished responses of each connection, in order. A `Map` with an entry for each request would cost more: when
   * a `Map` grows, its old table keeps the entries alive until the next full garbage collection.
   */
  readonly #unanswered = new Map<Duplex, ServerResponse[]>();
  /** Since when a connection is idle (monotonic ms). The connection that has been idle for longest comes first. */
  readonly #idle = new Map<Duplex, number>();
  /** Connections that close after an early response, because a new connection needs their place. */
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

  /** Whether a request is ignored because its connection ends. Closes a connection with too many requests. */
  isOver(socket: Duplex): boolean {
    const unanswered = this.unanswered(socket);
    if (unanswered.length >= maxUnanswered) {
      this.#batch.send();
      socket.destroy();
    }
    return socket.destroyed || unanswered.some(isClosing);
  }

  /** Sends 100 (`Expect: 100-continue`) when it is the turn of the request. */
  expect(response: ServerResponse): void {
    const goOn = (): void => {
      if (!response.headersSent) response.writeContinue();
    };
    if (response.socket !== null) {
      goOn();
      return;
    }
    // Before the earlier responses are sent, Node would write the 100 between the head and the body of this response.
    // Node also closes the connection after a response that is made before the 100 is sent.
    response.once('socket', goOn);
    response.setHeader('Connection', 'close');
    closing.add(response);
  }

  /**
   * Handles a request in its turn. Pipelined reads may run at the same time, but no request overtakes a change, and no
   * change overtakes a read (RFC 9112, 9.3.2). A request also waits while many bytes of earlier responses are unsent.
   */
  inTurn(request: IncomingMessage, response: Parameters<RequestListener>[1], handle: RequestListener): void {
    const { socket } = request;
    if (this.isOver(socket)) return;
    const before = blockerOf(request, this.unanswered(socket));
    this.#begin(socket, response);
    if (before === undefined) {
      handle(request, response);
      return;
    }
    const handleAfter = (blocker: ServerResponse): void => {
      // All requests of a connection may wait for one response: Node would report more than ten listeners as a leak.
      blocker.setMaxListeners(0);
      blocker.once('close', () => {
        // A response that closes the connection has closed our side by now.
        if (!socket.writable) return;
        const unanswered = this.unanswered(socket);
        const next = blockerOf(request, unanswered.slice(0, unanswered.indexOf(response)));
        if (next === undefined) handle(request, response);
        else handleAfter(next);
      });
    };
    handleAfter(before);
  }

  #begin(socket: Duplex, response: ServerResponse): void {
    const unanswered = this.#withResponse(socket, response);
    this.#idle.delete(socket);
    response.once('close', () => {
      unanswered.splice(unanswered.indexOf(response), 1);
      if (unanswered.length === 0 && !socket.destroyed && !this.#leaving.has(socket)) this.#setIdle(socket);
    });
  }

  /** Adds a response to the unfinished responses of a connection. A list that grows from nothing would have room for 17. */
  #withResponse(socket: Duplex, response: ServerResponse): ServerResponse[] {
    const before = this.#unanswered.get(socket);
    if (before === undefined || before.length > 0) {
      before?.push(response);
      return before ?? [response];
    }
    const first = [response];
    this.#unanswered.set(socket, first);
    return first;
  }

  /** The unfinished responses of a connection, in order. */
  unanswered(socket: Duplex): readonly ServerResponse[] {
    return this.#unanswered.get(socket) ?? [];
  }

  /** Aborts if the client disconnects or its place is needed. `requester` null: there is no wait for the upstream. */
  signalFor(response: ServerResponse, requester: Requester | null): AbortSignal {
    return requester === null ? departure(response) : this.#waiting.begin(response, requester);
  }

  /** Resolves when every request that is unanswered now has its response, or its client has disconnected. */
  async answered(): Promise<void> {
    const unanswered = [...this.#unanswered.values()].flat();
    await Promise.all(
      unanswered.map((response) => new Promise((resolve) => response.once('close', resolve))),
    );
  }

  /** Closes the connections whose handshake is not complete: they have no requests yet. */
  endHandshakes(): void {
    for (const socket of this.#handshakes) socket.destroy();
  }

  /** Closes all connections, also connections that Node handed over (CONNECT) and no longer tracks. */
  endAll(): void {
    for (const socket of this.#unanswered.keys()) socket.destroy();
  }

  #beginHandshake(socket: Socket): void {
    if (!this.#makeRoom(socket)) return;
    this.#handshakes.add(socket);
    socket.once('close', () => this.#handshakes.delete(socket));
  }

  /** The TLS socket is another object than the accepted socket. Both have the same remote address and port. */
  #endHandshake(secure: Socket): void {
    const accepted = [...this.#handshakes].find(
      ({ remotePort, remoteAddress }) =>
        remotePort === secure.remotePort && remoteAddress === secure.remoteAddress,
    );
    if (accepted !== undefined) this.#handshakes.delete(accepted);
    this.#track(secure);
  }

  /** Closes a connection instead of sending the response, after the earlier requests of the connection are answered. */
  hangUp(response: ServerResponse): void {
    const { socket } = response.req;
    const unanswered = this.unanswered(socket);
    const earlier = unanswered[unanswered.indexOf(response) - 1];
    if (earlier === undefined) socket.destroy();
    else earlier.once('close', () => socket.destroy());
  }

  #open(socket: Duplex): void {
    if (this.#makeRoom(socket)) this.#track(socket);
  }

  /** Closes a connection if there are too many. Returns false if the new connection itself is closed. */
  #makeRoom(socket: Duplex): boolean {
    this.#batch.send();
    const taken = this.#handshakes.size + this.#unanswered.size - this.#leaving.size;
    if (taken < this.#maximum) return true;
    const [handshake] = this.#handshakes;
    const [[idle, since] = [undefined, 0]] = this.#idle;
    const rested = performance.now() - since >= restMs ? idle : undefined;
    const replaceable = handshake ?? rested ?? this.#oldestUnread();
    if (replaceable === undefined && this.#endWait()) return true;
    if (handshake !== undefined) this.#handshakes.delete(handshake);
    const replaced = replaceable ?? idle ?? socket;
    this.#untrack(replaced);
    replaced.destroy();
    return replaced !== socket;
  }

  /** The oldest connection whose responses are all made but not read: its client may never read them. */
  #oldestUnread(): Duplex | undefined {
    return this.#unanswered
      .entries()
      .find(
        ([socket, responses]) =>
          responses.length > 0 &&
          !this.#leaving.has(socket) &&
          responses.every(({ writableEnded }) => writableEnded),
      )?.[0];
  }

  /** Answers a request that waits for the upstream now, and closes its connection after that. False: no request waits. */
  #endWait(): boolean {
    const response = this.#waiting.endOne();
    if (response === undefined) return false;
    // Leaving connections have their responses. If they are still open, their clients do not read.
    const [oldest] = this.#leaving;
    if (oldest !== undefined && this.#leaving.size >= this.#maximum) {
      this.#untrack(oldest);
      oldest.destroy();
    }
    this.#leaving.add(response.req.socket);
    response.shouldKeepAlive = false;
    closing.add(response);
    return true;
  }

  #track(socket: Duplex): void {
    this.#unanswered.set(socket, []);
    this.#setIdle(socket);
    socket.once('close', () => this.#untrack(socket));
  }

  #setIdle(socket: Duplex): void {
    this.#idle.set(socket, performance.now());
  }

  #untrack(socket: Duplex): void {
    this.#idle.delete(socket);
    this.#unanswered.delete(socket);
    this.#leaving.delete(socket);
  }
}

/** Does not import `node:tls`, which takes 1 MiB of memory: most servers listen without it. */
export function isTlsServer(server: NetServer): server is TlsServer {
  return 'setSecureContext' in server;
}

type Waiting = { response: ServerResponse; controller: AbortController; prefersToWait: boolean };

/** The credential of a request, and how many ms the caller wants to wait for the upstream (`Prefer: wait`). */
type Requester = { credential: string; waitMs: number };

/**
 * Null: the request does not count as waiting. An authority has no upstream, and a request to a route
 * for operators only counts as work.
 */
export function requesterOf(
  { role }: Pick<App, 'role'>,
  { operatorOnly, takesDocument, mayWait }: Pick<Route, 'operatorOnly' | 'takesDocument' | 'mayWait'>,
  {
    principal,
    waitMs,
    clientAddress,
  }: { principal: Principal | null; waitMs: number; clientAddress: string },
): Requester | null {
  // Devices have no credential. All of them prefer to wait, so they may use every connection.
  if (takesDocument === true && waitMs > 0) return { credential: clientAddress, waitMs: 0 };
  // Each agent waits nearly all the time, so agents may use every connection, too.
  if (mayWait === true && principal !== null) return { credential: principal.credential, waitMs: 0 };
  if (role !== 'agent' || principal === null || operatorOnly === true) return null;
  return { credential: principal.credential, waitMs };
}

/**
 * The requests of one listener that may wait for the upstream, by their credential. If the place of such a request is
 * needed, it is answered at once, as if its wait had ended (src/http/entry/README.md, Connections).
 */
class WaitingRequests {
  /** How many requests of one credential may wait because their callers prefer that. */
  readonly #maxPreferred: number;
  /** The oldest request of each credential comes first. */
  readonly #ofCredential = new Map<string, Set<Waiting>>();

  constructor(connections: number) {
    this.#maxPreferred = Math.max(1, Math.floor(connections / 2));
  }

  /** Tracks a request until it is answered. The signal aborts if the client disconnects or the wait must end. */
  begin(response: ServerResponse, { credential, waitMs }: Requester): AbortSignal {
    const controller = new AbortController();
    const waiting: Waiting = { response, controller, prefersToWait: waitMs > 0 };
    const ofCredential = this.#ofCredential.get(credential) ?? new Set<Waiting>();
    this.#ofCredential.set(credential, ofCredential.add(waiting));
    response.once('close', () => {
      ofCredential.delete(waiting);
      if (ofCredential.size === 0 && this.#ofCredential.get(credential) === ofCredential) {
        this.#ofCredential.delete(credential);
      }
      if (!response.writableFinished) controller.abort();
    });
    if (waiting.prefersToWait) this.#limitPreferred(ofCredential);
    return controller.signal;
  }

  /**
   * Ends the oldest wait of the credential with the most waiting requests, and all waits of the credential on the same
   * connection. Returns the last of their responses, after which the connection can be closed; undefined: no request
   * waits.
   */
  endOne(): ServerResponse | undefined {
    let most = new Set<Waiting>();
    for (const each of this.#ofCredential.values()) if (each.size > most.size) most = each;
    const [oldest] = most;
    if (oldest === undefined) return undefined;
    const { socket } = oldest.response.req;
    const ofConnection = [...most].filter(({ response }) => response.req.socket === socket);
    for (const waiting of ofConnection) end(most, waiting);
    return ofConnection.at(-1)?.response;
  }

  #limitPreferred(ofCredential: Set<Waiting>): void {
    const preferred = [...ofCredential].filter(({ prefersToWait }) => prefersToWait);
    const [oldest] = preferred;
    if (oldest !== undefined && preferred.length > this.#maxPreferred) end(ofCredential, oldest);
  }
}

function end(ofCredential: Set<Waiting>, waiting: Waiting): void {
  ofCredential.delete(waiting);
  // A recorded change is answered as it is now. A request that needs the upstream's response gets this problem.
  const detail = 'Another caller needed the place of this connection before the upstream answered.';
  waiting.controller.abort(new ProblemError('upstream_unreachable', detail, { retryAfterS: 1 }));
}

/** Aborts if the client disconnects before the response. Fastify's own signal also aborts after the body is read. */
function departure(response: ServerResponse): AbortSignal {
  const leaving = new AbortController();
  response.once('close', () => {
    if (!response.writableFinished) leaving.abort();
  });
  return leaving.signal;
}
