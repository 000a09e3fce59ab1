import { credentialHeaders } from '../../domain/header-names.ts';
import type { Daemon } from '../daemon.ts';
import { LocalClient } from '../trial/local-client.ts';
import { misbehave, type SandboxFaults } from '../trial/sandbox-faults.ts';
import { adminOf, dataOf, start } from './sandbox-daemon.ts';
import type { SandboxParts } from './sandbox-parts.ts';
import { Turns } from './turns.ts';

/** A license key that the store has sold; what is left out is as of a new one. */
export interface SandboxLicense {
  readonly licenseKey: string;
  /** Default: the product of the sandbox; another one is unknown to the agent. */
  readonly productKey?: string;
  /** Default: `buyer@example.com`. */
  readonly buyerEmail?: string;
  readonly uses?: number;
  readonly enabled?: boolean;
  /** Day of the purchase. */
  readonly date?: Date;
}

/** A license as the store has it. */
export interface SandboxRecord {
  readonly licenseKey: string;
  readonly uses: number;
  readonly enabled: boolean;
}

/** The store's API, which can go away, be slow, and lose its answers. */
export class SandboxStore {
  /** Called when it is back after it was away. */
  onReturn: () => Promise<void> = async () => undefined;
  readonly #parts: SandboxParts;
  readonly #faults: SandboxFaults = { latencyMs: 0, errorRate: 0, lostReplies: 0, seed: null };
  readonly #products: Set<string> = new Set();
  readonly #turns = new Turns();
  #account = '';
  #daemon: Daemon | null = null;
  #port = 0;

  constructor(parts: SandboxParts) {
    this.#parts = parts;
  }

  /** Its base URL; the same one after it was away. */
  get url(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  /** Nothing listens any more: whoever connects is refused. */
  async goAway(): Promise<void> {
    await this.#turns.take(async () => {
      const daemon = this.#daemon;
      this.#daemon = null;
      await daemon?.stop();
    });
  }

  /** It listens again, and the agent delivers what waits. */
  async comeBack(): Promise<void> {
    await this.#turns.take(() => this.#start());
  }

  async #start(): Promise<void> {
    if (this.#daemon !== null) return;
    const { directory, dialect, time } = this.#parts;
    const isFirst = this.#port === 0;
    const tree = { state_dir: directory, listen: { tcp: `127.0.0.1:${this.#port}`, socket: false, dialect } };
    this.#daemon = await start(tree, time, (server) => misbehave(server, this.#faults));
    this.#port = Number(new URL(this.#daemon.addresses.tcp ?? '').port);
    if (isFirst) await this.#openShop();
    else await this.onReturn();
  }

  /** Each answer comes so much later. */
  setLatency(ms: number): void {
    this.#faults.latencyMs = ms;
  }

  /** Does what it is asked for, but answers nothing, in this share of requests, from 0 to 1. */
  loseAnswers(share: number): void {
    this.#faults.lostReplies = share;
  }

  /** Answers 503 in this share of requests, from 0 to 1. */
  refuse(share: number): void {
    this.#faults.errorRate = share;
  }

  /** Sells license keys; each is a purchase of its own. */
  async sell(licenses: readonly SandboxLicense[]): Promise<void> {
    for (const { licenseKey, productKey, buyerEmail, uses, enabled, date } of licenses) {
      await this.#post('/admin/v1/purchases', {
        product_key: await this.#productOf(productKey),
        buyer_email: buyerEmail ?? 'buyer@example.com',
        license_key: licenseKey,
        uses,
        enabled,
        date: date?.toISOString(),
      });
    }
  }

  /** The license as the store has it; null when it knows none such. Rejects while it is away. */
  async license(licenseKey: string): Promise<SandboxRecord | null> {
    const found = await this.#find(licenseKey);
    if (found === undefined) return null;
    return {
      licenseKey: String(found['license_key']),
      uses: Number(found['uses']),
      enabled: found['enabled'] === true,
    };
  }

  /** Refunds the purchase of a key, which disables it for good. */
  async refund(licenseKey: string): Promise<void> {
    const license = await this.#find(licenseKey);
    if (license === undefined) throw new Error('The store sold no such license key.');
    await this.#post(`/admin/v1/purchases/${String(license['purchase_id'])}/refund`, {});
  }

  /** Makes a coupon (specification 4.1: `{ coupon_type: 'multi', code: 'MAY', percent_off: 20 }`). */
  async createCoupon(coupon: Readonly<Record<string, unknown>>): Promise<void> {
    const { apiKey } = this.#parts.credentials;
    const client = new LocalClient(this.url, { [credentialHeaders.apiKey]: apiKey });
    dataOf(await client.postJson('/api/v2/coupons', coupon));
  }

  async #find(licenseKey: string): Promise<Record<string, unknown> | undefined> {
    // A filter without a value is none: it finds whatever was sold.
    if (licenseKey.trim() === '') return undefined;
    const query = new URLSearchParams({ license_key: licenseKey }).toString();
    const found = dataOf(await this.#admin().get(`/admin/v1/licenses?${query}`));
    const [license] = (found['licenses'] ?? []) as Record<string, unknown>[];
    return license;
  }

  async #openShop(): Promise<void> {
    const { productKey, productSecret, apiKey } = this.#parts.credentials;
    const account = await this.#post('/admin/v1/accounts', { name: 'Sandbox', api_key: apiKey });
    this.#account = String(account['account_id']);
    await this.#addProduct(productKey, productSecret);
  }

  async #productOf(productKey: string = this.#parts.credentials.productKey): Promise<string> {
    if (!this.#products.has(productKey)) await this.#addProduct(productKey);
    return productKey;
  }

  async #addProduct(productKey: string, secret?: string): Promise<void> {
    const product = { name: productKey, account_id: this.#account, product_key: productKey, secret };
    await this.#post('/admin/v1/products', product);
    this.#products.add(productKey);
  }

  async #post(path: string, value: object): Promise<Record<string, unknown>> {
    return dataOf(await this.#admin().postJson(path, value));
  }

  #admin(): LocalClient {
    return adminOf(this.#parts.directory, this.url);
  }
}
