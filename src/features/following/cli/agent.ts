import { type AgentObject, agentObject } from '../wire/change-feed.ts';
import { defineList, defineRequest, pathOf } from '../../../cli/client/request.ts';
import { positional } from '../../../cli/command.ts';
import { type Cell, formatFields, instant, toned, whole } from '../../../cli/format.ts';

const agentsPath = '/admin/v1/agents';

export const commands = [
  defineList({
    command: 'list',
    describe: 'List the agents that send changes here, or follow license keys',
    builder: {},
    examples: [['latchkey agent list --all', 'which agents are connected, and when each was last seen']],
    epilogue:
      'An agent has a row for each of its credentials. Rows with the same value under agent come from one state directory.',
    list: { path: agentsPath, member: 'agents', item: agentObject, row: agentRow },
  }),
  defineRequest({
    command: 'forget <number>',
    describe: 'Forget an agent that is gone',
    builder: { number: positional('Number of the agent, as in agent list', 'agent') },
    examples: [['latchkey agent forget 17', 'its machine is gone for good']],
    epilogue: 'Its changes stay. If it is not gone, it begins to follow its license keys again.',
    request: ({ number }) => ({ method: 'DELETE', path: pathOf(agentsPath, number) }),
    view: { schema: agentObject, show: (agent) => ['forgotten', formatFields(agentRow(agent))] },
  }),
];

/** The columns of an agent in a list. */
function agentRow(agent: AgentObject): Readonly<Record<string, Cell>> {
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
