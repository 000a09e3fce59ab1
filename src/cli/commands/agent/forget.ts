import { agentObject } from '../../../wire/sync.ts';
import { defineRequest } from '../../client/request.ts';
import { positional } from '../../command.ts';
import { formatFields } from '../../format.ts';
import { agentRow, agentsPath } from './agent.ts';

export const command = defineRequest({
  command: 'forget <number>',
  describe: 'Forget an agent that is gone',
  builder: { number: positional('Number of the agent, as in agent list', 'agent') },
  examples: [['latchkey agent forget 17', 'its machine is gone for good']],
  epilogue: 'Its changes stay. If it is not gone, it begins to follow its license keys again.',
  request: ({ number }) => ({ method: 'DELETE', path: `${agentsPath}/${encodeURIComponent(number)}` }),
  view: { schema: agentObject, show: (agent) => ['forgotten', formatFields(agentRow(agent))] },
});
