import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import {
  activationObject,
  customerOf,
  licenseObject,
  type PolarActivation,
  type PolarLicense,
  type PolarStatus,
} from './polar-objects.ts';
import {
  bodyOf,
  faultsOf,
  invalid,
  isEqual,
  isUnreadable,
  keyOf,
  unreadableFault,
  uuidOf,
  type PolarCallName,
  type Sent,
} from './polar-parameters.ts';

/*
 * A stand-in for Polar's license keys. It follows the order of checks, the texts and the limits of Polar's own server
 * (polarsource/polar, server/polar/license_key/service.py, schemas.py and rate_limit.py), and has nothing in common with the
 * client of an agent. Polar locks the row of a key while it validates or activates; here nothing comes in between either.
 */

export interface PolarSale {
  readonly key: string;
  readonly email?: string;
  readonly benefitId?: string;
  readonly status?: PolarStatus;
  readonly usage?: number;
  readonly limitUsage?: number | null;
  readonly limitActivations?: number | null;
  /** Epoch ms; null: never. */
  readonly expiresAt?: number | null;
  /** How long after the sale the key is still unknown. */
  readonly lateMs?: number;
}

/** A call as it arrived, and what it did. */
export interface PolarCall {
  readonly at: number;
  readonly name: PolarCallName;
  readonly key: string;
  readonly body: unknown;
  readonly headers: IncomingMessage['headers'];
  /** The status that Polar decided on; 0: the call was never carried out. */
  status: number;
  /** By how much the call changed the usage, and the number of activations. */
  counted: number;
  activated: number;
}

/** What goes wrong with a call. */
export type PolarFault =
  /** The connection ends, before or after the call was carried out. */
  | 'lost_request'
  | 'lost_answer'
  /** 429 with an empty body. */
  | 'limited'
  /** A page of the host in front: 503 and 200 in HTML, and the firewall's challenge. */
  | 'page'
  | 'welcome_page'
  | 'challenge'
  /** Polar's own 500. */
  | 'error';

type Answer = { status: number; body: object | null; headers?: Record<string, string> };

function refused(error: string, detail: string, status: number): Answer {
  return { status, body: { error, detail } };
}

const notFound = (detail = 'Not found'): Answer => refused('ResourceNotFound', detail, 404);
const notPermitted = (detail: string): Answer => refused('NotPermitted', detail, 403);

/** Three requests a second of one caller; whoever asks more often is blocked for a minute. */
const limit = { requests: 3, withinMs: 1_000, blockMs: 60_000 };

/** Counts do not exceed the range of the column. */
const maxUsage = 2 ** 31 - 1;

export class PolarStore implements AsyncDisposable {
  readonly calls: PolarCall[] = [];
  /** Chooses what goes wrong; undefined: nothing. */
  fault: (call: PolarCall) => PolarFault | undefined = () => undefined;
  /** How long each answer takes. */
  latencyMs = 0;
  readonly organizationId: string;
  /** The access token of the organization. */
  readonly accessToken: string;
  readonly #isLimited: boolean;
  readonly #licenses = new Map<string, PolarLicense>();
  readonly #now: () => number;
  #recent: number[] = [];
  #blockedUntil = 0;
  #server: Server | null = null;
  #port = 0;

  constructor(
    organizationId: string,
    {
      accessToken = 'polar_oat_sandbox',
      isLimited = true,
      now = () => Date.now(),
    }: { accessToken?: string; isLimited?: boolean; now?: () => number } = {},
  ) {
    this.organizationId = organizationId;
    this.accessToken = accessToken;
    this.#isLimited = isLimited;
    this.#now = now;
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

  sell({ key, email = 'buyer@example.com', ...sale }: PolarSale): void {
    const now = this.#now();
    this.#licenses.set(key, {
      id: randomUUID(),
      key,
      benefitId: sale.benefitId ?? '32a8eda4-56cf-4a94-8228-792d324a519e',
      customer: customerOf(email, this.organizationId, now),
      createdAt: now,
      activations: [],
      status: sale.status ?? 'granted',
      usage: sale.usage ?? 0,
      limitUsage: sale.limitUsage ?? null,
      limitActivations: sale.limitActivations ?? null,
      validations: 0,
      lastValidatedAt: null,
      expiresAt: sale.expiresAt ?? null,
      shownFrom: now + (sale.lateMs ?? 0),
    });
  }

  /** What is on file. */
  license(key: string): Readonly<PolarLicense> {
    const license = this.#licenses.get(key);
    if (license === undefined) throw new Error('there is no such license key');
    return license;
  }

  /** The seller changes a license key in the dashboard, or a benefit is revoked. */
  change(
    key: string,
    change: Partial<Pick<PolarLicense, 'usage' | 'status' | 'limitUsage' | 'limitActivations' | 'expiresAt'>>,
  ): void {
    Object.assign(this.license(key), change);
  }

  /** Ends the time in which a new key is still unknown. */
  show(key: string): void {
    const license = this.#licenses.get(key);
    if (license !== undefined) license.shownFrom = 0;
  }

  /** Removes an activation, as the customer does in the portal. */
  removeActivation(key: string, id: string): void {
    for (const activation of this.license(key).activations)
      if (activation.id === id) activation.isDeleted = true;
  }

  activationsOf(key: string): readonly PolarActivation[] {
    return this.license(key).activations.filter(({ isDeleted }) => !isDeleted);
  }

  /** How many uses the calls have counted. */
  countedAt(key: string): number {
    const own = this.calls.filter((call) => call.key === key);
    return own.reduce((sum, { counted }) => sum + counted, 0);
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { pathname } = new URL(request.url ?? '/', 'http://polar.invalid');
    const text = await textOf(request);
    if (this.latencyMs > 0) await new Promise((resolve) => setTimeout(resolve, this.latencyMs));
    const [, portal, name, id] =
      /^\/v1\/(customer-portal\/)?license-keys\/(?:(validate|activate|deactivate)|([0-9a-f-]{36}))$/.exec(
        pathname,
      ) ?? [];
    if ((name === undefined && (id === undefined || portal !== undefined)) || request.method === undefined)
      return send(response, { status: 404, body: { detail: 'Not Found' } });
    if (request.method !== (name === undefined ? 'GET' : 'POST'))
      return send(response, { status: 405, body: { detail: 'Method Not Allowed' } });
    const body = name === undefined ? { id } : bodyOf(text, request.headers['content-type'] ?? '');
    const call: PolarCall = {
      at: this.#now(),
      name: (name ?? 'read') as PolarCallName,
      key: keyOf(body),
      body,
      headers: request.headers,
      status: 0,
      counted: 0,
      activated: 0,
    };
    this.calls.push(call);
    const fault = this.fault(call);
    if (fault === 'lost_request') return void request.socket.destroy();
    const page = fault === undefined ? undefined : pages[fault];
    if (page !== undefined) return void response.writeHead(page.status, page.headers).end(page.body);
    const blockedS = portal === undefined ? 0 : this.#limit();
    if (blockedS > 0) return void response.writeHead(429, { 'retry-after': String(blockedS) }).end();
    const answer = this.handle(call, { isPublic: portal !== undefined });
    if (fault === 'lost_answer') return void request.socket.destroy();
    send(response, answer);
  }

  /** For how many seconds the caller is blocked; 0: the call is let through. */
  #limit(): number {
    const now = this.#now();
    if (!this.#isLimited) return 0;
    if (now < this.#blockedUntil) return Math.ceil((this.#blockedUntil - now) / 1_000);
    this.#recent = this.#recent.filter((at) => at > now - limit.withinMs);
    if (this.#recent.length < limit.requests) {
      this.#recent.push(now);
      return 0;
    }
    this.#blockedUntil = now + limit.blockMs;
    return limit.blockMs / 1_000;
  }

  /** Carries out a call, in the order of Polar’s checks. */
  handle(call: PolarCall, { isPublic }: { isPublic: boolean } = { isPublic: true }): Answer {
    const answer = this.#handle(call, isPublic);
    call.status = answer.status;
    return answer;
  }

  #handle(call: PolarCall, isPublic: boolean): Answer {
    if (isUnreadable(call.body)) return invalid([unreadableFault]);
    const [, token] = /^Bearer (.+)$/i.exec(call.headers.authorization ?? '') ?? [];
    if (token !== undefined && token !== this.accessToken)
      return { status: 401, body: { error: 'invalid_token', error_description: 'The token is invalid.' } };
    if (!isPublic && token === undefined) return refused('Unauthorized', 'Unauthorized', 401);
    if (call.name === 'read') return this.#read(call);
    const faults = faultsOf(call.name, call.body);
    if (faults.length > 0) return invalid(faults);
    const license = this.#find(call.body as Sent);
    if (license === null) return notFound();
    if (call.name === 'deactivate') return deactivate(license, call);
    return call.name === 'activate' ? this.#activate(license, call) : this.#validate(license, call);
  }

  #read({ body }: PolarCall): Answer {
    const license = [...this.#licenses.values()].find(({ id }) => id === (body as { id: string }).id);
    if (license === undefined || this.#isLate(license)) return notFound();
    const activations = license.activations.filter(({ isDeleted }) => !isDeleted);
    const shown = activations.map((each) => activationObject(license, each));
    return { status: 200, body: { ...licenseObject(license, this.organizationId), activations: shown } };
  }

  #isLate({ shownFrom }: PolarLicense): boolean {
    return shownFrom > this.#now();
  }

  #find({ key, organization_id: organizationId }: Sent): PolarLicense | null {
    const license = this.#licenses.get(key);
    if (license === undefined || this.#isLate(license)) return null;
    return uuidOf(organizationId) === this.organizationId ? license : null;
  }

  #isExpired({ expiresAt }: PolarLicense): boolean {
    return expiresAt !== null && this.#now() >= expiresAt;
  }

  #validate(license: PolarLicense, call: PolarCall): Answer {
    const sent = call.body as Sent;
    if (license.status !== 'granted') return notFound('License key is no longer active.');
    if (this.#isExpired(license)) return notFound('License key has expired.');
    let activation: PolarActivation | undefined;
    if (sent.activation_id) {
      activation = activationIn(license, sent.activation_id);
      if (activation === undefined) return notFound();
      const isBound = Object.keys(activation.conditions).length > 0;
      if (isBound && !isEqual(sent.conditions ?? {}, activation.conditions))
        return notFound('License key does not match required conditions');
    }
    if (sent.benefit_id && uuidOf(sent.benefit_id) !== license.benefitId)
      return notFound('License key does not match given benefit.');
    if (sent.customer_id && uuidOf(sent.customer_id) !== license.customer.id)
      return notFound('License key does not match given user.');
    const by = Number(sent.increment_usage ?? 0);
    if (by > 0 && license.limitUsage) {
      const left = license.limitUsage - license.usage;
      if (by > left) return refused('BadRequest', `License key only has ${left} more usages.`, 400);
    }
    if (license.usage + by > maxUsage) return { status: 500, body: null };
    license.usage += by;
    license.validations += 1;
    license.lastValidatedAt = this.#now();
    call.counted = by;
    const shown = activation === undefined ? null : activationObject(license, activation);
    return { status: 200, body: { ...licenseObject(license, this.organizationId), activation: shown } };
  }

  #activate(license: PolarLicense, call: PolarCall): Answer {
    const sent = call.body as Sent;
    if (license.status !== 'granted')
      return notPermitted('License key is no longer active. This license key can not be activated.');
    if (this.#isExpired(license)) return notPermitted('License key has expired.');
    if (!license.limitActivations)
      return notPermitted(
        'This license key does not support activations. Use the /validate endpoint instead to check license validity.',
      );
    if (this.activationsOf(license.key).length >= license.limitActivations)
      return notPermitted('License key activation limit already reached');
    const activation: PolarActivation = {
      id: randomUUID(),
      label: sent.label ?? '',
      conditions: sent.conditions ?? {},
      meta: sent.meta ?? {},
      createdAt: this.#now(),
      isDeleted: false,
    };
    license.activations.push(activation);
    call.activated = 1;
    const body = {
      ...activationObject(license, activation),
      license_key: licenseObject(license, this.organizationId),
    };
    return { status: 200, body };
  }
}

function deactivate(license: PolarLicense, call: PolarCall): Answer {
  const activation = activationIn(license, (call.body as Sent).activation_id ?? '');
  if (activation === undefined) return notFound();
  activation.isDeleted = true;
  call.activated = -1;
  return { status: 204, body: null };
}

function activationIn({ activations }: PolarLicense, id: string): PolarActivation | undefined {
  return activations.find((each) => each.id === uuidOf(id) && !each.isDeleted);
}

async function textOf(request: IncomingMessage): Promise<string> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of request) chunks.push(chunk as Uint8Array);
  return Buffer.concat(chunks).toString();
}

function send(response: ServerResponse, { status, body, headers }: Answer): void {
  const type = body === null ? {} : { 'content-type': 'application/json' };
  response.writeHead(status, { ...type, ...headers }).end(body === null ? '' : JSON.stringify(body));
}

const html = { 'content-type': 'text/html' };

const pages: Partial<Record<PolarFault, { status: number; headers: Record<string, string>; body: string }>> =
  {
    limited: { status: 429, headers: { 'retry-after': '1' }, body: '' },
    error: { status: 500, headers: { 'content-type': 'text/plain' }, body: 'Internal Server Error' },
    page: { status: 503, headers: html, body: '<!doctype html><title>We will be back</title>' },
    welcome_page: {
      status: 200,
      headers: html,
      body: '<!doctype html><title>Sign in to this network</title>',
    },
    challenge: {
      status: 403,
      headers: { ...html, server: 'cloudflare', 'cf-mitigated': 'challenge' },
      body: '<!doctype html><title>Just a moment...</title>',
    },
  };
