import { NamedRateLimiter } from '../../../http/entry/rate-limits.ts';
import { newFollowerRate } from '../domain/follow.ts';
import type { SyncServer, SyncStore } from '../service/ports.ts';
import type { Clock, Log, Random } from '../../../service/ports.ts';
import type { ChainParts } from '../service/chain-store.ts';
import type { AuthorityReader, Reader } from '../../../service/tables.ts';
import type { ChangeFeed, Writer } from '../../../service/writer.ts';

type Parts = {
  /** What an agent in the middle of a chain needs; absent or null: an authority. */
  chain?: (ChainParts & { reader: Reader }) | null;
  reader: AuthorityReader;
  writer: Writer;
  changes: ChangeFeed;
  clock: Clock;
  random: Random;
  log: Log;
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

async function load(parts: Parts): Promise<SyncServer> {
  const { reader, changes, clock, random, log } = parts;
  const [{ StoreSyncServer }, { WaitingAgents }] = await Promise.all([
    import('../service/server.ts'),
    import('../service/waiting.ts'),
  ]);
  const { perSecond, burst } = newFollowerRate;
  const newFollowers = new NamedRateLimiter(
    () => perSecond,
    () => clock.monotonic(),
    burst,
  );
  const nextTurn = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve));
  const waiting = new WaitingAgents({ reader, changes, clock, log, nextTurn });
  const store = await storeOf(parts);
  return new StoreSyncServer({ reader, store, waiting, clock, random, newFollowers });
}

async function storeOf({ chain = null, reader, writer, clock }: Parts): Promise<SyncStore> {
  if (chain === null) return (await import('../service/server.ts')).authorityStore({ reader, writer, clock });
  return (await import('../service/chain-store.ts')).chainStore({ ...chain, writer });
}
