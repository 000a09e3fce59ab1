import type { AgentObject } from '../../../wire/sync.ts';
import { type Cell, instant, toned, whole } from '../../format.ts';

export const agentsPath = '/admin/v1/agents';

/** The columns of an agent in a list. */
export function agentRow(agent: AgentObject): Readonly<Record<string, Cell>> {
  return {
    number: agent.number,
    agent: whole(agent.fingerprint),
    account: agent.account_id,
    product: agent.product_key ?? 'all (API key)',
    followed: agent.followed,
    state: agent.waiting ? [toned('connected', 'good')] : 'away',
    seen: instant(agent.seen_at),
    created: instant(agent.created_at),
  };
}
