import { join } from 'node:path';
import { AdvancingTime } from '../../../../src/daemon/system/clock.ts';
import { embeddedConfiguration } from '../../../../src/config/load.ts';
import { readAdminToken } from '../../../../src/daemon/local-client.ts';
import type { Daemon } from '../../../../src/daemon/daemon.ts';
import { startDaemon } from '../../../../src/daemon/start.ts';
import type { LeaseAct, UseTotals } from '../../../../src/features/leases/domain/lease.ts';
import { signDocument, type KeyPair } from '../../../../src/features/leases/documents.ts';
import type {
  LeaseClaims,
  NoticeClaims,
  SequenceClaims,
  RequestClaims,
} from '../../../../src/features/leases/wire/lease.ts';
import { keyPair, leaseIssuer, setUpIssuer } from './lease-builders.ts';
import { storeOfProject } from '../../../support/app/engine.ts';
import { httpClient, type HttpClient, type HttpResponse } from '../../../support/network/raw-http.ts';
import { silent } from '../../../support/silent-log.ts';
import { temporaryDirectory } from '../../../support/temporary.ts';
import { startPlainUpstream, type PlainUpstream } from '../../../support/harness/plain-upstream.ts';

export type IssuerRole = 'authority' | 'agent';

export const issuedProduct = 'editor';
export const otherProduct = 'player';
export const issuedKey = 'AAAAA-BBBBB-CCCCC-DDDDD';
/** A license key of another product. */
export const otherKey = 'AAAAA-BBBBB-CCCCC-EEEEE';

/** The answer to a request for a lease: its claims, or the problem. */
export type LeaseReply = {
  status: number;
  headers: Readonly<Record<string, string>>;
  lease: LeaseClaims | null;
  notice: NoticeClaims | null;
  sequence: SequenceClaims | null;
  problem: Readonly<Record<string, unknown>>;
};

/** Times are in seconds. */
type Terms = { seats?: number; hold?: number; term?: number; refresh?: number; email?: boolean };

/** A running issuer with a license of the product `editor`, and its public listener. */
export class RunningIssuer implements AsyncDisposable {
  readonly role: IssuerRole;
  readonly time = new AdvancingTime();
  readonly #opened = new AsyncDisposableStack();
  /** The state directory. */
  stateDir = '';
  daemon!: Daemon;
  upstream: PlainUpstream | null = null;
  /** The public listener. */
  devices!: HttpClient;
  #admin!: HttpClient;
  issuer = leaseIssuer;

  constructor(role: IssuerRole) {
    this.role = role;
  }

  async start({
    terms = {},
    listen = {},
    isSetUp = true,
    configuration = {},
  }: { terms?: Terms; listen?: object; isSetUp?: boolean; configuration?: object } = {}): Promise<this> {
    const directory = this.#opened.use(temporaryDirectory()).path;
    this.stateDir = join(directory, 'state');
    const { wall } = this.time.read();
    if (isSetUp) await setUpIssuer(this.stateDir, wall);
    const whole = { ...(await this.#configuration(terms, listen)), ...configuration };
    this.daemon = await startDaemon(embeddedConfiguration(whole), { log: silent, time: this.time });
    this.#opened.defer(() => this.daemon.stop());
    this.devices = this.#opened.use(httpClient({ tcp: this.daemon.addresses.public ?? '' }));
    this.#admin = this.#opened.use(httpClient({ tcp: this.daemon.addresses.tcp ?? '' }));
    if (this.role === 'authority') await this.#sell(terms);
    return this;
  }

  async #configuration(terms: Terms, listen: object): Promise<Record<string, unknown>> {
    const common = {
      state_dir: this.stateDir,
      listen: {
        tcp: '127.0.0.1:0',
        socket: false,
        public: { address: '127.0.0.1:0', proxies: ['127.0.0.1'] },
        ...listen,
      },
    };
    if (this.role === 'authority') return { ...common, ...storeOfProject() };
    const products = [issuedProduct, otherProduct].map((productKey) => ({
      productKey,
      secret: `secret-of-${productKey}`,
    }));
    const buyerEmail = 'ada@example.com';
    const upstream = await startPlainUpstream({
      apiKey: 'api-key',
      products,
      licenses: [
        { licenseKey: issuedKey, productKey: issuedProduct, buyerEmail },
        { licenseKey: otherKey, productKey: otherProduct, buyerEmail },
      ],
    });
    this.upstream = this.#opened.use(upstream);
    return {
      ...common,
      upstream: { base_url: upstream.url },
      products: [
        { key: issuedProduct, secret: `secret-of-${issuedProduct}`, ...agentTerms(terms) },
        { key: otherProduct, secret: `secret-of-${otherProduct}` },
      ],
    };
  }

  async #sell(terms: Terms): Promise<void> {
    for (const [product_key, license_key] of [
      [issuedProduct, issuedKey],
      [otherProduct, otherKey],
    ]) {
      await this.admin('POST', '/products', { name: product_key, product_key, ...authorityTerms(terms) });
      await this.admin('POST', '/purchases', { product_key, license_key, buyer_email: 'ada@example.com' });
    }
  }

  /** Calls an admin route with the admin token; throws unless it succeeds. */
  async admin(method: 'GET' | 'POST' | 'PUT', path: string, json?: object): Promise<unknown> {
    const response = await this.tryAdmin(method, path, json);
    if (response.status >= 300) throw new Error(JSON.stringify(response.body));
    return (response.body as { data: unknown }).data;
  }

  async tryAdmin(method: 'GET' | 'POST' | 'PUT', path: string, json?: object): Promise<HttpResponse> {
    const headers = this.#token;
    const send = { GET: this.#admin.get, POST: this.#admin.post, PUT: this.#admin.put }[method];
    return await send(`/admin/v1${path}`, { headers, ...(json !== undefined && { json }) });
  }

  /** The count of the license, as software gets it. */
  async uses(): Promise<number> {
    const response = await this.#admin.get(`/api/v2/license/verify?license_key=${issuedKey}`, {
      headers: this.#token,
    });
    return (response.body as { data: { uses: number } }).data.uses;
  }

  async disable(): Promise<void> {
    await this.#change('disable');
  }

  async enable(): Promise<void> {
    await this.#change('enable');
  }

  async #change(change: 'disable' | 'enable'): Promise<void> {
    const form = { license_key: issuedKey };
    const { status, body } = await this.#admin.put(`/api/v2/license/${change}`, {
      headers: this.#token,
      form,
    });
    if (status !== 200) throw new Error(JSON.stringify(body));
  }

  get #token(): Record<string, string> {
    return { authorization: `Bearer ${readAdminToken(this.stateDir)}` };
  }

  async device(name = 'laptop'): Promise<TestDevice> {
    return new TestDevice(this, await keyPair(), name);
  }

  async post(
    document: string,
    headers: Record<string, string> = {},
    signal?: AbortSignal,
  ): Promise<LeaseReply> {
    return await postRequest(this.devices, document, headers, signal);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#opened.disposeAsync();
  }
}

/** Sends a signed request for a lease. */
export async function postRequest(
  issuer: HttpClient,
  document: string,
  headers: Record<string, string> = {},
  signal?: AbortSignal,
): Promise<LeaseReply> {
  const response = await issuer.post('/lease/v1', {
    headers: { 'content-type': 'application/jwt', ...headers },
    body: document,
    ...(signal !== undefined && { signal }),
  });
  return replyOf(response);
}

function agentTerms({ seats, hold, term, refresh, email }: Terms): object {
  const duration = (seconds: number | undefined): string | undefined =>
    seconds === undefined ? undefined : `${seconds}s`;
  return present({
    seats,
    hold: duration(hold),
    term: duration(term),
    refresh: duration(refresh),
    lease_email: email,
  });
}

function authorityTerms({ seats, hold, term, refresh, email }: Terms): object {
  return present({
    seats,
    lease_hold_s: hold,
    lease_term_s: term,
    lease_refresh_s: refresh,
    lease_email: email,
  });
}

function present(object: Readonly<Record<string, unknown>>): object {
  return Object.fromEntries(Object.entries(object).filter(([, value]) => value !== undefined));
}

function replyOf({ status, headers, body }: HttpResponse): LeaseReply {
  const data = (body as { data?: { lease?: string; notice?: string } }).data ?? {};
  const { sequence } = body as { sequence?: string };
  return {
    status,
    headers,
    lease: data.lease === undefined ? null : (claimsIn(data.lease) as LeaseClaims),
    notice: data.notice === undefined ? null : (claimsIn(data.notice) as NoticeClaims),
    sequence: sequence === undefined ? null : (claimsIn(sequence) as SequenceClaims),
    problem: status >= 400 ? (body as Record<string, unknown>) : {},
  };
}

/** The claims of a document, without a look at its signature. */
export function claimsIn(document: string): unknown {
  return JSON.parse(Buffer.from(document.split('.')[1] ?? '', 'base64url').toString());
}

/** A device with a key of its own, which numbers its requests. */
export class TestDevice {
  readonly #issuer: Pick<RunningIssuer, 'issuer' | 'post'>;
  readonly key: KeyPair;
  readonly name: string;
  seq = 0;
  uses: UseTotals = { recorded: 0, returned: 0 };

  constructor(issuer: Pick<RunningIssuer, 'issuer' | 'post'>, key: KeyPair, name: string) {
    this.#issuer = issuer;
    this.key = key;
    this.name = name;
  }

  claims(act: LeaseAct, changes: Partial<RequestClaims> = {}): RequestClaims {
    return {
      aud: this.#issuer.issuer,
      jti: Buffer.from(crypto.getRandomValues(new Uint8Array(16))).toString('base64url'),
      act,
      product_key: issuedProduct,
      license_key: issuedKey,
      seq: this.seq + 1,
      device_name: this.name,
      uses: this.uses,
      ...changes,
    };
  }

  /** The next request, signed. It is not sent. */
  async sign(act: LeaseAct, changes: Partial<RequestClaims> = {}): Promise<string> {
    return await signDocument('request', this.claims(act, changes), this.key);
  }

  async ask(
    act: LeaseAct,
    changes: Partial<RequestClaims> = {},
    headers: Record<string, string> = {},
  ): Promise<LeaseReply> {
    const reply = await this.#issuer.post(await this.sign(act, changes), headers);
    if (reply.status === 200 || refusalsThatCount.has(String(reply.problem['code']))) this.seq += 1;
    return reply;
  }
}

const refusalsThatCount = new Set(['no_seat_left', 'no_move_left', 'activation_blocked']);
