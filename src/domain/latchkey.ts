import type { Tenant } from './access/principal.ts';
import { dayMs } from './time.ts';

/* What two Latchkeys agree on (src/sync/BETWEEN-LATCHKEYS.md). */

/**
 * How long a store keeps its answers to the changes of agents, and what it knows of a silent agent. An agent keeps for as long
 * what it has delivered.
 */
export const agentRetentionMs: number = 30 * dayMs;

/**
 * Names the reach of a credential: what it can change, an account or a product of an account. Two reaches never have the same
 * name.
 */
export function reachOf({ accountId, productKey }: Tenant): string {
  const names = productKey === null ? [accountId] : [accountId, productKey];
  return names.map(encodeURIComponent).join('/');
}

/** The part of an epoch that names the store: a restored store keeps it. */
export function storeOf(epoch: string): string {
  return epoch.slice(0, 16);
}
