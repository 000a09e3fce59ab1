import { join } from 'node:path';
import { readFileSync } from 'node:fs';
import { startDaemonProcess, type DaemonProcess } from '../process/daemon-process.ts';
import { storeOfProject } from '../app/engine.ts';
import { freePort } from '../network/free-port.ts';
import { httpClient, type HttpClient } from '../network/raw-http.ts';
import { longPatienceMs } from '../patience.ts';
import { temporaryDirectory } from '../temporary.ts';
import { Agent, eventually, productKey, secret } from './agent-harness.ts';

type Upstream = { state: string; protocol: string };

/** An authority as a process. It keeps its port, so it can be killed and started again. */
export class AuthorityProcess implements AsyncDisposable {
  readonly directory: string;
  readonly url: string;
  readonly http: HttpClient;
  readonly #configuration: object;
  readonly #purchases = new Map<string, string>();
  #process: DaemonProcess | null = null;

  constructor(directory: string, port: number, configuration: object) {
    this.directory = directory;
    this.url = `http://127.0.0.1:${port}`;
    this.http = httpClient({ tcp: this.url });
    this.#configuration = { listen: { tcp: `127.0.0.1:${port}`, socket: false }, ...configuration };
  }

  get process(): DaemonProcess {
    if (this.#process === null) throw new Error('the authority does not run');
    return this.#process;
  }

  async start(environment: Record<string, string> = {}): Promise<void> {
    this.#process = await startDaemonProcess(this.directory, this.#configuration, environment);
  }

  /** Ends it as a power cut does. */
  async kill(): Promise<void> {
    await this.#process?.kill();
    this.#process = null;
  }

  async stop(): Promise<void> {
    this.process.signal('SIGTERM');
    await this.process.ended;
    this.#process = null;
  }

  /** The headers with the admin token. */
  get admin(): Readonly<Record<string, string>> {
    const token = readFileSync(join(this.directory, 'state', 'admin.token'), 'utf8').trim();
    return { authorization: `Bearer ${token}` };
  }

  get apiKey(): string {
    return readFileSync(join(this.directory, 'state', 'api.key'), 'utf8').trim();
  }

  /** Returns the object in the response. */
  async send(path: string, json: object): Promise<Record<string, unknown>> {
    const { status, body } = await this.http.post(path, { headers: this.admin, json });
    if (status !== 200 && status !== 201) throw new Error(`${path}: ${status}`);
    return (body as { data: Record<string, unknown> }).data;
  }

  /** Adds the product of all agents, and a license with each key. */
  async sell(licenseKeys: readonly string[]): Promise<void> {
    await this.send('/admin/v1/products', { name: 'Product', product_key: productKey, secret });
    for (const licenseKey of licenseKeys) {
      const sale = { product_key: productKey, buyer_email: 'buyer@example.com', license_key: licenseKey };
      const { purchase_id: purchase } = await this.send('/admin/v1/purchases', sale);
      this.#purchases.set(licenseKey, String(purchase));
    }
  }

  async refund(licenseKey: string): Promise<void> {
    await this.send(`/admin/v1/purchases/${this.#purchases.get(licenseKey)}/refund`, {});
  }

  async license(licenseKey: string): Promise<{ uses: number; enabled: boolean }> {
    const path = `/api/v2/license/verify?license_key=${encodeURIComponent(licenseKey)}`;
    const { body } = await this.http.get(path, { headers: { 'product-secret-key': secret } });
    return (body as { data: { uses: number; enabled: boolean } }).data;
  }

  async usesOf(licenseKeys: readonly string[]): Promise<number[]> {
    return await Promise.all(licenseKeys.map(async (key) => (await this.license(key)).uses));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill();
    await this.http[Symbol.asyncDispose]();
  }
}

/** An authority and its agents, each in a process with its own directory. */
export interface AuthorityAndAgents extends AsyncDisposable {
  readonly authority: AuthorityProcess;
  readonly agents: readonly AgentProcess[];
}

/** An agent that can be killed and started again. */
export class AgentProcess implements AsyncDisposable {
  readonly directory: string;
  readonly #configuration: object;
  #agent: Agent | null = null;

  constructor(directory: string, configuration: object) {
    this.directory = directory;
    this.#configuration = configuration;
  }

  get agent(): Agent {
    if (this.#agent === null) throw new Error('the agent does not run');
    return this.#agent;
  }

  async start(environment: Record<string, string> = {}): Promise<Agent> {
    const running = await startDaemonProcess(this.directory, this.#configuration, environment);
    this.#agent = new Agent(running, this.directory);
    return this.#agent;
  }

  async kill(): Promise<void> {
    await this.#agent?.kill();
    this.#agent = null;
  }

  /** Another agent with the same configuration, in another directory. */
  in(directory: string): AgentProcess {
    return new AgentProcess(directory, this.#configuration);
  }

  /** Records uses one after the other. */
  async use(licenseKeys: readonly string[]): Promise<void> {
    for (const licenseKey of licenseKeys) {
      const { status } = await this.agent.change('usage', licenseKey);
      if (status !== 200) throw new Error(`a use of ${licenseKey} was answered ${status}`);
    }
  }

  async usesOf(licenseKeys: readonly string[]): Promise<number[]> {
    const answers = await Promise.all(licenseKeys.map((key) => this.agent.verify(key)));
    return answers.map(({ body }) => (body as { data?: { uses: number } }).data?.uses ?? -1);
  }

  /** How many operations are in the states that are not zero. */
  async outbox(): Promise<Record<string, number>> {
    const { oldest_age_s: _, ...counts } = (await this.agent.status()).outbox;
    return Object.fromEntries(Object.entries(counts).filter(([, count]) => count > 0));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill();
  }
}

/** Waits until the agent knows that its upstream is a Latchkey. */
export async function untilLatchkeyKnown(agent: Agent): Promise<void> {
  await eventually(async () => {
    const { upstream } = (await agent.status()) as unknown as { upstream: Upstream };
    return upstream.state === 'up' && upstream.protocol === 'latchkey';
  });
}

export type FleetOptions = {
  agents?: number;
  licenseKeys: readonly string[];
  /** The address that agents have, if there is something between them and the authority. */
  via?: (url: string) => Promise<{ url: string } & AsyncDisposable>;
  sync?: object;
  /** Whether the agents have the API key, for coupons. */
  hasApiKey?: boolean;
  /** More settings of the authority and its agents. */
  settings?: object;
};

export function agentConfiguration(baseUrl: string, sync: object = {}, apiKey: object = {}): object {
  return {
    listen: { tcp: '127.0.0.1:0' },
    upstream: { base_url: baseUrl, timeout: '10s', probe: '200ms', ...apiKey },
    products: [{ key: productKey, secret }],
    sync: {
      rate: 1000,
      reconcile_after: '350ms',
      backoff: { first: '20ms', max: '200ms' },
      breaker: { failures: 5, open: '200ms' },
      ...sync,
    },
  };
}

/** Starts an authority and agents that know all its licenses and deliver their changes to it. */
export async function startAuthorityAndAgents({
  agents: count = 1,
  licenseKeys,
  via,
  sync,
  hasApiKey = false,
  settings = {},
}: FleetOptions): Promise<AuthorityAndAgents> {
  await using starting = new AsyncDisposableStack();
  const homes = Array.from({ length: count + 1 }, () => starting.use(temporaryDirectory()).path);
  const [home = '', ...directories] = homes;
  const authority = starting.use(
    new AuthorityProcess(home, await freePort(), { ...settings, ...storeOfProject() }),
  );
  await authority.start();
  await authority.sell(licenseKeys);
  const way = via === undefined ? authority : starting.use(await via(authority.url));
  const apiKey = hasApiKey ? { api_key: authority.apiKey } : {};
  const agents = directories.map((directory) =>
    starting.use(new AgentProcess(directory, { ...settings, ...agentConfiguration(way.url, sync, apiKey) })),
  );
  for (const agent of agents) {
    await agent.start();
    await agent.agent.learn(licenseKeys);
  }
  for (const { agent } of agents) await untilLatchkeyKnown(agent);
  const started = starting.move();
  return { authority, agents, [Symbol.asyncDispose]: () => started.disposeAsync() };
}

/** Waits until all counts of the agents are those of the authority, and nothing waits to be sent. */
export async function untilEqual(
  { authority, agents }: Pick<AuthorityAndAgents, 'authority' | 'agents'>,
  licenseKeys: readonly string[],
): Promise<void> {
  for (const { agent } of agents) await agent.atRest();
  await eventually(async () => {
    const expected = JSON.stringify(await authority.usesOf(licenseKeys));
    const seen = await Promise.all(agents.map((each) => each.usesOf(licenseKeys)));
    return seen.every((uses) => JSON.stringify(uses) === expected);
  }, longPatienceMs);
}
