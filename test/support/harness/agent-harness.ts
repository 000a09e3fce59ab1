import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { vi } from 'vitest';
import { startDaemonProcess, type DaemonProcess } from '../process/daemon-process.ts';
import { startFaultProxy, type FaultProxy } from '../network/fault-proxy.ts';
import {
  startPlainUpstream,
  type LicenseSeed,
  type PlainUpstream,
  type PlainUpstreamOptions,
} from './plain-upstream.ts';
import { httpClient, type HttpResponse, type HttpClient, type RequestOptions } from '../network/raw-http.ts';
import { temporaryDirectory, type TemporaryDirectory } from '../temporary.ts';
import { longPatienceMs, patience, patienceMs } from '../patience.ts';

export const productKey = 'product';
export const secret = 'secret-of-the-product';
export const apiKey = 'api-key';

/** The headers that existing software sends: both credentials at once. */
export const credentials: Readonly<Record<string, string>> = {
  'service-api-key': apiKey,
  'product-secret-key': secret,
};

export type LicenseChangeKind = 'usage' | 'decrease' | 'disable' | 'enable';

/** Parts of a configuration, which are merged into the configuration of the harness. */
export interface Configuration {
  readonly listen?: object;
  readonly upstream?: object;
  readonly products?: readonly object[];
  readonly freshness?: object;
  readonly sync?: object;
  readonly limits?: object;
  readonly webhooks?: object;
}

export interface HarnessOptions {
  /** A string is an enabled license without uses. */
  readonly licenses?: readonly (string | (Partial<LicenseSeed> & { licenseKey: string }))[];
  readonly upstream?: Partial<PlainUpstreamOptions>;
  readonly configuration?: Configuration;
}

/** One operation as the outbox lists it. */
export interface ListedOperation {
  readonly id: string;
  readonly kind: string;
  readonly license_key: string | null;
  readonly state: string;
  readonly held: boolean;
  readonly attempts: number;
  readonly last_error: string | null;
}

export interface Statusz {
  readonly instance: string;
  readonly uptime_s: number;
  readonly preload: { done: number; failed: number; left: number };
  readonly upstream: {
    state: string;
    since: string;
    breaker: string;
    last_success_at: string | null;
    last_error: string | null;
    last_error_at: string | null;
    recovered_at: string | null;
    retry_after: string | null;
    paused_products: readonly string[];
    coupons_paused: boolean;
  };
  readonly outbox: Record<
    'pending' | 'in_flight' | 'uncertain' | 'held' | 'inferred' | 'conflicted' | 'dead' | 'delivered',
    number
  > & { oldest_age_s: number | null };
  readonly records: Record<'fresh' | 'stale' | 'grace' | 'expired' | 'disabled', number>;
  readonly totals: { verifies: number; uses: number };
  readonly clock: { now: string; suspect: boolean; store_ahead_s: number | null; high_water: string };
}

/** An agent process and a client for it. Dispose kills the process, as a power cut does. */
export class Agent implements AsyncDisposable {
  readonly process: DaemonProcess;
  readonly client: HttpClient;
  /** The headers with the admin token. */
  readonly admin: Readonly<Record<string, string>>;

  constructor(running: DaemonProcess, directory: string) {
    const token = readFileSync(join(directory, 'state', 'admin.token'), 'utf8').trim();
    this.process = running;
    this.client = httpClient(running.socket === null ? { tcp: running.tcp } : { socket: running.socket });
    this.admin = { authorization: `Bearer ${token}` };
  }

  verify(licenseKey: string, headers: RequestOptions['headers'] = {}): Promise<HttpResponse> {
    const query = new URLSearchParams({ license_key: licenseKey });
    return this.client.get(`/api/v2/license/verify?${query.toString()}`, {
      headers: { ...credentials, ...headers },
    });
  }

  /** Verifies keys until the upstream has confirmed each of them. */
  async learn(licenseKeys: readonly string[]): Promise<void> {
    const isKnown = async (key: string): Promise<boolean> => (await this.verify(key)).status === 200;
    await Promise.all(licenseKeys.map((key) => eventually(() => isKnown(key), longPatienceMs)));
  }

  change(
    kind: LicenseChangeKind,
    licenseKey: string,
    headers: RequestOptions['headers'] = {},
    client: HttpClient = this.client,
  ): Promise<HttpResponse> {
    const form = { license_key: licenseKey };
    return client.put(`/api/v2/license/${kind}`, { headers: { ...credentials, ...headers }, form });
  }

  createCoupon(
    form: Record<string, string> & { code: string },
    headers: RequestOptions['headers'] = {},
  ): Promise<HttpResponse> {
    const whole = { coupon_type: 'multi', percent_off: '20', ...form };
    return this.client.post('/api/v2/coupons', { headers: { ...credentials, ...headers }, form: whole });
  }

  /** Sends a request with the admin token. */
  async ask(path: string, method: 'get' | 'post' = 'get'): Promise<unknown> {
    const answer = await this.client[method](path, { headers: this.admin });
    if (answer.status !== 200) throw new Error(`${path}: ${answer.status}`);
    return answer.body;
  }

  async status(): Promise<Statusz> {
    return (await this.ask('/statusz')) as Statusz;
  }

  /** The operations in a state. Without a state, all that are not finished. */
  async operations(state?: string): Promise<readonly ListedOperation[]> {
    const query = state === undefined ? '' : `&state=${state}`;
    const body = await this.ask(`/admin/v1/outbox?limit=100${query}`);
    return (body as { data: { operations: ListedOperation[] } }).data.operations;
  }

  /** Waits until the outbox contains only held operations, which wait for a person. */
  async atRest(): Promise<void> {
    await eventually(async () => {
      const { pending, in_flight: inFlight, uncertain, held } = (await this.status()).outbox;
      return pending + inFlight + uncertain - held === 0;
    }, longPatienceMs);
  }

  /**
   * Decides held enables as a person does: resends them, or drops those that a later change follows. Enables
   * with a lost response are held because no read shows whether they arrived and were revoked later.
   */
  async decideHeldEnables(isWanted: (licenseKey: string) => boolean = () => true): Promise<void> {
    for (;;) {
      await this.atRest();
      const held = (await this.operations('uncertain')).filter((operation) => operation.held);
      if (held.length === 0) return;
      if (held.some(({ kind }) => kind !== 'enable')) throw new Error(`held: ${JSON.stringify(held)}`);
      for (const { id, license_key: key } of held) {
        const decision = isWanted(key ?? '') ? 'retry' : 'drop';
        await this.ask(`/admin/v1/outbox/${id}/${decision}`, 'post');
      }
    }
  }

  async kill(): Promise<void> {
    await this[Symbol.asyncDispose]();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.process.kill();
    await this.client[Symbol.asyncDispose]();
  }
}

/** An upstream with a ledger, a network in front of it that can fail, and a state directory for an agent. */
export class AgentHarness implements AsyncDisposable {
  readonly upstream: PlainUpstream;
  readonly proxy: FaultProxy;
  readonly #home: TemporaryDirectory;
  #configuration: Configuration;
  #agent: Agent | null = null;

  /** Use `startHarness`. */
  constructor(parts: {
    home: TemporaryDirectory;
    upstream: PlainUpstream;
    proxy: FaultProxy;
    configuration: Configuration;
  }) {
    this.upstream = parts.upstream;
    this.proxy = parts.proxy;
    this.#home = parts.home;
    this.#configuration = parts.configuration;
  }

  get directory(): string {
    return this.#home.path;
  }

  get configuration(): object {
    return laidOver(defaultConfiguration(this.proxy.url), this.#configuration);
  }

  /** The running agent. Throws if there is none. */
  get agent(): Agent {
    if (this.#agent === null) throw new Error('no agent runs in this harness');
    return this.#agent;
  }

  /** Starts the agent. Kills the running agent first. */
  async startAgent(changes: Configuration = {}, environment: Record<string, string> = {}): Promise<Agent> {
    await this.#agent?.kill();
    this.#agent = null;
    this.#configuration = laidOver(this.#configuration, changes);
    const running = await startDaemonProcess(this.directory, this.configuration, environment);
    this.#agent = new Agent(running, this.directory);
    return this.#agent;
  }

  /** Changes the configuration of the running agent, which reloads it on SIGHUP. */
  async reconfigure(changes: Configuration): Promise<void> {
    this.#configuration = laidOver(this.#configuration, changes);
    const whole = { state_dir: join(this.directory, 'state'), ...this.configuration };
    writeFileSync(join(this.directory, 'config.yaml'), JSON.stringify(whole));
    const { process: running } = this.agent;
    const readings = (): number =>
      running.lines.filter(({ msg }) => msg === 'the configuration was reloaded').length;
    const before = readings();
    running.signal('SIGHUP');
    await eventually(() => readings() > before);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#agent?.kill();
    await this.proxy[Symbol.asyncDispose]();
    await this.upstream[Symbol.asyncDispose]();
    await this.#home[Symbol.asyncDispose]();
  }
}

/** Sets up an upstream, the network and a directory; no agent runs yet. */
export async function startHarness(options: HarnessOptions = {}): Promise<AgentHarness> {
  const { licenses = [], configuration = {} } = options;
  const buyer = { productKey, buyerEmail: 'buyer@example.com' };
  const upstream = await startPlainUpstream({
    apiKey,
    products: [{ productKey, secret }],
    licenses: licenses.map((given) => ({
      ...buyer,
      ...(typeof given === 'string' ? { licenseKey: given } : given),
    })),
    ...options.upstream,
  });
  const proxy = await startFaultProxy(upstream.port);
  return new AgentHarness({ home: temporaryDirectory(), upstream, proxy, configuration });
}

/** Sets up a harness with an agent that knows all its licenses. Closes everything if that fails. */
export async function startAgentHarness(options: HarnessOptions = {}): Promise<AgentHarness> {
  await using setting = new AsyncDisposableStack();
  const harness = setting.use(await startHarness(options));
  const agent = await harness.startAgent();
  await agent.learn(
    (options.licenses ?? []).map((given) => (typeof given === 'string' ? given : given.licenseKey)),
  );
  setting.move();
  return harness;
}

/**
 * For an agent whose upstream leaves requests without a response: the timeout fits into a test, but a busy
 * machine can still answer other requests in time.
 */
export const hasty: Configuration = { upstream: { timeout: '1s' } };
/** Longer than a hasty agent waits, in ms. */
export const tooLateMs = 1_400;

/**
 * Intervals that let a test survive outages within seconds. The timeout for responses is long, because a slow
 * machine must not look like a failing upstream.
 */
function defaultConfiguration(upstreamUrl: string): Configuration {
  return {
    listen: { tcp: '127.0.0.1:0' },
    upstream: { base_url: upstreamUrl, api_key: apiKey, timeout: '10s', probe: '200ms' },
    products: [{ key: productKey, secret }],
    sync: {
      rate: 1000,
      concurrency: 8,
      reconcile_after: '350ms',
      writers: 'single',
      backoff: { first: '20ms', max: '200ms' },
      breaker: { failures: 5, open: '200ms' },
    },
  };
}

function laidOver(below: Configuration, above: Configuration): Configuration {
  const isSection = (value: unknown): value is object => typeof value === 'object' && !Array.isArray(value);
  const merged: Record<string, unknown> = { ...below };
  for (const [name, value] of Object.entries(above)) {
    const under = merged[name];
    merged[name] = isSection(under) && isSection(value) ? { ...under, ...value } : value;
  }
  return merged;
}

/** Waits until `holds` returns true, polling every few milliseconds. */
export async function eventually(
  holds: () => boolean | Promise<boolean>,
  timeoutMs: number = patienceMs,
): Promise<void> {
  const look = async (): Promise<void> => {
    if (!(await holds()))
      throw new Error(`the condition did not hold within ${timeoutMs} ms: ${String(holds)}`);
  };
  await vi.waitFor(look, { ...patience, timeout: timeoutMs });
}

/** The stable code of a problem response. */
export function codeOf({ body }: HttpResponse): unknown {
  return (body as { code?: unknown }).code;
}

/** The object in `data` of a response. */
export function dataOf({ body }: HttpResponse): Record<string, unknown> {
  return (body as { data: Record<string, unknown> }).data;
}
