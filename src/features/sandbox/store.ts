import { mkdirSync } from 'node:fs';
import type { Socket } from 'node:net';
import { join } from 'node:path';
import { hash } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  epochHeader,
  instanceHeader,
  type DialectName,
  credentialHeaders,
} from '../../domain/header-names.ts';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { Tree } from '../../config/file/tree.ts';
import type { Log } from '../../service/ports.ts';
import { replaceFile } from '../../store/sqlite/files/private-file.ts';
import { stateFiles } from '../../store/sqlite/files/state-directory.ts';
import type { Daemon } from '../../daemon/daemon.ts';
import type { AdvancingTime } from '../../daemon/system/clock.ts';
import { adminClient, LocalClient, readAdminToken } from '../../daemon/local-client.ts';
import { dataOf, RestartableDaemon, startServer } from './daemon.ts';
import { sendRefunds } from './store-events.ts';
import { systemRandom } from '../../daemon/system/machine.ts';

/** A license key that the store has sold. Omitted properties are those of a new license. */
export interface SandboxLicense {
  readonly licenseKey: string;
  /** Default: the product of the sandbox. The agent does not know any other product. */
  readonly productKey?: string;
  /** Default: `buyer@example.com`. */
  readonly buyerEmail?: string;
  readonly uses?: number;
  readonly enabled?: boolean;
  /** Day of the purchase. */
  readonly date?: Date;
}

/** A license in the store. */
export interface SandboxRecord {
  readonly licenseKey: string;
  readonly uses: number;
  readonly enabled: boolean;
}

/** The product of a sandbox, and the credentials of software and agents. */
export interface SandboxCredentials {
  readonly productKey: string;
  readonly productSecret: string;
  readonly apiKey: string;
}

/** The credentials and the license key of every sandbox, unless others are given: those that README.md shows. */
export const sampleCredentials: SandboxCredentials = {
  productKey: 'RGsF',
  productSecret: 'the-product-secret',
  apiKey: 'api-key-of-the-sandbox',
};
export const sampleLicenseKey = 'WTKP4-66NL5-HMKQW-GFSCZ';

/** What the store and the agent of a sandbox share. */
export type SandboxParts = { directory: string; dialect: DialectName; time: AdvancingTime; log: Log };

type StoreParts = SandboxParts & {
  /** Default: a free port. */
  port?: number;
  /** Default: `sampleCredentials`. */
  credentials?: SandboxCredentials;
  /** The directory has the store of an earlier sandbox, with these credentials. */
  isKept?: boolean;
  /** The owner may change them at any time. */
  faults?: SandboxFaults;
  /** Further settings, as in a configuration file. */
  configuration?: Tree;
};

/** The store's API. It can go away, be slow, and lose its responses. */
export class SandboxStore {
  /** Called when the store is back after it was away. */
  onReturn: () => Promise<void> = async () => undefined;
  /** The agent that gets an event about each refund; null: none. */
  eventsTo: string | null = null;
  readonly #parts: StoreParts;
  readonly #faults: SandboxFaults;
  readonly #products: Set<string> = new Set();
  readonly #daemon: RestartableDaemon;
  readonly #holderSockets: Set<Socket> = new Set();
  readonly #sample: SandboxCredentials;
  /** Null before the first start. */
  #credentials: SandboxCredentials | null = null;

  constructor(parts: StoreParts) {
    this.#parts = parts;
    this.#daemon = new RestartableDaemon(parts.port ?? 0);
    this.#sample = parts.credentials ?? sampleCredentials;
    if (parts.isKept === true) {
      this.#credentials = this.#sample;
      this.#products.add(this.#sample.productKey);
    }
    this.#faults = parts.faults ?? { ...noFaults };
  }

  /** The base URL. It stays the same after the store was away. */
  get url(): string {
    return this.#daemon.url;
  }

  get dialect(): DialectName {
    return this.#parts.dialect;
  }

  /** Throws before the first start. */
  get credentials(): SandboxCredentials {
    if (this.#credentials === null) throw new Error('The store of the sandbox was never started.');
    return this.#credentials;
  }

  get adminToken(): string {
    return readAdminToken(this.#parts.directory);
  }

  /** Stops listening: connections are refused. */
  async goAway(): Promise<void> {
    await this.#daemon.stop();
  }

  /** Listens again, and the agent sends the changes that wait. */
  async comeBack(): Promise<void> {
    await this.#daemon.start(
      (tcp) => this.#start(tcp),
      async () => {
        if (this.#credentials === null) this.#credentials = await this.#createProduct();
        else await this.onReturn();
      },
    );
  }

  async #start(tcp: string): Promise<Daemon> {
    const { directory, dialect, configuration } = this.#parts;
    if (this.#credentials === null) writeApiKey(directory, this.#sample.apiKey);
    const tree = { ...configuration, state_dir: directory, listen: { tcp, socket: false, dialect } };
    return await startServer(tree, this.#parts, (server) => {
      misbehave(server, this.#faults);
      this.#watchHolders(server);
      sendRefunds(server, () => this.#eventReceiver());
    });
  }

  #eventReceiver(): { url: string; apiKey: string } | null {
    return this.eventsTo === null ? null : { url: this.eventsTo, apiKey: this.credentials.apiKey };
  }

  /** Remembers the connections on which holders wait, so that they can be cut. */
  #watchHolders(server: FastifyInstance): void {
    server.addHook('onRequest', (request, _, done) => {
      if (request.routeOptions.url?.startsWith('/lease/') !== true) return done();
      const { socket } = request.raw;
      if (this.#faults.holdersCut === true) {
        socket.destroy();
        return;
      }
      if (!this.#holderSockets.has(socket)) socket.once('close', () => this.#holderSockets.delete(socket));
      this.#holderSockets.add(socket);
      done();
    });
  }

  async #createProduct(): Promise<SandboxCredentials> {
    const { productKey, productSecret } = this.#sample;
    const product = { name: 'Sample product', product_key: productKey, secret: productSecret };
    await this.#post('/admin/v1/products', product);
    this.#products.add(productKey);
    return this.#sample;
  }

  /** Each response comes this much later. */
  setLatency(ms: number): void {
    this.#faults.latencyMs = ms;
  }

  /** Carries out this share of requests, from 0 to 1, but does not answer them. */
  loseResponses(share: number): void {
    this.#faults.lostReplies = share;
  }

  /** Answers 503 to this share of requests, from 0 to 1. */
  refuse(share: number): void {
    this.#faults.errorRate = share;
  }

  /** Sells license keys, each with a purchase of its own. */
  async sell(licenses: readonly SandboxLicense[]): Promise<void> {
    for (const license of licenses) await this.sellOne(license);
  }

  /** Sells one license key, by default a new one, and returns it. */
  async sellOne({ licenseKey, productKey, ...license }: Partial<SandboxLicense> = {}): Promise<string> {
    const purchase = await this.#post('/admin/v1/purchases', {
      product_key: await this.#productOf(productKey),
      buyer_email: license.buyerEmail ?? 'buyer@example.com',
      license_key: licenseKey,
      uses: license.uses,
      enabled: license.enabled,
      date: license.date?.toISOString(),
    });
    return String((purchase['license'] as Record<string, unknown>)['license_key']);
  }

  /** The license in the store; null if the store does not know the key. Rejects while the store is away. */
  async license(licenseKey: string): Promise<SandboxRecord | null> {
    const license = await this.#find(licenseKey);
    if (license === undefined) return null;
    return {
      licenseKey: String(license['license_key']),
      uses: Number(license['uses']),
      enabled: license['enabled'] === true,
    };
  }

  /** Disables a license key; `enable` undoes it. */
  async disable(licenseKey: string): Promise<void> {
    dataOf(await this.#admin().putForm('/api/v2/license/disable', { license_key: licenseKey }));
  }

  async enable(licenseKey: string): Promise<void> {
    dataOf(await this.#admin().putForm('/api/v2/license/enable', { license_key: licenseKey }));
  }

  /** Cuts the network between the store and the holders of leases, or restores it. */
  cutHolders(isCut: boolean): void {
    this.#faults.holdersCut = isCut;
    if (isCut) for (const socket of this.#holderSockets) socket.destroy();
  }

  /** Refunds the purchase of a key, which disables the key for good. */
  async refund(licenseKey: string): Promise<void> {
    const license = await this.#find(licenseKey);
    if (license === undefined) throw new Error('The store sold no such license key.');
    await this.#post(`/admin/v1/purchases/${String(license['purchase_id'])}/refund`, {});
  }

  /** Creates a coupon (specification 4.1: `{ coupon_type: 'multi', code: 'MAY', percent_off: 20 }`). */
  async createCoupon(coupon: Readonly<Record<string, unknown>>): Promise<void> {
    const client = new LocalClient(this.url, { [credentialHeaders.apiKey]: this.credentials.apiKey });
    dataOf(await client.postJson('/api/v2/coupons', coupon));
  }

  async #find(licenseKey: string): Promise<Record<string, unknown> | undefined> {
    // An empty filter would find every license.
    if (licenseKey.trim() === '') return undefined;
    const query = new URLSearchParams({ license_key: licenseKey }).toString();
    const data = dataOf(await this.#admin().get(`/admin/v1/licenses?${query}`));
    const [license] = (data['licenses'] ?? []) as Record<string, unknown>[];
    return license;
  }

  async #productOf(productKey: string = this.credentials.productKey): Promise<string> {
    if (!this.#products.has(productKey)) {
      await this.#post('/admin/v1/products', { name: productKey, product_key: productKey });
      this.#products.add(productKey);
    }
    return productKey;
  }

  async #post(path: string, value: object): Promise<Record<string, unknown>> {
    return dataOf(await this.#admin().postJson(path, value));
  }

  #admin(): LocalClient {
    return adminClient(this.#parts.directory, this.url);
  }
}

/** Writes the key of the first account, which the first start of a store reads. */
function writeApiKey(directory: string, apiKey: string): void {
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  replaceFile(join(directory, stateFiles.apiKey), `${apiKey}\n`);
}

/** How a sandbox misbehaves on purpose. Shares are from 0 to 1. */
export type SandboxFaults = {
  /** It does not name itself, so that an agent takes it for a store that is no Latchkey. */
  isPlain?: boolean;
  latencyMs: number;
  errorRate: number;
  lostReplies: number;
  /** With the same seed, the same requests fail; null: other requests each time. */
  seed: string | null;
  /** Whether requests of holders of leases fail. */
  holdersCut?: boolean;
};

export const noFaults: Readonly<SandboxFaults> = { latencyMs: 0, errorRate: 0, lostReplies: 0, seed: null };

/** Delays, refuses or leaves unanswered the calls of the specification, as `faults` says at the time of each call. */
function misbehave(server: FastifyInstance, faults: SandboxFaults): void {
  const fraction = drawsFrom(faults.seed);
  server.addHook('onRequest', async (request, reply) => {
    if (!isOfSpecification(request)) return;
    if (faults.latencyMs > 0) await sleep(faults.latencyMs, undefined, { ref: false });
    if (fraction() < faults.errorRate) await reply.code(503).send({ error: 'an error on purpose' });
  });
  server.addHook('onSend', async (request, reply) => {
    if (faults.isPlain === true) reply.removeHeader(epochHeader).removeHeader(instanceHeader);
    // The work is done, but the response never arrives.
    if (isOfSpecification(request) && fraction() < faults.lostReplies) request.raw.socket.destroy();
  });
}

/** Looks at the route, because a path can be written in several ways. */
function isOfSpecification({ routeOptions }: FastifyRequest): boolean {
  return routeOptions.url?.startsWith('/api/') === true;
}

function drawsFrom(seed: string | null): () => number {
  if (seed === null) return () => systemRandom.fraction();
  let drawn = 0;
  return () => {
    drawn += 1;
    return hash('sha256', `${seed} ${drawn}`, 'buffer').readUInt32LE() / 2 ** 32;
  };
}
