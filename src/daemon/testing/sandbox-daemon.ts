import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { FastifyInstance } from 'fastify';
import type { Tree } from '../../config/file/tree.ts';
import { stateFiles } from '../../store/sqlite/files/state-directory.ts';
import type { Daemon } from '../daemon.ts';
import { startDaemon } from '../start/start.ts';
import { makeLog } from '../log/log.ts';
import { embeddedConfiguration } from '../trial/embedded-configuration.ts';
import { LocalClient, type LocalAnswer } from '../trial/local-client.ts';
import type { AdvancingTime } from './advancing-time.ts';

/** One for all: each listens for the end of the process. */
const log = makeLog({ level: 'fatal', format: 'json' });

/** Starts a daemon whose clocks can be put forward. */
export async function start(
  tree: Tree,
  time: AdvancingTime,
  prepare: (server: FastifyInstance) => void = () => undefined,
): Promise<Daemon> {
  return await startDaemon(embeddedConfiguration(tree), {
    log: await log,
    time,
    prepare: (server) => {
      // An agent believes the store's clock.
      server.addHook('onSend', async (_, reply) => {
        reply.header('Date', new Date(time.read().wall).toUTCString());
      });
      prepare(server);
    },
  });
}

/** Calls a daemon as whoever may do everything. */
export function adminOf(stateDir: string, url: string): LocalClient {
  const token = readFileSync(join(stateDir, stateFiles.adminToken), 'utf8').trim();
  return new LocalClient(url, { authorization: `Bearer ${token}` });
}

/** Gives the data of an answer. Throws when it is a refusal. */
export function dataOf({ status, body }: Pick<LocalAnswer, 'status' | 'body'>): Record<string, unknown> {
  if (status >= 300) throw new Error(`The sandbox was refused: ${JSON.stringify(body)}`);
  return (body as { data?: Record<string, unknown> } | null)?.data ?? {};
}
