import { EventEmitter, once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { freePort } from '../network/free-port.ts';
import { patienceMs } from '../patience.ts';

export type RequestKind =
  | 'verify'
  | 'usage'
  | 'decrease'
  | 'disable'
  | 'enable'
  | 'create_coupon'
  | 'list_coupons'
  | 'get_coupon'
  | 'other';

/**
 * A request as it arrived. `at` is epoch ms, header names are in lower case, and of repeated values the last
 * is kept.
 */
export interface LedgerEntryDraft {
  readonly at: number;
  readonly method: string;
  readonly path: string;
  readonly kind: RequestKind;
  readonly licenseKey: string | undefined;
  readonly headers: Readonly<Record<string, string>>;
  readonly parameters: Readonly<Record<string, string>>;
}

/** A request and its result. */
export interface LedgerEntry extends LedgerEntryDraft {
  /** Whether it changed a license or created a coupon. */
  counted: boolean;
  /**
   * `waiting`: not answered yet; `sent`: answered as the specification says; `corrupted`: a 2xx with another
   * body; `lost`: the connection ended before the response; `status:…`: answered with this status, which is
   * not 2xx.
   */
  answered: 'waiting' | 'sent' | 'corrupted' | 'lost' | `status:${number}`;
}

/** What goes wrong with one request; `counted` says whether the request was applied first. */
export type Fault =
  | { readonly kind: 'lost'; readonly counted: boolean }
  | { readonly kind: 'hang'; readonly counted: boolean }
  | { readonly kind: 'late'; readonly delayMs: number }
  | { readonly kind: 'outlives_caller' }
  | { readonly kind: 'held'; readonly until: Promise<unknown> }
  | { readonly kind: 'truncated'; readonly ending: 'clean' | 'cut' }
  | ({ readonly kind: 'replaced'; readonly counted: boolean } & WireResponse);

/** Chooses the fault of each request; undefined: no fault. */
export type FaultPlan = (request: LedgerEntryDraft) => Fault | undefined;

interface WireResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** Applies the request, then destroys the connection. */
export const loseResponse: Fault = { kind: 'lost', counted: true };

/** Destroys the connection without applying the request. */
export const loseRequest: Fault = { kind: 'lost', counted: false };

/** Never answers; the connection stays open until the caller or `stop` closes it. */
export function hang(counted = true): Fault {
  return { kind: 'hang', counted };
}

/** Applies the request at once, and answers late. */
export function delayResponse(delayMs: number): Fault {
  return { kind: 'late', delayMs };
}

/** Applies the request at once, and answers when the promise resolves. */
export function holdResponse(until: Promise<unknown>): Fault {
  return { kind: 'held', until };
}

/** Applies the request only after its caller has given up, as if it had still been on its way. */
export const outliveCaller: Fault = { kind: 'outlives_caller' };

/** A gateway's 5xx page in HTML. */
export function serverError(status = 503, counted = false): Fault {
  return html(status, counted);
}

/** A firewall's or hosting provider's 4xx page in HTML; the request is not applied. */
export function firewallPage(status = 403): Fault {
  return html(status, false);
}

/** Applies the request, then answers 200 with another body. */
export function corruptBody(body = '<!doctype html><title>Welcome</title>', type = 'text/html'): Fault {
  return { kind: 'replaced', counted: true, status: 200, headers: { 'content-type': type }, body };
}

/** Applies the request, then answers a complete 200 with half of the JSON. */
export const truncateBody: Fault = { kind: 'truncated', ending: 'clean' };

/** Applies the request, then closes the connection in the middle of the body. */
export const cutBody: Fault = { kind: 'truncated', ending: 'cut' };

/** Redirects the caller without applying the request. */
export function redirect(location: string, status = 307): Fault {
  return { kind: 'replaced', counted: false, status, headers: { location }, body: '' };
}

/** 429 with `Retry-After` in seconds or as an HTTP date; the request is not applied. */
export function rateLimited(retryAfter: number | Date): Fault {
  const value = typeof retryAfter === 'number' ? String(retryAfter) : retryAfter.toUTCString();
  return refusal(429, 'Too many requests', { 'retry-after': value });
}

/** A 4xx with a JSON object; the request is not applied. */
export function refusal(status: number, message = 'Refused', headers: Record<string, string> = {}): Fault {
  const body = JSON.stringify({ error: message });
  const allHeaders = { 'content-type': 'application/json', ...headers };
  return { kind: 'replaced', counted: false, status, headers: allHeaders, body };
}

/** A status without a body; the request is not applied. */
export function emptyResponse(status: number): Fault {
  return { kind: 'replaced', counted: false, status, headers: {}, body: '' };
}

function html(status: number, counted: boolean): Fault {
  const body = `<!doctype html><title>${status}</title><h1>${status}</h1>`;
  return { kind: 'replaced', counted, status, headers: { 'content-type': 'text/html' }, body };
}

/** Whether the request changes `uses`. */
export function movesCounter({ kind }: LedgerEntryDraft): boolean {
  return kind === 'usage' || kind === 'decrease';
}

export type Chooses = (request: LedgerEntryDraft) => boolean;

/** Of the chosen requests, the nth, 2nth, 3nth … meets the fault. */
export function everyNth(n: number, fault: Fault, chooses: Chooses = () => true): FaultPlan {
  let seen = 0;
  return (request) => (chooses(request) && ++seen % n === 0 ? fault : undefined);
}

/** The first n of the chosen requests meet the fault. */
export function firstFew(n: number, fault: Fault, chooses: Chooses = () => true): FaultPlan {
  let seen = 0;
  return (request) => (chooses(request) && ++seen <= n ? fault : undefined);
}

/** All chosen requests meet the fault. */
export function every(fault: Fault, chooses: Chooses = () => true): FaultPlan {
  return (request) => (chooses(request) ? fault : undefined);
}

export interface UpstreamLicense {
  readonly licenseKey: string;
  readonly productKey: string;
  readonly buyerEmail: string;
  readonly uses: number;
  readonly enabled: boolean;
  /** In the format of responses. */
  readonly date: string;
}

type Writable<T> = { -readonly [Name in keyof T]: T[Name] };

export type LicenseSeed = Pick<UpstreamLicense, 'licenseKey' | 'productKey' | 'buyerEmail'> &
  Partial<UpstreamLicense>;

/** The coupon object of specification 2.1, in the format of responses. */
export interface UpstreamCoupon {
  readonly id: number;
  readonly coupon_type: string;
  readonly percent_off: number | null;
  readonly amount_off: number | null;
  readonly code: string;
  readonly start_date: string | null;
  readonly end_date: string | null;
  readonly product_key: string | null;
  readonly collection_id: string | null;
  readonly minimum_purchase_amount: number | null;
  readonly usage_limit: number | null;
  readonly notes: string | null;
}

export interface UpstreamProduct {
  readonly productKey: string;
  readonly secret: string;
}

/** Behaviour that the specification leaves open ("not shown"), so that real upstreams differ. */
export interface UpstreamChoices {
  readonly floorAtZero: boolean;
  readonly createdStatus: 200 | 201;
  readonly listOrder: 'ascending' | 'descending';
  /** false: a second coupon with the same code is created. */
  readonly uniqueCodes: boolean;
  /** false: dates and minimum purchase amount sent on creation are ignored. */
  readonly keepsExtras: boolean;
  readonly errorBody: (message: string, status: number) => unknown;
  /** In lower case. */
  readonly apiKeyHeader: string;
  /** The response for a license key that is unknown or belongs to another product. */
  readonly unknownKey: (body: unknown) => { status: number; body: unknown };
  /** Members of a license object in addition to those of specification 2.2. */
  readonly licenseExtra: (license: UpstreamLicense) => Readonly<Record<string, unknown>>;
  /** Whether `/api/v1/license/…` exists too: the API key acts for the product that `product_link` names. */
  readonly firstVersion: boolean;
}

export interface PlainUpstreamOptions extends Partial<UpstreamChoices> {
  readonly apiKey: string;
  readonly products: readonly UpstreamProduct[];
  readonly licenses?: readonly LicenseSeed[];
  /** 0, the default: any free port. */
  readonly port?: number;
}

/** The ledger's counts for one key; `unanswered` are counted changes without a response. */
export interface Counts {
  readonly usages: number;
  readonly decreases: number;
  readonly net: number;
  readonly unanswered: number;
}

interface UpstreamResponse {
  readonly status: number;
  /** undefined: an empty body. */
  readonly body: unknown;
  readonly counted: boolean;
}

const licenseRoutes: Readonly<Record<string, RequestKind>> = {
  'GET verify': 'verify',
  'PUT usage': 'usage',
  'PUT decrease': 'decrease',
  'PUT disable': 'disable',
  'PUT enable': 'enable',
};
const licensePath = /^\/api\/v([12])\/license\/(\w+)$/;

/** A central API that implements exactly the specification, records all requests, and fails on demand. */
export class PlainUpstream implements AsyncDisposable {
  /** All requests, in the order of arrival. */
  readonly ledger: LedgerEntry[] = [];
  fault: FaultPlan = () => undefined;
  readonly #licenses: Map<string, Writable<UpstreamLicense>> = new Map();
  readonly #secrets: Map<string, string> = new Map();
  readonly #coupons: UpstreamCoupon[] = [];
  readonly #choices: UpstreamChoices;
  readonly #moved: EventEmitter = new EventEmitter();
  readonly #delays: Set<NodeJS.Timeout> = new Set();
  #apiKey: string;
  #port: number;
  #server: Server | undefined;

  constructor({ apiKey, products, licenses = [], port = 0, ...choices }: PlainUpstreamOptions) {
    this.#apiKey = apiKey;
    this.#port = port;
    this.#choices = {
      floorAtZero: true,
      createdStatus: 200,
      listOrder: 'ascending',
      uniqueCodes: true,
      keepsExtras: true,
      errorBody: (message) => ({ error: message }),
      apiKeyHeader: 'service-api-key',
      unknownKey: (body) => ({ status: 404, body }),
      licenseExtra: () => ({}),
      firstVersion: false,
      ...choices,
    };
    this.#moved.setMaxListeners(0);
    for (const { productKey, secret } of products) this.rotateSecret(productKey, secret);
    for (const license of licenses) this.addLicense(license);
  }

  get port(): number {
    return this.#port;
  }

  get url(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  get coupons(): readonly UpstreamCoupon[] {
    return this.#coupons;
  }

  /** A copy of the current license. Throws if there is none. */
  license(licenseKey: string): UpstreamLicense {
    return { ...this.#found(licenseKey) };
  }

  addLicense(seed: LicenseSeed): void {
    this.#licenses.set(seed.licenseKey, { uses: 0, enabled: true, date: datetime(Date.now()), ...seed });
  }

  addCoupon(coupon: Partial<UpstreamCoupon> & Pick<UpstreamCoupon, 'code'>): UpstreamCoupon {
    const made = { ...emptyCoupon, id: this.#coupons.length + 1, ...coupon };
    this.#coupons.push(made);
    return made;
  }

  /** Deletes the key, which is unknown from now on. */
  forget(licenseKey: string): void {
    this.#licenses.delete(licenseKey);
  }

  refund(licenseKey: string): void {
    this.setEnabled(licenseKey, false);
  }

  setEnabled(licenseKey: string, enabled: boolean): void {
    this.#found(licenseKey).enabled = enabled;
  }

  /** Another writer changes the counter, which is not in the ledger. */
  useElsewhere(licenseKey: string, delta: number): void {
    const license = this.#found(licenseKey);
    license.uses = this.#floored(license.uses + delta);
  }

  rotateSecret(productKey: string, secret: string): void {
    this.#secrets.set(productKey, secret);
  }

  rotateApiKey(apiKey: string): void {
    this.#apiKey = apiKey;
  }

  /** Counts the applied changes of a key, whatever the response was. */
  countsOf(licenseKey: string): Counts {
    const counted = this.ledger.filter(
      (entry) => entry.licenseKey === licenseKey && entry.counted && movesCounter(entry),
    );
    const usages = counted.filter(({ kind }) => kind === 'usage').length;
    const decreases = counted.length - usages;
    const unanswered = counted.filter(({ answered }) => answered !== 'sent').length;
    return { usages, decreases, net: usages - decreases, unanswered };
  }

  /** Waits until `holds` returns true, checking after each change of the ledger. Rejects at the deadline. */
  async until(holds: () => boolean, deadlineMs: number = patienceMs): Promise<void> {
    const signal = AbortSignal.timeout(deadlineMs);
    while (!holds()) await once(this.#moved, 'moved', { signal });
  }

  async start(): Promise<void> {
    if (this.#server !== undefined) return;
    const server = createServer((request, response) => void this.#receive(request, response));
    this.#server = server;
    // While the upstream is stopped, no other program may take its port.
    this.#port ||= await freePort();
    server.listen(this.#port, '127.0.0.1');
    await once(server, 'listening');
  }

  /**
   * Closes the listener and every connection, and ends every delay. The state and the port stay for the next
   * `start`.
   */
  async stop(): Promise<void> {
    const server = this.#server;
    this.#server = undefined;
    for (const delay of this.#delays) clearTimeout(delay);
    this.#delays.clear();
    if (server === undefined) return;
    server.close();
    server.closeAllConnections();
    await once(server, 'close');
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop();
  }

  async #receive(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await readBody(request).catch(() => undefined);
    if (body === undefined) {
      response.destroy();
      return;
    }
    const entry = draft(request, body);
    this.ledger.push(entry);
    response.once('close', () => this.#note(entry, 'lost'));
    this.#moved.emit('moved');
    const fault = this.fault(entry);
    if (fault === undefined) this.#send(entry, response, wire(this.#carryOut(entry)));
    else this.#fail(entry, response, fault);
  }

  #fail(entry: LedgerEntry, response: ServerResponse, fault: Fault): void {
    switch (fault.kind) {
      case 'lost':
        if (fault.counted) this.#carryOut(entry);
        this.#note(entry, 'lost');
        response.destroy();
        return;
      case 'hang':
        if (fault.counted) this.#carryOut(entry);
        return;
      case 'late': {
        const answer = this.#carryOut(entry);
        this.#later(fault.delayMs, () => this.#send(entry, response, wire(answer)));
        return;
      }
      case 'outlives_caller':
        response.once('close', () => void this.#carryOut(entry));
        return;
      case 'held': {
        const answer = this.#carryOut(entry);
        void fault.until.then(() => this.#send(entry, response, wire(answer)));
        return;
      }
      case 'truncated':
        this.#truncate(entry, response, fault.ending);
        return;
      case 'replaced':
        if (fault.counted) this.#carryOut(entry);
        this.#send(entry, response, fault, 'corrupted');
        return;
      default:
        fault satisfies never;
    }
  }

  #send(
    entry: LedgerEntry,
    response: ServerResponse,
    { status, headers, body }: WireResponse,
    success: 'sent' | 'corrupted' = 'sent',
  ): void {
    if (response.destroyed) return;
    this.#note(entry, status < 300 ? success : `status:${status}`);
    response.writeHead(status, { ...headers, 'content-length': Buffer.byteLength(body) }).end(body);
  }

  #truncate(entry: LedgerEntry, response: ServerResponse, ending: 'clean' | 'cut'): void {
    const answer = wire(this.#carryOut(entry));
    const half = answer.body.slice(0, answer.body.length / 2);
    if (ending === 'clean') {
      this.#send(entry, response, { ...answer, body: half }, 'corrupted');
      return;
    }
    this.#note(entry, 'lost');
    response.writeHead(answer.status, {
      ...answer.headers,
      'content-length': Buffer.byteLength(answer.body),
    });
    response.write(half, () => response.destroy());
  }

  #later(delayMs: number, act: () => void): void {
    const delay = setTimeout(() => {
      this.#delays.delete(delay);
      act();
    }, delayMs);
    this.#delays.add(delay);
  }

  /** Keeps the first note about a response. */
  #note(entry: LedgerEntry, answered: LedgerEntry['answered']): void {
    if (entry.answered !== 'waiting') return;
    entry.answered = answered;
    this.#moved.emit('moved');
  }

  #carryOut(entry: LedgerEntry): UpstreamResponse {
    const answer = this.#decide(entry);
    entry.counted = answer.counted;
    this.#moved.emit('moved');
    return answer;
  }

  #decide(entry: LedgerEntry): UpstreamResponse {
    if (entry.kind === 'other') return this.#refuse(404, 'There is no such endpoint');
    if (entry.method !== 'GET' && !isForm(entry.headers)) return this.#refuse(400, 'Send a form');
    const [, version] = licensePath.exec(entry.path) ?? [];
    if (version === '1' && !this.#choices.firstVersion) return this.#refuse(404, 'There is no such endpoint');
    if (version === '1') return this.#decideFirstVersion(entry);
    if (version === '2') return this.#decideLicense(entry, this.#productOf(entry));
    return this.#hasApiKey(entry) ? this.#decideCoupon(entry) : this.#refuse(401, 'Wrong API key');
  }

  #hasApiKey({ headers }: LedgerEntry): boolean {
    return headers[this.#choices.apiKeyHeader] === this.#apiKey;
  }

  #productOf({ headers }: LedgerEntry): string | undefined {
    const secret = headers['product-secret-key'];
    return [...this.#secrets].find(([, itsSecret]) => itsSecret === secret)?.[0];
  }

  #decideFirstVersion(entry: LedgerEntry): UpstreamResponse {
    if (!this.#hasApiKey(entry)) return this.#refuse(401, 'Wrong API key');
    return this.#decideLicense(entry, entry.parameters['product_link'] ?? '');
  }

  #decideLicense({ kind, licenseKey }: LedgerEntry, product: string | undefined): UpstreamResponse {
    if (product === undefined) return this.#refuse(401, 'Wrong product secret key');
    if (licenseKey === undefined) return this.#refuse(400, 'license_key is required');
    const license = this.#licenses.get(licenseKey);
    if (license?.productKey !== product) {
      const { errorBody, unknownKey } = this.#choices;
      return { ...unknownKey(errorBody('Unknown license key', 404)), counted: false };
    }
    const before = { ...license };
    if (kind === 'usage') license.uses += 1;
    if (kind === 'decrease') license.uses = this.#floored(license.uses - 1);
    if (kind === 'enable') license.enabled = true;
    if (kind === 'disable') license.enabled = false;
    const counted = license.uses !== before.uses || license.enabled !== before.enabled;
    const data = { ...licenseObject(license), ...this.#choices.licenseExtra(license) };
    return { status: 200, body: { data }, counted };
  }

  #decideCoupon({ kind, path, parameters }: LedgerEntry): UpstreamResponse {
    if (kind === 'create_coupon') return this.#createCoupon(parameters);
    if (kind === 'list_coupons') return this.#listCoupons(parameters);
    const coupon = this.#coupons.find(({ id }) => path === `/api/v2/coupons/${id}`);
    return coupon === undefined
      ? this.#refuse(404, 'Unknown coupon')
      : { status: 200, body: { data: coupon }, counted: false };
  }

  #createCoupon(parameters: LedgerEntry['parameters']): UpstreamResponse {
    const fault = couponFault(parameters);
    if (fault !== undefined) return this.#refuse(400, fault);
    const { keepsExtras, uniqueCodes, createdStatus } = this.#choices;
    const asked = couponAsked(parameters);
    if (uniqueCodes && this.#coupons.some(({ code }) => code === asked.code)) {
      return this.#refuse(400, 'This code is taken');
    }
    const coupon = this.addCoupon(keepsExtras ? asked : { ...asked, ...noExtras });
    return { status: createdStatus, body: { data: coupon }, counted: true };
  }

  #listCoupons({ limit = '10', offset = '0' }: LedgerEntry['parameters']): UpstreamResponse {
    if (!/^\d+$/.test(offset) || !/^\d+$/.test(limit) || Number(limit) < 1 || Number(limit) > 100) {
      return this.#refuse(400, 'limit is 1 to 100, offset 0 or more');
    }
    const inOrder = this.#choices.listOrder === 'ascending' ? this.#coupons : this.#coupons.toReversed();
    const coupons = inOrder.slice(Number(offset), Number(offset) + Number(limit));
    return { status: 200, body: { data: { coupons } }, counted: false };
  }

  #refuse(status: number, message: string): UpstreamResponse {
    return { status, body: this.#choices.errorBody(message, status), counted: false };
  }

  #floored(uses: number): number {
    return this.#choices.floorAtZero ? Math.max(0, uses) : uses;
  }

  #found(licenseKey: string): Writable<UpstreamLicense> {
    const license = this.#licenses.get(licenseKey);
    if (license === undefined) throw new Error(`The plain upstream has no license ${licenseKey}`);
    return license;
  }
}

/** Starts a plain upstream on 127.0.0.1. */
export async function startPlainUpstream(options: PlainUpstreamOptions): Promise<PlainUpstream> {
  const upstream = new PlainUpstream(options);
  await upstream.start();
  return upstream;
}

const maximumBodyBytes = 65_536;

async function readBody(request: IncomingMessage): Promise<string> {
  let body = '';
  for await (const chunk of request.setEncoding('utf8')) {
    body += String(chunk);
    if (body.length > maximumBodyBytes) throw new Error('the form is too large');
  }
  return body;
}

function draft(request: IncomingMessage, body: string): LedgerEntry {
  const { method = '', url = '/' } = request;
  const { pathname: path, searchParams } = new URL(url, 'http://upstream');
  const headers = Object.fromEntries(
    Object.entries(request.headers).map(([name, value]) => [name, [value ?? ''].flat().join(', ')]),
  );
  const form = new URLSearchParams(isForm(headers) ? body : '');
  const parameters: Record<string, string> = Object.fromEntries(method === 'GET' ? searchParams : form);
  return {
    at: Date.now(),
    method,
    path,
    kind: kindOf(method, path),
    licenseKey: parameters['license_key'],
    headers,
    parameters,
    counted: false,
    answered: 'waiting',
  };
}

function kindOf(method: string, path: string): RequestKind {
  if (method === 'POST' && path === '/api/v2/coupons') return 'create_coupon';
  if (method === 'GET' && path === '/api/v2/coupons') return 'list_coupons';
  if (method === 'GET' && /^\/api\/v2\/coupons\/[^/]+$/.test(path)) return 'get_coupon';
  return licenseRoutes[`${method} ${licensePath.exec(path)?.[2] ?? ''}`] ?? 'other';
}

function isForm(headers: LedgerEntry['headers']): boolean {
  return /^application\/x-www-form-urlencoded\s*(?:;|$)/i.test(headers['content-type'] ?? '');
}

function wire({ status, body }: UpstreamResponse): WireResponse {
  if (body === undefined) return { status, headers: { 'content-type': 'text/html' }, body: '' };
  return { status, headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) };
}

function licenseObject(license: UpstreamLicense): Record<string, unknown> {
  return {
    license_key: license.licenseKey,
    enabled: license.enabled,
    product_link: license.productKey,
    buyer_email: license.buyerEmail,
    uses: license.uses,
    date: license.date,
  };
}

function datetime(epochMs: number): string {
  return `${new Date(epochMs).toISOString().slice(0, 19)}+00:00`;
}

const noExtras: Pick<UpstreamCoupon, 'start_date' | 'end_date' | 'minimum_purchase_amount'> = {
  start_date: null,
  end_date: null,
  minimum_purchase_amount: null,
};

const emptyCoupon: Omit<UpstreamCoupon, 'id' | 'code'> = {
  coupon_type: 'multi',
  percent_off: null,
  amount_off: null,
  product_key: null,
  collection_id: null,
  usage_limit: null,
  notes: null,
  ...noExtras,
};

/** The first rule of specification 2.1 and 4.1 that the parameters violate. */
function couponFault(parameters: LedgerEntry['parameters']): string | undefined {
  const { percent_off: percent, amount_off: amount, coupon_type: type, code } = parameters;
  if ((percent === undefined) === (amount === undefined)) return 'Send either percent_off or amount_off';
  if (percent !== undefined && !(Number(percent) > 0 && Number(percent) <= 100))
    return 'percent_off is wrong';
  const wholeNumbers = ['amount_off', 'usage_limit', 'minimum_purchase_amount'];
  const wrong = wholeNumbers.find((name) => !/^[1-9]\d*$/.test(parameters[name] ?? '1'));
  if (wrong !== undefined) return `${wrong} is wrong`;
  if (type !== 'single' && type !== 'multi' && type !== 'collection') return 'coupon_type is wrong';
  if (type === 'single' && !parameters['product_key']) return 'product_key is required';
  if (type === 'collection' && !parameters['collection_id']) return 'collection_id is required';
  return code ? undefined : 'code is required';
}

function couponAsked(parameters: LedgerEntry['parameters']): Omit<UpstreamCoupon, 'id'> {
  const text = (name: string): string | null => parameters[name] ?? null;
  const number = (name: string): number | null =>
    parameters[name] === undefined ? null : Number(parameters[name]);
  return {
    coupon_type: text('coupon_type') ?? '',
    percent_off: number('percent_off'),
    amount_off: number('amount_off'),
    code: text('code') ?? '',
    start_date: text('start_date'),
    end_date: text('end_date'),
    product_key: text('product_key'),
    collection_id: text('collection_id'),
    minimum_purchase_amount: number('minimum_purchase_amount'),
    usage_limit: number('usage_limit'),
    notes: text('notes'),
  };
}
