import { maxTimerMs, machineTime, type TimeSource } from '../../../../src/daemon/system/clock.ts';
import { slowMs } from '../../../../src/features/postgres/daemon/database-writer.ts';
import type { Log } from '../../../../src/service/ports.ts';
import type { DatabaseAddress } from '../../../../src/features/postgres/store/client.ts';
import { startNode, type AuthorityNode } from './nodes.ts';
import { urlOf } from './postgres-url.ts';

/** The URL of a server at a local port. */
export function urlByPort(address: DatabaseAddress, port: number = address.port): string {
  return urlOf(address, { host: '127.0.0.1', port });
}

/** Whether a load balancer sends the node requests, the node's status, and the responses to callers. */
export type Responses = { ready: unknown; alive: number; storage: unknown; verify: unknown; sale: unknown };

/** A node whose log and responses a test reads. */
export interface WatchedNode extends AuthorityNode {
  readonly lines: readonly { level: string; message: string; fields: Record<string, unknown> }[];
  /** The node's current responses. */
  answers(): Promise<Responses>;
}

/** A clock by which no database query is late, even on a slow machine. */
export const unhurried: TimeSource = {
  ...machineTime,
  sleep: (ms, signal) => machineTime.sleep(ms === slowMs ? maxTimerMs : ms, signal),
};

/** Starts a node and records its log; `postgres` is merged into its `store.postgres`. */
export async function watchNode(
  address: DatabaseAddress,
  postgres: { schema: string } & Record<string, unknown>,
  time: TimeSource = unhurried,
): Promise<WatchedNode> {
  const lines: WatchedNode['lines'][number][] = [];
  const at = (level: string) => (fields: Record<string, unknown>, message: string) =>
    void lines.push({ level, message, fields });
  const log: Log = { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') };
  const node = await startNode({ address }, postgres, { log, time });
  const told = async (path: string, body?: object): Promise<unknown> => {
    const answer = await node.call(path, body === undefined ? {} : { body });
    const { type } = (await answer.json()) as { type?: string };
    return type === undefined ? answer.status : [answer.status, type.replace('urn:latchkey:problem:', '')];
  };
  return Object.assign(node, {
    lines,
    async answers() {
      const [ready, alive, status, verify, sale] = await Promise.all([
        node.call('/readyz'),
        node.call('/livez'),
        node.call('/statusz'),
        told('/api/v2/license/verify?license_key=NOBODY-HAS-THIS'),
        told('/admin/v1/products', { name: 'Press' }),
      ]);
      return {
        ready: [ready.status, ...((await ready.json()) as { reasons: string[] }).reasons],
        alive: alive.status,
        storage: ((await status.json()) as { storage: unknown }).storage,
        verify,
        sale,
      };
    },
  });
}
