import type { SyncServer } from '../service/sync/ports.ts';
import type { Clock, Log, Random } from '../service/ports.ts';
import type { AuthorityReader } from '../service/tables.ts';
import type { ChangeFeed, Writer } from '../service/writer.ts';

type Parts = {
  reader: AuthorityReader;
  writer: Writer;
  changes: ChangeFeed;
  clock: Clock;
  random: Random;
  log: Log;
  count: (result: string, outcomes: readonly string[]) => void;
};

/** Loads its modules at the first request of an agent. */
export function lazySyncServer(parts: Parts): SyncServer {
  let server: SyncServer | null = null;
  let loading: Promise<SyncServer> | null = null;
  let isStopped = false;
  const use = async (): Promise<SyncServer> => {
    server = await (loading ??= load(parts));
    if (isStopped) server.stopWaiting();
    return server;
  };
  return {
    epoch: async () => await (await use()).epoch(),
    push: async (...request) => await (await use()).push(...request),
    known: async (...request) => await (await use()).known(...request),
    // No function of its own for each request: thousands of them may wait.
    changes: (...request) =>
      server?.changes(...request) ?? use().then((loaded) => loaded.changes(...request)),
    get waiting() {
      return server?.waiting ?? 0;
    },
    isWaiting: (agent) => server?.isWaiting(agent) ?? false,
    stopWaiting() {
      isStopped = true;
      server?.stopWaiting();
    },
  };
}

async function load({ reader, writer, changes, clock, random, log, count }: Parts): Promise<SyncServer> {
  const [{ AuthoritySyncServer }, { WaitingAgents }] = await Promise.all([
    import('../service/sync/server.ts'),
    import('../service/sync/waiting.ts'),
  ]);
  const nextTurn = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve));
  const waiting = new WaitingAgents({ reader, changes, clock, log, nextTurn });
  return new AuthoritySyncServer({ reader, writer, waiting, clock, random, count });
}
