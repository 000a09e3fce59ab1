import type { ProcessParts } from '../../../daemon/compose.ts';
import type { FeatureProcess } from '../../../daemon/feature-process.ts';
import { logOf } from '../../../daemon/log.ts';
import { systemRandom } from '../../../daemon/system/machine.ts';
import { agentRetentionMs } from '../../../domain/latchkey.ts';
import { done } from '../../../domain/problem/problem.ts';
import { StorageError } from '../../../service/ports.ts';
import type { Status } from '../../../service/status.ts';
import type { SyncServer } from '../service/ports.ts';
import { lazySyncServer } from './sync-server.ts';

declare module '../../../http/app.ts' {
  interface AuthorityParts {
    /** Answers agents. */
    readonly syncServer: SyncServer;
  }
}

/** Answers the agents below an authority or an agent. */
export function startFollowing(parts: ProcessParts): FeatureProcess {
  const { role, current, local, reader, writer, log } = parts;
  if (current.configuration.role === 'holder') return { app: { syncServer: null } };
  const chain =
    role.agent === null || local === null
      ? null
      : { reader: local.reader, productIds: current.productIds, followNew: role.agent.newKeys };
  const syncServer = lazySyncServer({ ...parts, chain, random: systemRandom, log: logOf(log, 'sync') });
  return {
    app: { syncServer },
    status: async () => ({ agents: await agentsOf(parts, syncServer) }),
    async prune({ removalTime, limit }) {
      const before = removalTime - agentRetentionMs;
      // Most processes have no silent agent: they need not load the use case.
      return (await reader.sync.idle(null, before, 1)).length === 0
        ? done({ removed: 0 })
        : await writer.write('pruneSync', { before, limit });
    },
    stopWaiting: () => syncServer.stopWaiting(),
  };
}

/** The agents that follow license keys at this process; null: the database is unavailable. */
async function agentsOf({ local, reader }: ProcessParts, { waiting }: SyncServer): Promise<Status['agents']> {
  const { sync } = local?.lists ?? reader;
  try {
    return { known: await sync.count({}), waiting };
  } catch (error) {
    if (!(error instanceof StorageError)) throw error;
    return null;
  }
}
