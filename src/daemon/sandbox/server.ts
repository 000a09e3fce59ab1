import { readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { FastifyInstance } from 'fastify';
import type { Configuration } from '../../config/configuration.ts';
import { formatConfigError } from '../../config/errors.ts';
import type { Tree } from '../../config/file/tree.ts';
import { parseConfiguration } from '../../config/load.ts';
import type { Log } from '../../service/ports.ts';
import { stateFiles } from '../../store/sqlite/files/state-directory.ts';
import type { Daemon } from '../daemon.ts';
import { startDaemon } from '../start.ts';
import type { AdvancingTime } from './advancing-time.ts';

/**
 * Starts a daemon of a sandbox. Only `tree` and the files that `tree` names (`files`) configure the daemon: no variable of
 * the environment.
 */
export async function startServer(
  tree: Tree,
  { log, time, files = [] }: { log: Log; time: AdvancingTime; files?: readonly string[] },
  prepare: (server: FastifyInstance) => void = () => undefined,
): Promise<Daemon> {
  return await startDaemon(embeddedConfiguration(tree, files), {
    log,
    time,
    prepare: (server) => {
      // An agent trusts the clock of its store, which is the clock of the sandbox.
      server.addHook('onSend', async (_, reply) => {
        reply.header('Date', new Date(time.read().wall).toUTCString());
      });
      prepare(server);
    },
  });
}

/** A configuration from `tree` and the files that it names. Throws where it is wrong. */
export function embeddedConfiguration(tree: Tree, files: readonly string[] = []): Configuration {
  const result = parseConfiguration({
    flags: tree,
    environment: {},
    home: tmpdir(),
    platform: process.platform,
    directory: tmpdir(),
    readFile: (path) => {
      if (files.includes(path)) return readFileSync(path, 'utf8');
      throw Object.assign(new Error(`no such file: ${path}`), { code: 'ENOENT' });
    },
  });
  if (result.ok) return result.configuration;
  throw new Error(result.errors.map(formatConfigError).join('\n'));
}

export function readAdminToken(stateDir: string): string {
  return readFileSync(join(stateDir, stateFiles.adminToken), 'utf8').trim();
}

/** A daemon that can be stopped, and started again on the same port. */
export class RestartableDaemon {
  #daemon: Daemon | null = null;
  #port: number;
  #last: Promise<unknown> = Promise.resolve();

  constructor(port: number) {
    this.#port = port;
  }

  get url(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  /** Null while it is stopped. */
  get running(): Daemon | null {
    return this.#daemon;
  }

  /** Starts it on an address, unless it runs, and then calls `onStart`. */
  async start(
    start: (tcp: string) => Promise<Daemon>,
    onStart: () => Promise<void> = async () => undefined,
  ): Promise<void> {
    await this.#inTurn(async () => {
      if (this.#daemon !== null) return;
      this.#daemon = await start(`127.0.0.1:${this.#port}`);
      this.#port = Number(new URL(this.#daemon.addresses.tcp ?? '').port);
      await onStart();
    });
  }

  async stop(): Promise<void> {
    await this.#inTurn(async () => {
      const daemon = this.#daemon;
      this.#daemon = null;
      await daemon?.stop();
    });
  }

  /** Runs one action after the other, in the order of the calls. */
  async #inTurn(action: () => Promise<void>): Promise<void> {
    const done = this.#last.then(action);
    this.#last = done.catch(() => undefined);
    await done;
  }
}

/** The response of a local server, with its body parsed. */
export type LocalResponse = { status: number; headers: Headers; body: unknown };

/** Calls a local server over TCP, as any software does, with the same headers on every call. */
export class LocalClient {
  readonly #base: string;
  readonly #headers: Record<string, string>;

  constructor(base: string, headers: Record<string, string>) {
    this.#base = base;
    this.#headers = headers;
  }

  get(path: string): Promise<LocalResponse> {
    return this.#call(path, { method: 'GET' });
  }

  putForm(path: string, form: Record<string, string>): Promise<LocalResponse> {
    return this.#call(path, { method: 'PUT', body: new URLSearchParams(form) });
  }

  postJson(path: string, value: unknown): Promise<LocalResponse> {
    const headers = { 'content-type': 'application/json' };
    return this.#call(path, { method: 'POST', body: JSON.stringify(value), headers });
  }

  async #call(path: string, init: RequestInit): Promise<LocalResponse> {
    const response = await fetch(new URL(path, this.#base), {
      ...init,
      headers: { ...(init.headers as Record<string, string> | undefined), ...this.#headers },
      signal: AbortSignal.timeout(35_000),
    });
    const text = await response.text();
    return {
      status: response.status,
      headers: response.headers,
      body: text === '' ? null : JSON.parse(text),
    };
  }
}

/** A client with all rights, by the admin token in the state directory of the server. */
export function adminClient(stateDir: string, url: string): LocalClient {
  return new LocalClient(url, { authorization: `Bearer ${readAdminToken(stateDir)}` });
}

/** The data of a successful response. Throws at a failed one. */
export function dataOf({ status, body }: Pick<LocalResponse, 'status' | 'body'>): Record<string, unknown> {
  if (status >= 300) throw new Error(`The sandbox refused a request: ${JSON.stringify(body)}`);
  return (body as { data?: Record<string, unknown> } | null)?.data ?? {};
}
