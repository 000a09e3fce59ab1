import { withNext } from '../../../domain/page.ts';
import { notFound } from '../../../domain/problem/problem.ts';
import type { Follower } from '../service/tables.ts';
import { agentList, agentObject, serializeAgent, type AgentObject } from '../wire/change-feed.ts';
import { pageQuery } from '../../../wire/page.ts';
import { enveloped } from '../../../wire/response.ts';
import type { AppIn } from '../../../http/app.ts';
import { ok, pageOf } from '../../../http/response.ts';
import { route, type Route } from '../../../http/route.ts';

/* The agents that follow license keys of this authority. They belong to all accounts. */
const shared = {
  tag: 'Sync',
  access: { credential: 'any', scope: 'admin' },
  operatorOnly: true,
  roles: ['authority'],
} as const;
const path = '/admin/v1/agents';

function describe({ digest, changeFeed }: AppIn<'authority'>, agent: Follower): AgentObject {
  const isWaiting = changeFeed.isWaiting(agent.number);
  return serializeAgent(agent, { digest: digest(agent.agentId), isWaiting });
}

const list = route({
  ...shared,
  method: 'GET',
  path,
  operationId: 'listAgents',
  summary: 'List the agents that use `/sync/v1`: one row for each credential that an agent has',
  query: pageQuery('agents'),
  answers: { 200: enveloped(agentList) },
  async handle({ app, query, sentTo }) {
    const { followers } = app.lists;
    const rows = await followers.list({}, withNext(query));
    const total = await followers.count({});
    const keyOf = ({ number }: Follower): [number] => [number];
    const read = pageOf({ list: 'agents', rows, total, keyOf }, query, sentTo);
    return ok({ agents: read.items.map((agent) => describe(app, agent)) }, read.headers);
  },
});

const forget = route({
  ...shared,
  method: 'DELETE',
  path: `${path}/:number`,
  operationId: 'forgetAgent',
  summary: 'Forget an agent that is gone; if it is not, it begins again as another agent',
  refusals: ['agent_not_found'],
  answers: { 200: enveloped(agentObject) },
  async handle({ app, path: { number }, writeOptions }) {
    if (!/^\d{1,15}$/.test(number)) return notFound('agent');
    const command = { number: Number(number) };
    const forgotten = await app.writer.write('forgetAgent', command, writeOptions);
    return forgotten.ok ? ok(describe(app, forgotten.value)) : forgotten;
  },
});

/** Agents below this authority (src/http/README.md, Admin routes). */
export const agentRoutes: readonly Route[] = [list, forget];
