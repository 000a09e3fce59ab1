import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** A call as it arrived at a stand-in, and what it did. */
export interface StandInCall<Name extends string = string> {
  readonly at: number;
  readonly name: Name;
  /** The path of the URL. */
  readonly path: string;
  /** Empty: the call names none. */
  readonly licenseKey: string;
  /** Of the query and the body. */
  readonly parameters: Readonly<Record<string, unknown>>;
  readonly headers: IncomingMessage['headers'];
  /** The status that the store decided on; 0: the call was never carried out. */
  status: number;
  /** By how much the call changed the count. */
  counted: number;
}

export const standInFaults = [
  // The connection ends, before or after the call was carried out.
  'lost_request',
  'lost_answer',
  // 429 as the store sends it, or as an empty body; nothing was carried out.
  'limited',
  'limited_empty',
  // A page of the host in front: 503 and 200 in HTML, and the firewall's challenge.
  'page',
  'welcome_page',
  'challenge',
] as const;

export type StandInFault = (typeof standInFaults)[number];

/** What a store answers; `body` null: nothing. */
export type StandInAnswer = { status: number; body: object | null; headers?: Record<string, string> };

export type StandInPage = { status: number; headers: Record<string, string>; body: string };

/** A license key that a store has sold. Until `shownFrom` (epoch ms) calls do not find it. */
export interface SoldKey {
  licenseKey: string;
  shownFrom: number;
}

/**
 * A stand-in for a store: it listens, keeps what it has sold and the calls, and makes things go wrong. What a call does is
 * the store's own.
 */
export abstract class StandIn<
  Name extends string = string,
  Sold extends SoldKey = SoldKey,
> implements AsyncDisposable {
  readonly calls: StandInCall<Name>[] = [];
  /** By the license keys as the store finds them, in the order of the sales. */
  protected readonly sold: Map<string, Sold> = new Map();
  /** How long each answer takes. */
  latencyMs = 0;
  protected readonly now: () => number;
  #server: Server | null = null;
  #port = 0;

  constructor(now: () => number = () => Date.now()) {
    this.now = now;
  }

  get url(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  get port(): number {
    return this.#port;
  }

  /** Listens, on the port that it had before. */
  async start(port: number = this.#port): Promise<void> {
    const server = createServer((request, response) => void this.#serve(request, response));
    server.listen(port, '127.0.0.1');
    await once(server, 'listening');
    this.#server = server;
    this.#port = (server.address() as AddressInfo).port;
  }

  /** Stops listening: connections are refused. */
  async stop(): Promise<void> {
    const server = this.#server;
    this.#server = null;
    if (server === null) return;
    server.close();
    server.closeAllConnections();
    await once(server, 'close');
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }

  /** `lateMs`: how long after the sale the key is still unknown. */
  abstract sell(sale: { readonly licenseKey: string; readonly lateMs?: number }): void;

  /** What is on file. */
  license(licenseKey: string): Readonly<Sold> {
    const sold = this.sold.get(this.fold(licenseKey));
    if (sold === undefined) throw new Error('there is no such license key');
    return sold;
  }

  /** The seller changes a license key in the dashboard. */
  change(licenseKey: string, change: Partial<Sold>): void {
    Object.assign(this.license(licenseKey), change);
  }

  /** Ends the time in which a new key is still unknown. */
  show(licenseKey: string): void {
    Object.assign(this.license(licenseKey), { shownFrom: 0 });
  }

  /** The license key that a call names; null: it is unknown. */
  protected find(licenseKey: string): Sold | null {
    const sold = this.sold.get(this.fold(licenseKey));
    return sold === undefined || sold.shownFrom > this.now() ? null : sold;
  }

  /** Chooses what goes wrong, and is replaced by who makes something go wrong; undefined: nothing. */
  fault(_call: StandInCall<Name>): StandInFault | undefined {
    return undefined;
  }

  /** How many uses calls have counted, without those that were taken back. */
  countedAt(licenseKey: string): number {
    const own = this.calls.filter((call) => this.fold(call.licenseKey) === this.fold(licenseKey));
    return own.reduce((sum, { counted }) => sum + counted, 0);
  }

  /** Carries out a call. */
  handle(call: StandInCall<Name>): StandInAnswer {
    const answer = this.carryOut(call);
    call.status = answer.status;
    return answer;
  }

  /** The name of a call; null: there is no such route. */
  protected abstract nameOf(method: string, path: string): Name | null;

  /** The answer to a call, in the order of the checks of the store. */
  protected abstract carryOut(call: StandInCall<Name>): StandInAnswer;

  /** A license key as the store finds it. */
  protected abstract fold(licenseKey: string): string;

  /** The parameter with the license key. */
  protected readonly keyParameter: string = 'license_key';

  protected readonly noRoute: StandInAnswer = { status: 404, body: { status: 404, error: 'Not Found' } };

  protected readonly limited: StandInPage = {
    status: 429,
    headers: { 'content-type': 'text/plain' },
    body: 'Retry later\n',
  };

  /** The parameters of a call, as web frameworks read them: a body of another type has none. */
  protected async parametersOf(
    { headers }: IncomingMessage,
    body: Buffer,
    query: URLSearchParams,
  ): Promise<StandInCall['parameters']> {
    return { ...Object.fromEntries(query), ...(await bodyOf(body, headers['content-type'] ?? '')) };
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { pathname: path, searchParams } = new URL(request.url ?? '/', 'http://store.invalid');
    const name = this.nameOf(request.method ?? '', path);
    const parameters = await this.parametersOf(request, await bytesOf(request), searchParams);
    if (this.latencyMs > 0) await new Promise((resolve) => setTimeout(resolve, this.latencyMs));
    if (name === null) return send(response, this.noRoute);
    const call: StandInCall<Name> = {
      at: this.now(),
      name,
      path,
      licenseKey: textOf(parameters[this.keyParameter]),
      parameters,
      headers: request.headers,
      status: 0,
      counted: 0,
    };
    this.calls.push(call);
    const fault = this.fault(call);
    if (fault === 'lost_request') return void request.socket.destroy();
    const page = fault === 'limited' ? this.limited : fault && pages[fault];
    if (page !== undefined) return void response.writeHead(page.status, page.headers).end(page.body);
    const answer = this.handle(call);
    if (fault === 'lost_answer') return void request.socket.destroy();
    send(response, answer);
  }
}

/** A parameter that is a text; empty: it is absent or something else. */
export function textOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

async function bytesOf(request: IncomingMessage): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of request) chunks.push(chunk as Uint8Array);
  return Buffer.concat(chunks);
}

async function bodyOf(body: Buffer, type: string): Promise<Record<string, unknown>> {
  if (body.length === 0) return {};
  if (/^application\/(?:[\w.-]+\+)?json/.test(type))
    return JSON.parse(body.toString()) as Record<string, unknown>;
  if (!/^(?:multipart\/form-data|application\/x-www-form-urlencoded)/.test(type)) return {};
  const form = new Response(body, { headers: { 'content-type': type } });
  return Object.fromEntries(await form.formData());
}

function send(response: ServerResponse, { status, body, headers }: StandInAnswer): void {
  const type = body === null ? {} : { 'content-type': 'application/json; charset=utf-8' };
  response.writeHead(status, { ...type, ...headers }).end(body === null ? '' : JSON.stringify(body));
}

const html = { 'content-type': 'text/html' };

const pages: Partial<Record<StandInFault, StandInPage>> = {
  limited_empty: { status: 429, headers: { 'retry-after': '1' }, body: '' },
  page: { status: 503, headers: html, body: '<!doctype html><title>We will be back</title>' },
  welcome_page: { status: 200, headers: html, body: '<!doctype html><title>Sign in to this network</title>' },
  challenge: {
    status: 403,
    headers: { ...html, server: 'cloudflare', 'cf-mitigated': 'challenge' },
    body: '<!doctype html><title>Just a moment...</title>',
  },
};
