import { closeSync, openSync, readdirSync, readFileSync, readSync, statSync } from 'node:fs';
import { createServer, connect, type AddressInfo } from 'node:net';
import { once } from 'node:events';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { setUp } from '../../src/features/leases/issuer/signing-files.ts';
import { ownFiles } from '../features/leases/support/lease-builders.ts';
import { startDaemonProcess, type DaemonProcess } from '../support/process/daemon-process.ts';
import { temporaryDirectory } from '../support/temporary.ts';

const licenseKey = 'ABCDE-FGHJK-LMNPQ-RSTUV';
const productSecret = 'lk_prod_the-secret-of-the-vendor';

/** Passes connections on to a port, and records what devices send. */
class Recorder implements AsyncDisposable {
  readonly #server = createServer();
  target = 0;
  sent = '';

  async listen(): Promise<this> {
    this.#server.on('connection', (device) => {
      const issuer = connect(this.target, '127.0.0.1');
      device.on('data', (chunk: Buffer) => (this.sent += chunk.toString('latin1')));
      device.pipe(issuer).pipe(device);
      for (const [one, other] of [
        [device, issuer],
        [issuer, device],
      ] as const) {
        one.on('error', () => other.destroy());
        one.on('close', () => other.destroy());
      }
    });
    await once(this.#server.listen(0, '127.0.0.1'), 'listening');
    return this;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.close();
    await Promise.resolve();
  }
}

/** An authority and a holder as processes, with a network between them. */
class Processes implements AsyncDisposable {
  readonly #opened = new AsyncDisposableStack();
  readonly directory = this.#opened.use(temporaryDirectory()).path;
  readonly #vendorHome = this.#opened.use(temporaryDirectory()).path;
  readonly #deviceHome = this.#opened.use(temporaryDirectory()).path;
  readonly network = this.#opened.use(new Recorder());
  #vendor: DaemonProcess | null = null;
  #device: DaemonProcess | null = null;

  static async start(): Promise<Processes> {
    const all = new Processes();
    await all.network.listen();
    await all.startVendor();
    await all.vendorCall('POST', '/admin/v1/products', {
      name: 'P',
      product_key: 'RGsF',
      secret: productSecret,
    });
    await all.vendorCall('POST', '/admin/v1/purchases', {
      product_key: 'RGsF',
      license_key: licenseKey,
      buyer_email: 'a@example.com',
    });
    const [directory, rootsDirectory] = [join(all.vendorState, 'signing'), join(all.directory, 'roots')];
    await setUp({ directory, rootsDirectory, issuer: all.network.url }, Date.now(), ownFiles);
    await all.startDevice();
    return all;
  }

  get vendorState(): string {
    return join(this.#vendorHome, 'state');
  }

  get deviceState(): string {
    return join(this.#deviceHome, 'state');
  }

  get device(): DaemonProcess {
    if (this.#device === null) throw new Error('the holder does not run');
    return this.#device;
  }

  async startVendor(): Promise<void> {
    this.#vendor = await startDaemonProcess(this.#vendorHome, {
      listen: { tcp: '127.0.0.1:0', socket: false },
    });
    this.network.target = Number(new URL(this.#vendor.tcp).port);
  }

  async startDevice(): Promise<void> {
    this.#device = await startDaemonProcess(this.#deviceHome, {
      listen: { tcp: '127.0.0.1:0', socket: false },
      products: [{ key: 'RGsF' }],
      leases: { issuer: this.network.url, roots: [join(this.directory, 'roots', 'root-1.pub.jwk')] },
    });
  }

  async killVendor(): Promise<void> {
    await this.#vendor?.kill();
  }

  async killDevice(): Promise<void> {
    await this.#device?.kill();
  }

  async vendorCall(method: string, path: string, body?: object): Promise<Record<string, unknown>> {
    const token = readFileSync(join(this.vendorState, 'admin.token'), 'utf8').trim();
    return await call(`${this.#vendor?.tcp}${path}`, method, body, { authorization: `Bearer ${token}` });
  }

  async verify(): Promise<Record<string, unknown>> {
    return await call(`${this.device.tcp}/api/v2/license/verify?license_key=${licenseKey}`, 'GET');
  }

  /** Counts a use. Returns false if there was no answer. */
  async use(key: string): Promise<boolean> {
    const url = `${this.device.tcp}/api/v2/license/usage`;
    const headers = { 'idempotency-key': key };
    return await call(url, 'PUT', { license_key: licenseKey }, headers).then(
      ({ uses }) => uses !== undefined,
      () => false,
    );
  }

  async usesAtVendor(): Promise<number> {
    const { uses } = await this.vendorCall('GET', `/api/v2/license/verify?license_key=${licenseKey}`);
    return Number(uses);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.killDevice();
    await this.killVendor();
    await this.#opened.disposeAsync();
  }
}

async function call(
  url: string,
  method: string,
  body?: object,
  headers: Record<string, string> = {},
): Promise<Record<string, unknown>> {
  const content = body === undefined ? {} : { body: JSON.stringify(body) };
  const type = body === undefined ? {} : { 'content-type': 'application/json' };
  const response = await fetch(url, { method, ...content, headers: { ...headers, ...type } });
  const answer = (await response.json()) as { data?: Record<string, unknown> } & Record<string, unknown>;
  return answer.data ?? answer;
}

test('uses and leases survive kill -9 of holder and issuer, and each use is counted once', async () => {
  await using all = await Processes.start();
  expect(await all.verify()).toMatchObject({ enabled: true });
  let count = 0;
  for (let round = 0; round < 6; round += 1) {
    for (let use = 0; use < 10; use += 1) {
      const key = `${round}-${use}`;
      const ending = use === 5 ? (round % 2 === 0 ? all.killDevice() : all.killVendor()) : null;
      let isCounted = await all.use(key);
      if (ending !== null) {
        await ending;
        if (round % 2 === 0) await all.startDevice();
        else await all.startVendor();
      }
      while (!isCounted) isCounted = await all.use(key);
      count += 1;
    }
  }
  expect(count).toBe(60);
  await expect.poll(() => all.usesAtVendor()).toBe(60);
  expect(await all.verify()).toMatchObject({ enabled: true, uses: 60 });
});

test('25 kills and starts of a holder that keeps its state directory take one seat', async () => {
  await using all = await Processes.start();
  for (let start = 0; start < 25; start += 1) {
    expect(await all.verify()).toMatchObject({ enabled: true, uses: 0 });
    await all.killDevice();
    await all.startDevice();
  }
  expect(await all.verify()).toMatchObject({ enabled: true, uses: 0 });
  const { activations } = await all.vendorCall('GET', '/admin/v1/activations');
  expect(activations).toHaveLength(1);
  expect(activations).toMatchObject([{ copied_at: null }]);
});

/** The files below a directory, with their content. */
function filesIn(directory: string): [path: string, content: string][] {
  return readdirSync(directory, { recursive: true, encoding: 'utf8' }).flatMap((name) => {
    const path = join(directory, name);
    return statSync(path).isFile() ? [[path, readFileSync(path, 'latin1')]] : [];
  });
}

/** Which of the texts are in the memory of a process that it can write to. */
function findInMemory(pid: number, texts: readonly string[]): Set<string> {
  const found = new Set<string>();
  const memory = openSync(`/proc/${pid}/mem`, 'r');
  const chunk = Buffer.alloc(4 * 1024 ** 2);
  try {
    for (const line of readFileSync(`/proc/${pid}/maps`, 'utf8').split('\n')) {
      const [, from, to] = /^([0-9a-f]+)-([0-9a-f]+) rw/.exec(line) ?? [];
      if (from === undefined || to === undefined) continue;
      const end = Number.parseInt(to, 16);
      // Chunks overlap, so that no text lies between two.
      for (let at = Number.parseInt(from, 16); at < end; at += chunk.length - 4096) {
        let read = 0;
        try {
          read = readSync(memory, chunk, 0, Math.min(chunk.length, end - at), at);
        } catch {
          continue;
        }
        const content = chunk.subarray(0, read);
        for (const text of texts)
          if (content.includes(text) || content.includes(Buffer.from(text, 'utf16le'))) found.add(text);
      }
    }
  } finally {
    closeSync(memory);
  }
  return found;
}

test.skipIf(process.platform !== 'linux')(
  'no secret of the vendor is in the files, the memory, the environment and the traffic of a holder',
  async () => {
    await using all = await Processes.start();
    await all.verify();
    for (let use = 0; use < 20; use += 1) await all.use(String(use));
    await expect.poll(() => all.usesAtVendor()).toBe(20);
    const keys = [join(all.vendorState, 'signing'), join(all.directory, 'roots')]
      .flatMap(filesIn)
      .filter(([path]) => path.endsWith('.jwk') && !path.endsWith('.pub.jwk'))
      .map(([, content]) => (JSON.parse(content) as { d: string }).d);
    expect(keys.length).toBeGreaterThanOrEqual(3);
    const secrets = [
      productSecret,
      readFileSync(join(all.vendorState, 'admin.token'), 'utf8').trim(),
      readFileSync(join(all.vendorState, 'api.key'), 'utf8').trim(),
      ...keys,
    ];
    const ownToken = readFileSync(join(all.deviceState, 'admin.token'), 'utf8').trim();
    const files = filesIn(join(all.deviceState, '..'));
    const environment = readFileSync(`/proc/${all.device.pid}/environ`, 'latin1');
    for (const secret of secrets) {
      expect(files.filter(([, content]) => content.includes(secret)).map(([path]) => path)).toEqual([]);
      expect(environment).not.toContain(secret);
      expect(all.network.sent).not.toContain(secret);
    }
    // The search finds what is there.
    const inMemory = findInMemory(all.device.pid, [...secrets, ownToken, licenseKey]);
    expect(inMemory).toEqual(new Set([ownToken, licenseKey]));
    expect(all.network.sent).toContain('POST /lease/v1 HTTP/1.1');
  },
);
