import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/*
 * A stand-in for Gumroad's license API. It follows the order of checks and the texts of Gumroad's own controller
 * (antiwork/gumroad, app/controllers/api/v2/licenses_controller.rb), and has nothing in common with the client of an agent.
 */

export interface GumroadProduct {
  /** The external id, which `product_id` names. */
  readonly productId: string;
  readonly permalink?: string;
  /** Whether a call must name `product_id`: Gumroad's products since 2023. Default: true. */
  readonly needsProductId?: boolean;
}

export interface GumroadSale {
  readonly licenseKey: string;
  /** Default: the first product. */
  readonly productId?: string;
  readonly email?: string;
  readonly uses?: number;
  readonly isDisabled?: boolean;
  readonly isRevoked?: boolean;
  /** How long after the sale the key is still unknown. */
  readonly lateMs?: number;
  /** Members of the purchase, such as `refunded` and `subscription_ended_at`. */
  readonly purchase?: Readonly<Record<string, unknown>>;
}

type License = {
  licenseKey: string;
  product: Required<GumroadProduct>;
  uses: number;
  isDisabled: boolean;
  isRevoked: boolean;
  shownFrom: number;
  purchase: Record<string, unknown>;
};

type CallName = 'verify' | 'enable' | 'disable' | 'decrement_uses_count' | 'rotate';

/** A call as it arrived, and what it did. */
export interface GumroadCall {
  readonly at: number;
  readonly name: CallName;
  readonly licenseKey: string;
  readonly parameters: Readonly<Record<string, unknown>>;
  readonly headers: IncomingMessage['headers'];
  /** The status that Gumroad decided on; 0: the call was never carried out. */
  status: number;
  /** By how much the call changed the count. */
  counted: number;
}

/** What goes wrong with a call. */
export type GumroadFault =
  /** The connection ends, before or after the call was carried out. */
  | 'lost_request'
  | 'lost_answer'
  /** 429 as the framework sends it, or as an empty body; nothing was carried out. */
  | 'limited'
  | 'limited_empty'
  /** A page of the host in front: 503 and 200 in HTML, and the firewall's challenge. */
  | 'page'
  | 'welcome_page'
  | 'challenge';

type Answer = { status: number; body: object | null };

const unknown = refused('That license does not exist for the provided product.');

function refused(message: string, status = 404): Answer {
  return { status, body: { success: false, message } };
}

export class GumroadStore implements AsyncDisposable {
  readonly calls: GumroadCall[] = [];
  /** Chooses what goes wrong; undefined: nothing. */
  fault: (call: GumroadCall) => GumroadFault | undefined = () => undefined;
  /** How long each answer takes. */
  latencyMs = 0;
  /** The access token with the scope `edit_products`; another token has no scope. */
  readonly accessToken: string;
  readonly #products: ReadonlyMap<string, Required<GumroadProduct>>;
  readonly #licenses = new Map<string, License>();
  readonly #now: () => number;
  #server: Server | null = null;
  #port = 0;
  #rotated = 0;

  constructor(
    products: readonly GumroadProduct[],
    {
      accessToken = 'gumroad-token',
      now = () => Date.now(),
    }: { accessToken?: string; now?: () => number } = {},
  ) {
    this.accessToken = accessToken;
    this.#now = now;
    const complete = products.map((each) => ({ permalink: 'demo', needsProductId: true, ...each }));
    this.#products = new Map(complete.map((each) => [each.productId, each]));
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

  sell({ licenseKey, productId, email = 'buyer@example.com', ...sale }: GumroadSale): void {
    const product = this.#products.get(productId ?? this.#products.keys().next().value ?? '');
    if (product === undefined) throw new Error('there is no such product');
    this.#licenses.set(fold(licenseKey), {
      licenseKey,
      product,
      uses: sale.uses ?? 0,
      isDisabled: sale.isDisabled ?? false,
      isRevoked: sale.isRevoked ?? false,
      shownFrom: this.#now() + (sale.lateMs ?? 0),
      purchase: purchaseOf(licenseKey, product, { email, ...sale.purchase }),
    });
  }

  /** What is on file. */
  license(licenseKey: string): Readonly<License> {
    const license = this.#licenses.get(fold(licenseKey));
    if (license === undefined) throw new Error('there is no such license');
    return license;
  }

  /** The seller changes a license in the dashboard. */
  change(licenseKey: string, change: Partial<Pick<License, 'uses' | 'isDisabled' | 'isRevoked'>>): void {
    Object.assign(this.license(licenseKey), change);
  }

  /** Ends the time in which a new key is still unknown. */
  show(licenseKey: string): void {
    const license = this.#licenses.get(fold(licenseKey));
    if (license !== undefined) license.shownFrom = 0;
  }

  refund(licenseKey: string): void {
    this.license(licenseKey).purchase['refunded'] = true;
  }

  /** How many uses calls have counted, without those that were taken back. */
  countedAt(licenseKey: string): number {
    const own = this.calls.filter((call) => fold(call.licenseKey) === fold(licenseKey));
    return own.reduce((sum, { counted }) => sum + counted, 0);
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { pathname, searchParams } = new URL(request.url ?? '/', 'http://gumroad.invalid');
    const name = /^(?:\/api)?\/v2\/licenses\/(\w+)$/.exec(pathname)?.[1];
    const parameters = { ...Object.fromEntries(searchParams), ...(await bodyOf(request)) };
    if (this.latencyMs > 0) await new Promise((resolve) => setTimeout(resolve, this.latencyMs));
    if (name === undefined || request.method !== methods.get(name))
      return send(response, { status: 404, body: { status: 404, error: 'Not Found' } });
    const call: GumroadCall = {
      at: this.#now(),
      name: name as CallName,
      licenseKey: textOf(parameters['license_key']),
      parameters,
      headers: request.headers,
      status: 0,
      counted: 0,
    };
    this.calls.push(call);
    const fault = this.fault(call);
    if (fault === 'lost_request') return void request.socket.destroy();
    const page = fault === undefined ? undefined : pages[fault];
    if (page !== undefined) return void response.writeHead(page.status, page.headers).end(page.body);
    const answer = this.handle(call);
    if (fault === 'lost_answer') return void request.socket.destroy();
    send(response, answer);
  }

  /** Carries out a call, in the order of the checks of the controller. */
  handle(call: GumroadCall): Answer {
    const answer = this.#handle(call);
    call.status = answer.status;
    return answer;
  }

  #handle(call: GumroadCall): Answer {
    const { name, parameters } = call;
    if (name === 'verify') {
      const names = ['license_key', 'product_id', 'product_permalink', 'id', 'link_id'];
      const wrong = names.find((each) => isPresent(parameters[each]) && typeof parameters[each] !== 'string');
      if (wrong !== undefined) return refused(`The '${wrong}' parameter must be a string.`, 400);
    } else {
      const [, bearer] = /^Bearer (.+)$/.exec(call.headers.authorization ?? '') ?? [];
      const token = parameters['access_token'] ?? bearer;
      if (token === undefined) return { status: 401, body: null };
      if (token !== this.accessToken) return { status: 403, body: null };
    }
    const license = this.#find(parameters);
    if (license === 'product_id') return needsProductId(this.#byKey(parameters)?.product.productId ?? '');
    if (license === null) return unknown;
    if (license.isRevoked) return refused('Access to the purchase associated with this license has expired.');
    return this.#carryOut(call, license);
  }

  #carryOut(call: GumroadCall, license: License): Answer {
    const count = (by: number): void => {
      license.uses += by;
      call.counted = by;
    };
    switch (call.name) {
      case 'verify':
        if (license.isDisabled) return refused('This license key has been disabled.');
        if (!['false', false].includes(call.parameters['increment_uses_count'] as string)) count(1);
        break;
      case 'decrement_uses_count':
        if (license.uses > 0) count(-1);
        break;
      case 'enable':
      case 'disable':
        license.isDisabled = call.name === 'disable';
        break;
      case 'rotate':
        this.#rotate(license);
        break;
      default:
        return call.name satisfies never;
    }
    return { status: 200, body: { success: true, uses: license.uses, purchase: license.purchase } };
  }

  #rotate(license: License): void {
    this.#licenses.delete(fold(license.licenseKey));
    this.#rotated += 1;
    const group = String(this.#rotated).padStart(8, '0');
    license.licenseKey = [group, group, group, group].join('-');
    license.purchase['license_key'] = license.licenseKey;
    this.#licenses.set(fold(license.licenseKey), license);
  }

  #byKey(parameters: GumroadCall['parameters']): License | null {
    const license = this.#licenses.get(fold(textOf(parameters['license_key'])));
    return license === undefined || license.shownFrom > this.#now() ? null : license;
  }

  #find(parameters: GumroadCall['parameters']): License | 'product_id' | null {
    const license = this.#byKey(parameters);
    if (license === null) return null;
    const { product } = license;
    if (isPresent(parameters['product_id']))
      return parameters['product_id'] === product.productId ? license : null;
    if (product.needsProductId) return 'product_id';
    const permalink = [parameters['id'], parameters['link_id'], parameters['product_permalink']].find(
      isPresent,
    );
    return textOf(permalink).toLowerCase() === product.permalink.toLowerCase() ? license : null;
  }
}

const methods: ReadonlyMap<string, string> = new Map([
  ['verify', 'POST'],
  ...['enable', 'disable', 'decrement_uses_count', 'rotate'].map((name) => [name, 'PUT'] as const),
]);

function isPresent(value: unknown): boolean {
  return value !== undefined && value !== null && (typeof value !== 'string' || value.trim() !== '');
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

/** Keys are found in any letter case, and with spaces behind them. */
function fold(licenseKey: string): string {
  return licenseKey.trimEnd().toUpperCase();
}

function needsProductId(productId: string): Answer {
  const text = `The 'product_id' parameter is required to verify the license for this product. Please set 'product_id' to '${productId}' in the request.`;
  return refused(text, 500);
}

/** As the web framework of Gumroad reads it: a body of another type has no parameters. */
async function bodyOf(request: IncomingMessage): Promise<Record<string, unknown>> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of request) chunks.push(chunk as Uint8Array);
  const body = Buffer.concat(chunks);
  const type = request.headers['content-type'] ?? '';
  if (body.length === 0) return {};
  if (type.startsWith('application/json')) return JSON.parse(body.toString()) as Record<string, unknown>;
  if (!/^(?:multipart\/form-data|application\/x-www-form-urlencoded)/.test(type)) return {};
  const form = new Response(body, { headers: { 'content-type': type } });
  return Object.fromEntries(await form.formData());
}

function send(response: ServerResponse, { status, body }: Answer): void {
  const headers = body === null ? {} : { 'content-type': 'application/json; charset=utf-8' };
  response.writeHead(status, headers).end(body === null ? '' : JSON.stringify(body));
}

const html = { 'content-type': 'text/html' };

const pages: Partial<
  Record<GumroadFault, { status: number; headers: Record<string, string>; body: string }>
> = {
  limited: { status: 429, headers: { 'content-type': 'text/plain' }, body: 'Retry later\n' },
  limited_empty: { status: 429, headers: { 'retry-after': '1' }, body: '' },
  page: { status: 503, headers: html, body: '<!doctype html><title>We will be back</title>' },
  welcome_page: { status: 200, headers: html, body: '<!doctype html><title>Sign in to this network</title>' },
  challenge: {
    status: 403,
    headers: { ...html, server: 'cloudflare', 'cf-mitigated': 'challenge' },
    body: '<!doctype html><title>Just a moment...</title>',
  },
};

/** The members of a purchase, as Gumroad’s own tests list them. */
function purchaseOf(
  licenseKey: string,
  { productId, permalink }: Required<GumroadProduct>,
  members: Readonly<Record<string, unknown>>,
): Record<string, unknown> {
  return {
    seller_id: 'kL0psVL2admJSYRNs-OCMg==',
    product_id: productId,
    product_name: 'Sample product',
    permalink,
    product_permalink: `https://seller.gumroad.com/l/${permalink}`,
    short_product_id: permalink,
    price: 1_000,
    gumroad_fee: 150,
    currency: 'usd',
    quantity: 1,
    discover_fee_charged: false,
    can_contact: true,
    referrer: 'direct',
    card: { visual: null, type: null, bin: null, expiry_month: null, expiry_year: null },
    order_number: 524459935,
    sale_id: 'FO8TXN-dbxYaBdahG97Y-Q==',
    sale_timestamp: '2026-01-05T19:38:56Z',
    license_key: licenseKey,
    is_gift_receiver_purchase: false,
    refunded: false,
    disputed: false,
    dispute_won: false,
    id: 'FO8TXN-dbxYaBdahG97Y-Q==',
    created_at: '2026-01-05T19:38:56Z',
    variants: '',
    custom_fields: [],
    chargebacked: false,
    ...members,
  };
}
