import type { ProcessParts } from '../../../daemon/compose.ts';
import type { FeatureProcess } from '../../../daemon/feature-process.ts';
import { logOf } from '../../../daemon/log.ts';
import { systemRandom } from '../../../daemon/system/machine.ts';
import { agentRetentionMs } from '../../../domain/latchkey.ts';
import { done } from '../../../domain/problem/problem.ts';
import { StorageError, type Clock, type Log, type Random } from '../../../service/ports.ts';
import type { Status } from '../../../service/status.ts';
import type { AuthorityReader, Reader } from '../../../service/tables.ts';
import type { Announcer, Writer } from '../../../service/writer.ts';
import { NamedRateLimiter } from '../../../http/entry/rate-limits.ts';
import { newFollowerRate } from '../domain/change-feed.ts';
import type { ChainParts } from '../service/chain.ts';
import type { ChangeFeed, FeedStore } from '../service/ports.ts';

declare module '../../../http/app.ts' {
  interface AuthorityParts {
    /** Answers the followers. */
    readonly changeFeed: ChangeFeed;
  }
}

/** The change feed of an authority, or of an agent for the agents below it. */
export function startFollowing(parts: ProcessParts): FeatureProcess {
  const { role, current, local, reader, writer, log } = parts;
  if (current.configuration.role === 'holder') return { app: { changeFeed: null } };
  const chain =
    role.agent === null || local === null
      ? null
      : { reader: local.reader, productIds: current.productIds, followNew: role.agent.newKeys };
  const changeFeed = lazyChangeFeed({ ...parts, chain, random: systemRandom, log: logOf(log, 'sync') });
  return {
    app: { changeFeed },
    status: async () => ({ agents: await agentsOf(parts, changeFeed) }),
    async prune({ removalTime, limit }) {
      const before = removalTime - agentRetentionMs;
      // Most processes have no silent agent: they need not load the use case.
      return (await reader.followers.idle(null, before, 1)).length === 0
        ? done({ removed: 0 })
        : await writer.write('pruneFollowers', { before, limit });
    },
    stopWaiting: () => changeFeed.stopWaiting(),
  };
}

/** The agents that follow license keys at this process; null: the database is unavailable. */
async function agentsOf({ local, reader }: ProcessParts, { waiting }: ChangeFeed): Promise<Status['agents']> {
  const { followers } = local?.lists ?? reader;
  try {
    return { known: await followers.count({}), waiting };
  } catch (error) {
    if (!(error instanceof StorageError)) throw error;
    return null;
  }
}

type FeedParts = {
  /** What an agent in the middle of a chain needs; absent or null: an authority. */
  chain?: (ChainParts & { reader: Reader }) | null;
  reader: AuthorityReader;
  writer: Writer;
  changes: Announcer;
  clock: Clock;
  random: Random;
  log: Log;
};

/** A change feed that loads its modules at the first request of a follower. */
export function lazyChangeFeed(parts: FeedParts): ChangeFeed {
  let feed: ChangeFeed | null = null;
  let loading: Promise<ChangeFeed> | null = null;
  let isStopped = false;
  const use = async (): Promise<ChangeFeed> => {
    feed = await (loading ??= load(parts));
    if (isStopped) feed.stopWaiting();
    return feed;
  };
  return {
    epoch: async () => await (await use()).epoch(),
    // No function of its own for each request: thousands of them may wait.
    changes: (...request) => feed?.changes(...request) ?? use().then((loaded) => loaded.changes(...request)),
    get waiting() {
      return feed?.waiting ?? 0;
    },
    isWaiting: (agent) => feed?.isWaiting(agent) ?? false,
    stopWaiting() {
      isStopped = true;
      feed?.stopWaiting();
    },
  };
}

async function load(parts: FeedParts): Promise<ChangeFeed> {
  const { reader, changes, clock, random, log } = parts;
  const [{ StoreChangeFeed }, { WaitingFollowers }] = await Promise.all([
    import('../service/change-feed.ts'),
    import('../service/waiting.ts'),
  ]);
  const { perSecond, burst } = newFollowerRate;
  const newFollowers = new NamedRateLimiter(
    () => perSecond,
    () => clock.monotonic(),
    burst,
  );
  const nextTurn = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve));
  const waiting = new WaitingFollowers({ reader, changes, clock, log, nextTurn });
  const store = await storeOf(parts);
  return new StoreChangeFeed({ reader, store, waiting, clock, random, newFollowers });
}

async function storeOf({ chain = null, reader, writer, clock }: FeedParts): Promise<FeedStore> {
  if (chain === null)
    return (await import('../service/change-feed.ts')).authorityStore({ reader, writer, clock });
  return (await import('../service/chain.ts')).chainStore({ ...chain, writer });
}
