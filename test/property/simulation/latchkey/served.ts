import type { FastifyInstance } from 'fastify';
import type { Dispatcher } from 'undici';
import type { ChangeFeed } from '../../../../src/features/following/service/ports.ts';
import type { App, ServerSettings } from '../../../../src/http/app.ts';
import { dialects } from '../../../support/stores/dialects.ts';
import { routesOf } from '../../../../src/http/routes/all.ts';
import { buildServer } from '../../../../src/http/server.ts';
import type { VirtualClock } from '../../../support/harness/virtual-clock.ts';
import { silent } from '../../../support/silent-log.ts';

const routes = await routesOf(dialects.specification);

/** The response to a request of an agent. */
export type Response = { status: number; headers: Record<string, string>; text: string };

/** What answers requests of agents. Null: the process ended before it answered. */
export type Answering = {
  handle(request: Dispatcher.DispatchOptions, signal: AbortSignal): Promise<Response | null>;
};

/** The parts of a process that its routes for software and for agents use. */
export type Services = Pick<
  App,
  | 'role'
  | 'instance'
  | 'epoch'
  | 'licenseService'
  | 'couponService'
  | 'checkout'
  | 'reader'
  | 'writer'
  | 'changes'
  | 'credentials'
  | 'products'
  | 'digest'
> & { changeFeed: ChangeFeed };

const settings: ServerSettings = {
  listener: 'socket',
  headerAliases: { apiKey: [], productSecret: [] },
  allowedHosts: [],
  allowedOrigins: [],
  unknown: 'problem',
  limits: {
    headerTimeoutMs: 250_000,
    headerCount: 40,
    headerBytes: 8_192,
    requestTimeoutMs: 250_000,
    bodyBytes: 262_144,
    parameters: 32,
    connections: 10_000,
  },
  tls: null,
  principal: null,
};

/** The real HTTP server of a process, with all its checks and routes, but without connections. */
export class Served {
  readonly #services: Services;
  readonly #clock: VirtualClock;
  #server: FastifyInstance | null = null;
  #lastError: unknown = null;
  readonly #noteError = ({ err }: Record<string, unknown>): void => {
    this.#lastError = err ?? this.#lastError;
  };

  constructor(services: Services, clock: VirtualClock) {
    this.#services = services;
    this.#clock = clock;
  }

  /** Rejects if the signal ends the request, or a program error does. */
  async answer(
    { method, path, headers, body }: Dispatcher.DispatchOptions,
    signal: AbortSignal,
  ): Promise<Response> {
    const server = (this.#server ??= await this.#open());
    const {
      statusCode,
      headers: sent,
      body: text,
    } = await server.inject({
      method: method as 'GET',
      url: path,
      headers: headers as Record<string, string>,
      ...(typeof body === 'string' && { payload: body }),
      signal,
    });
    if (statusCode === 500) throw new Error(`500: ${method} ${path}`, { cause: this.#lastError });
    const own = Object.entries(sent).map(([name, value]) => [name, String(value)] as const);
    const date = new Date(this.#clock.now()).toUTCString();
    return { status: statusCode, headers: { ...Object.fromEntries(own), date }, text };
  }

  async #open(): Promise<FastifyInstance> {
    const { reader } = this.#services;
    const clock = this.#clock;
    const app = {
      ...this.#services,
      version: '0.0.0',
      foreignStore: null,
      dialect: dialects.specification,
      lists: reader,
      cachesResponses: false,
      rates: { requests: { take: () => 0 }, failures: { take: () => 0 } },
      productName: () => null,
      log: { ...silent, error: this.#noteError, warn: this.#noteError },
      inFlight: new Set<string>(),
      now: () => clock.now(),
      verifiedNow: () => clock.verified(),
      licenseCredential: null,
      readiness: () => ({ state: 'ready' as const, reasons: [] }),
      metrics: {
        begin: () => 0,
        countResponse: () => undefined,
        countUnrouted: () => undefined,
        countVerify: () => undefined,
        countUse: () => undefined,
      },
    };
    // The routes for operators, which need more, are not asked for.
    const server = buildServer({ ...(app as unknown as App), routes, pages: [] }, settings);
    await server.ready();
    return server;
  }
}
