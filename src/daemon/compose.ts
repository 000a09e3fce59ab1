import type { FastifyInstance } from 'fastify';
import { version } from '../config/version.ts';
import { TokenUses } from '../service/access/token.ts';
import { appOf } from './app.ts';
import { Daemon } from './daemon.ts';
import { Health } from './health.ts';
import { openListeners } from './listeners.ts';
import { logOf } from './log/derived.ts';
import { runMaintenance } from './maintenance.ts';
import { nodeRole, withOwnToken } from './role/node.ts';
import { authorityRole, type Role, type RoleParts } from './role/role.ts';
import { backupsOf } from './store/backups.ts';
import { DamageWatch } from './store/damage-watch.ts';
import type { OpenedStore } from './store/opened-store.ts';
import { systemRandom } from './system/random.ts';

/**
 * Builds a daemon on an opened store, listens, and starts the loops: who gets what, from top to bottom. `resources` is
 * what the daemon disposes of at its end. If building fails, `resources` stays with the caller.
 */
export async function compose(
  store: OpenedStore,
  prepare: (server: FastifyInstance) => void,
  resources: AsyncDisposableStack,
): Promise<Daemon> {
  const { current, clock, writer, local, metrics, log } = store;
  const { stateDir } = current.configuration;
  const tokenUses = new TokenUses();
  const lifetime = new AbortController();
  const syncLog = logOf(log, 'sync');
  const role = await buildRole(store, {
    ...store,
    log: syncLog,
    meter: metrics,
    tokenUses,
    lifetime: lifetime.signal,
  });
  const health = new Health(writer, local);
  const daemon = new Daemon({ ...store, role, health, lifetime });
  const damageWatch =
    local === null
      ? null
      : new DamageWatch(local.databasePath, logOf(log, 'store'), (damage) => daemon.stopWriting(damage));
  const app = appOf({
    ...store,
    role,
    backup: backupsOf(local, stateDir, clock, lifetime.signal),
    status: () => daemon.status(),
    readiness: () => health.readiness(),
    liveness: () => health.liveness(),
  });
  const maintenance = {
    writer,
    clock,
    random: systemRandom,
    isAgent: role.upstream !== null,
    tokenUses,
    historyKeepMs: () => current.configuration.history.keepMs,
    lastSuccessAt: () => role.upstream?.status().lastSuccessAt ?? null,
    onSleep: () => role.upstream?.probeNow(),
    checkStoreFile: () => damageWatch?.checkFile(),
    checkListeners: () => daemon.checkListeners(),
  };
  await role.bind();
  const listeners = await openListeners(current.configuration, app, (server) => {
    metrics.watch(server);
    prepare(server);
  });
  const loops = (signal: AbortSignal) => [role.run(signal), runMaintenance(maintenance, signal)];
  const owned = resources.move();
  daemon.run(listeners, loops, owned);
  logOf(log, 'daemon').info({ role: current.configuration.role, version, ...listeners.addresses }, 'ready');
  // The check takes CPU time, so it starts after the daemon is ready.
  if (damageWatch !== null) owned.use(damageWatch.checkStore());
  return daemon;
}

/** An authority does not load the sync loops and the client of the upstream. */
async function buildRole({ current, reader, local, node }: OpenedStore, parts: RoleParts): Promise<Role> {
  if (node !== null) return withOwnToken(nodeRole({ ...parts, reader, cache: node.cache }), node.adminToken);
  if (local === null) throw new Error('a store must be local or have a node');
  if (current.configuration.role === 'authority') return authorityRole({ ...parts, ...local });
  const { agentRole } = await import('./role/agent.ts');
  return agentRole({ ...parts, ...local });
}
