import { agentObject } from '../../../wire/sync.ts';
import { defineList } from '../../client/request.ts';
import { agentRow, agentsPath } from './agent.ts';

export const command = defineList({
  command: 'list',
  describe: 'List the agents that send changes here, or follow license keys',
  builder: {},
  examples: [['latchkey agent list --all', 'which agents are connected, and when each was last seen']],
  epilogue:
    'An agent has a row for each of its credentials. Rows with the same value under agent come from one state directory.',
  list: { path: agentsPath, member: 'agents', item: agentObject, row: agentRow },
});
