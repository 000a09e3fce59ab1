import type { FastifyInstance } from 'fastify';
import { embeddedConfiguration } from '../../config/load.ts';
import type { Tree } from '../../config/file/tree.ts';
import type { Daemon } from '../../daemon/daemon.ts';
import type { LocalResponse } from '../../daemon/local-client.ts';
import { startDaemon } from '../../daemon/start.ts';
import type { AdvancingTime } from '../../daemon/system/clock.ts';
import type { Log } from '../../service/ports.ts';

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

/** The data of a successful response. Throws at a failed one. */
export function dataOf({ status, body }: Pick<LocalResponse, 'status' | 'body'>): Record<string, unknown> {
  if (status >= 300) throw new Error(`The sandbox refused a request: ${JSON.stringify(body)}`);
  return (body as { data?: Record<string, unknown> } | null)?.data ?? {};
}
