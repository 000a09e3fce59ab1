import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Daemon } from '../../../src/daemon/daemon.ts';
import { startDaemon, type DaemonOptions } from '../../../src/daemon/start.ts';
import { AdvancingTime } from '../../../src/daemon/system/clock.ts';
import { embeddedConfiguration } from '../../../src/config/load.ts';
import { KeptConnection } from '../network/kept-connection.ts';
import { httpClient, type HttpClient } from '../network/raw-http.ts';
import { silent } from '../silent-log.ts';
import { temporaryDirectory } from '../temporary.ts';

export const secret = 'secret-of-the-editor';

/** Parts of a configuration, merged into the configuration of a daemon with one TCP listener. */
export type Tree = Readonly<Record<string, unknown>> & { listen?: object };

/** The response of a verify: its status, the license or the problem, and the freshness. */
export type Verified = Readonly<Record<string, unknown>> & {
  status: number;
  freshness: string | undefined;
  pending: string | undefined;
  age: number;
};

/** A daemon with a response cache, and one connection for repeated requests. */
export class Remembering implements AsyncDisposable {
  readonly time: AdvancingTime;
  readonly #opened = new AsyncDisposableStack();
  readonly #home = this.#opened.use(temporaryDirectory());
  #daemon: Daemon | null = null;
  #kept: KeptConnection | null = null;
  #http: HttpClient | null = null;

  constructor(time: AdvancingTime = new AdvancingTime()) {
    this.time = time;
  }

  /** With `prepare`, which changes the servers, the daemon has no response cache. */
  async start(tree: Tree, options: Pick<DaemonOptions, 'prepare'> = {}): Promise<this> {
    this.#daemon = await startDaemon(this.#configuration(tree), { log: silent, time: this.time, ...options });
    const daemon = this.#opened.adopt(this.#daemon, (started) => started.stop());
    this.#http = this.#opened.use(httpClient({ tcp: daemon.addresses.tcp ?? '' }));
    this.#kept = this.connect();
    return this;
  }

  /** Opens another connection, which closes with the daemon. */
  connect(): KeptConnection {
    return this.#opened.use(new KeptConnection({ tcp: this.#daemon?.addresses.tcp ?? '' }));
  }

  reload(tree: Tree): void {
    this.#daemon?.reload(this.#configuration(tree));
  }

  #configuration(tree: Tree) {
    const { listen, ...rest } = tree;
    return embeddedConfiguration({
      state_dir: join(this.#home.path, 'state'),
      listen: { tcp: '127.0.0.1:0', socket: false, ...listen },
      ...rest,
    });
  }

  /** Sends a verify on the one connection; returns the status, the body and the freshness. */
  async verify(licenseKey: string, credential = `product-secret-key: ${secret}`): Promise<Verified> {
    const answer = await this.#kept?.send(
      `GET /api/v2/license/verify?license_key=${licenseKey} HTTP/1.1\r\nHost: localhost\r\n${credential}\r\n\r\n`,
    );
    const [head = '', body = ''] = (answer ?? '').split('\r\n\r\n');
    const header = (name: string): string | undefined =>
      new RegExp(`^${name}: (.*)$`, 'im').exec(head)?.[1]?.trim();
    const { data, code } = JSON.parse(body) as { data?: Record<string, unknown>; code?: string };
    return {
      status: Number(head.split(' ')[1]),
      code,
      ...data,
      freshness: header('latchkey-freshness'),
      pending: header('latchkey-pending'),
      age: Number(header('age')),
      cache: header('cache-status'),
    };
  }

  /** Verifies until the response comes from the cache, if it may be cached. */
  async learn(licenseKey: string, credential?: string): Promise<Verified> {
    await this.verify(licenseKey, credential);
    await this.verify(licenseKey, credential);
    return await this.verify(licenseKey, credential);
  }

  async change(kind: string, licenseKey: string): Promise<void> {
    const headers = { 'product-secret-key': secret };
    const answer = await this.#http?.put(`/api/v2/license/${kind}`, {
      headers,
      form: { license_key: licenseKey },
    });
    if (answer?.status !== 200) throw new Error(`${kind}: ${answer?.status}`);
  }

  /** Sends a request with the admin token; returns `data`. */
  async admin(method: 'get' | 'post' | 'put' | 'delete', path: string, json?: object): Promise<unknown> {
    const token = readFileSync(join(this.#home.path, 'state', 'admin.token'), 'utf8').trim();
    const headers = { authorization: `Bearer ${token}` };
    const answer = await this.#http?.[method](path, { headers, ...(json !== undefined && { json }) });
    if (answer === undefined || answer.status >= 300) throw new Error(JSON.stringify(answer?.body));
    return (answer.body as { data?: unknown }).data ?? answer.body;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#opened.disposeAsync();
  }
}
