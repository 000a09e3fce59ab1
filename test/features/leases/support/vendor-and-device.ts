import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { loadConfiguration } from '../../../../src/config/load.ts';
import type { Configuration } from '../../../../src/config/configuration.ts';
import type { Daemon } from '../../../../src/daemon/daemon.ts';
import { AdvancingTime } from '../../../../src/daemon/system/clock.ts';
import { startDaemon } from '../../../../src/daemon/start.ts';
import { setUp } from '../../../../src/features/leases/issuer/signing-files.ts';
import { ownFiles } from './lease-builders.ts';
import { silent } from '../../../support/silent-log.ts';
import { temporaryDirectory } from '../../../support/temporary.ts';

export const productKey = 'RGsF';
const secret = 'lk_prod_secret-of-the-editor';
export const licenseKey = 'ABCDE-FGHJK-LMNPQ-RSTUV';

export type Answer = {
  status: number;
  headers: Headers;
  data: Record<string, unknown> | null;
  code: string | null;
};

async function call(url: string, init: RequestInit = {}): Promise<Answer> {
  const response = await fetch(url, { ...init, signal: AbortSignal.timeout(40_000) });
  const text = await response.text();
  const body = text === '' ? {} : (JSON.parse(text) as { data?: Record<string, unknown>; code?: string });
  return {
    status: response.status,
    headers: response.headers,
    data: body.data ?? null,
    code: body.code ?? null,
  };
}

function json(method: string, body: object, headers: Record<string, string> = {}): RequestInit {
  return { method, body: JSON.stringify(body), headers: { 'content-type': 'application/json', ...headers } };
}

export function configurationIn(directory: string, tree: object): Configuration {
  mkdirSync(directory, { recursive: true });
  const file = join(directory, 'config.json');
  writeFileSync(file, JSON.stringify(tree), { mode: 0o600 });
  const loaded = loadConfiguration({ file, environment: {} });
  if (!loaded.ok) throw new Error(JSON.stringify(loaded.errors));
  return loaded.configuration;
}

/** An authority of a vendor that issues leases, and the machines of customers, all in this process. */
export class VendorAndDevice implements AsyncDisposable {
  readonly #opened = new AsyncDisposableStack();
  readonly directory: string = this.#opened.use(temporaryDirectory()).path;
  readonly time = new AdvancingTime();
  #port = 0;
  #authority: Daemon | null = null;

  static async start(terms: object = {}): Promise<VendorAndDevice> {
    const shop = new VendorAndDevice();
    await shop.startAuthority();
    const product = { name: 'Editor', product_key: productKey, recurring: false, secret, ...terms };
    await shop.admin(json('POST', product), 'products');
    await shop.sell(licenseKey);
    const [directory, rootsDirectory] = [join(shop.vendorState, 'signing'), join(shop.directory, 'roots')];
    await setUp({ directory, rootsDirectory, issuer: shop.issuer }, Date.now(), ownFiles);
    shop.#opened.defer(() => shop.stopAuthority());
    return shop;
  }

  get vendorState(): string {
    return join(this.directory, 'vendor', 'state');
  }

  get issuer(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  async startAuthority(): Promise<void> {
    const configuration = configurationIn(join(this.directory, 'vendor'), {
      state_dir: this.vendorState,
      listen: { tcp: `127.0.0.1:${this.#port}`, socket: false },
    });
    this.#authority = await startDaemon(configuration, { log: silent, time: this.time });
    this.#port = Number(new URL(this.#authority.addresses.tcp ?? '').port);
  }

  async stopAuthority(): Promise<void> {
    await this.#authority?.stop();
    this.#authority = null;
  }

  async sell(key: string): Promise<void> {
    await this.admin(
      json('POST', { product_key: productKey, license_key: key, buyer_email: 'a@example.com' }),
      'purchases',
    );
  }

  async admin(init: RequestInit, path: string): Promise<Answer> {
    const token = readFileSync(join(this.vendorState, 'admin.token'), 'utf8').trim();
    const headers = { ...(init.headers as object), authorization: `Bearer ${token}` };
    const answer = await call(`${this.issuer}/admin/v1/${path}`, { ...init, headers });
    if (answer.status >= 300) throw new Error(`${path}: ${answer.code}`);
    return answer;
  }

  async #license(act: string, method: string): Promise<Answer> {
    const token = readFileSync(join(this.vendorState, 'admin.token'), 'utf8').trim();
    const query = method === 'GET' ? `?license_key=${licenseKey}` : '';
    const init = method === 'GET' ? {} : json(method, { license_key: licenseKey });
    const headers = { ...(init.headers as object | undefined), authorization: `Bearer ${token}` };
    return await call(`${this.issuer}/api/v2/license/${act}${query}`, { ...init, method, headers });
  }

  async uses(): Promise<unknown> {
    return (await this.#license('verify', 'GET')).data?.['uses'];
  }

  async setEnabled(isEnabled: boolean): Promise<void> {
    await this.#license(isEnabled ? 'enable' : 'disable', 'PUT');
  }

  /** Starts an agent of the vendor that issues leases, in front of the authority. Returns the settings of its holders. */
  async issuingAgent(terms: object = {}): Promise<object> {
    const home = join(this.directory, 'agent');
    const configuration = configurationIn(home, {
      state_dir: join(home, 'state'),
      listen: { tcp: '127.0.0.1:0', socket: false },
      upstream: { base_url: this.issuer },
      products: [{ key: productKey, secret, ...terms }],
    });
    const agent = await startDaemon(configuration, { log: silent, time: this.time });
    this.#opened.defer(() => agent.stop());
    const issuer = agent.addresses.tcp ?? '';
    const [directory, rootsDirectory] = [join(home, 'state', 'signing'), join(home, 'roots')];
    await setUp({ directory, rootsDirectory, issuer }, Date.now(), ownFiles);
    return { issuer, roots: [join(rootsDirectory, 'root-1.pub.jwk')] };
  }

  /** The machine of a customer. */
  async device(name = 'laptop', leases: object = {}): Promise<Device> {
    return await this.machine(name, leases).start();
  }

  /** A machine on which the holder does not run yet. */
  machine(name: string, leases: object = {}): Device {
    const device = new Device(this, join(this.directory, name), { device_name: name, ...leases });
    this.#opened.defer(() => device.stop());
    return device;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#opened.disposeAsync();
  }
}

export class Device {
  readonly #shop: VendorAndDevice;
  readonly #leases: object;
  readonly directory: string;
  #daemon: Daemon | null = null;

  constructor(shop: VendorAndDevice, directory: string, leases: object) {
    this.#shop = shop;
    this.directory = directory;
    this.#leases = leases;
  }

  get stateDir(): string {
    return join(this.directory, 'state');
  }

  async start(): Promise<this> {
    const { directory: home, issuer } = this.#shop;
    const configuration = configurationIn(this.directory, {
      state_dir: this.stateDir,
      listen: { tcp: '127.0.0.1:0', socket: false },
      products: [{ key: productKey }],
      leases: { issuer, roots: [join(home, 'roots', 'root-1.pub.jwk')], ...this.#leases },
    });
    this.#daemon = await startDaemon(configuration, { log: silent, time: this.#shop.time });
    return this;
  }

  async stop(): Promise<void> {
    await this.#daemon?.stop();
    this.#daemon = null;
  }

  /** Copies the state directory of another device, which does not run. */
  copyStateOf(other: Device): void {
    cpSync(other.stateDir, this.stateDir, { recursive: true });
  }

  async call(path: string, init: RequestInit = {}): Promise<Answer> {
    return await call(`${this.#daemon?.addresses.tcp ?? ''}${path}`, init);
  }

  async admin(path: string, init: RequestInit = {}): Promise<Answer> {
    const token = readFileSync(join(this.stateDir, 'admin.token'), 'utf8').trim();
    const headers = { ...(init.headers as object | undefined), authorization: `Bearer ${token}` };
    return await this.call(path, { ...init, headers });
  }

  /** Status, whether it is enabled, the uses, and the freshness; or the status and the code. */
  async verify(key = licenseKey): Promise<unknown[]> {
    const { status, data, code, headers } = await this.call(`/api/v2/license/verify?license_key=${key}`);
    if (data === null) return [status, code];
    return [status, data['enabled'], data['uses'], headers.get('latchkey-freshness')];
  }

  async use(key = licenseKey): Promise<unknown[]> {
    const { status, data, code } = await this.call(
      '/api/v2/license/usage',
      json('PUT', { license_key: key }),
    );
    return [status, data === null ? code : data['uses']];
  }

  async post(path: string, body: object): Promise<Answer> {
    return await this.call(path, json('POST', body));
  }

  async put(path: string, body: object): Promise<Answer> {
    return await this.call(path, json('PUT', body));
  }

  async delete(path: string): Promise<Answer> {
    return await this.call(path, { method: 'DELETE' });
  }
}
