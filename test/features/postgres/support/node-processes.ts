import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Database } from '../../../../src/features/postgres/store/database.ts';
import { startDaemonProcess, type DaemonProcess } from '../../../support/process/daemon-process.ts';
import { startFaultProxy, type FaultProxy } from '../../../support/network/fault-proxy.ts';
import { freePort } from '../../../support/network/free-port.ts';
import { startPostgres, type PostgresServer } from './postgres.ts';
import { urlOf } from './postgres-url.ts';
import { httpClient, type HttpClient } from '../../../support/network/raw-http.ts';
import { temporaryDirectory } from '../../../support/temporary.ts';

const schema = 'nodes';

/** One authority: several processes on one PostgreSQL, each with its own network to the database. */
export interface Nodes extends AsyncDisposable {
  readonly server: PostgresServer;
  readonly all: readonly AuthorityNode[];
  /** The stored data, read without the nodes and their networks. */
  readonly database: Database;
}

/** A node of the authority: a process that can be killed and restarted at the same address. */
export class AuthorityNode implements AsyncDisposable {
  /** The network between this node and the database. */
  readonly network: FaultProxy;
  /** host:port of the listener whenever the node runs. */
  readonly address: string;
  readonly http: HttpClient;
  readonly #directory: string;
  readonly #configuration: object;
  #process: DaemonProcess | null = null;

  /** Use `startNodes`. */
  constructor(parts: { network: FaultProxy; port: number; directory: string; configuration: object }) {
    this.network = parts.network;
    this.address = `127.0.0.1:${parts.port}`;
    this.http = httpClient({ tcp: `http://${this.address}` });
    this.#directory = parts.directory;
    this.#configuration = parts.configuration;
  }

  get process(): DaemonProcess {
    if (this.#process === null) throw new Error('this node does not run');
    return this.#process;
  }

  async start(): Promise<void> {
    this.#process = await startDaemonProcess(this.#directory, this.#configuration);
  }

  /** Kills the node. */
  async kill(): Promise<void> {
    await this.#process?.kill();
    this.#process = null;
  }

  /** The headers with the admin token of this node. */
  get admin(): Readonly<Record<string, string>> {
    const token = readFileSync(join(this.#directory, 'state', 'admin.token'), 'utf8').trim();
    return { authorization: `Bearer ${token}` };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill();
    await this.http[Symbol.asyncDispose]();
  }
}

/** Starts a server and `count` nodes on it; `listen` is merged into the listeners of each node. */
export async function startNodes(count: number, listen: object = {}): Promise<Nodes> {
  await using starting = new AsyncDisposableStack();
  const server = starting.use(await startPostgres());
  const all: AuthorityNode[] = [];
  for (let number = 0; number < count; number += 1) {
    const network = starting.use(await startFaultProxy(server.address.port));
    const directory = starting.use(temporaryDirectory()).path;
    const port = await freePort();
    const url = urlOf(server.address, { host: '127.0.0.1', port: network.port });
    const configuration = {
      listen: { tcp: `127.0.0.1:${port}`, socket: false, ...listen },
      store: { postgres: { url, schema, pool: 8, statement_timeout: '5s' } },
    };
    const node = starting.use(new AuthorityNode({ network, port, directory, configuration }));
    await node.start();
    all.push(node);
  }
  const near = { address: server.address, schema, pool: 2, statementTimeoutMs: 30_000 };
  const database = starting.use(new Database(near));
  const started = starting.move();
  return { server, all, database, [Symbol.asyncDispose]: () => started.disposeAsync() };
}
