import { expect, test } from 'vitest';
import { sha256 } from '../../../../src/daemon/system/machine.ts';
import type { AgentObject } from '../../../../src/features/following/wire/change-feed.ts';
import { byAccount, byOperator, byOther, byProduct } from '../../../support/harness/keyed-authority.ts';
import {
  agentA,
  agentB,
  dataOf,
  openAuthority,
  type FollowedAuthority,
} from '../support/followed-authority.ts';

const path = '/admin/v1/agents';

async function listed({ server }: FollowedAuthority, query = ''): Promise<AgentObject[]> {
  const answer = await server.inject({ url: `${path}${query}`, headers: byOperator });
  return (dataOf(answer) as { agents: AgentObject[] }).agents;
}

test('an agent is listed with how many keys it follows, for each of its credentials, and without its id', async () => {
  await using authority = await openAuthority();
  await authority.changes({ follow: ['KEY-1', 'KEY-2'] });
  await authority.changes({}, byAccount);
  await authority.changes({ agent: agentB }, byOther);
  const agents = await listed(authority);
  const fingerprint = sha256(agentA).slice(0, 12);
  const at = expect.stringMatching(/^\d{4}-\d\d-\d\dT/) as string;
  const shared = { account_id: 'default', waiting: false, created_at: at, seen_at: at };
  expect(agents).toEqual([
    { ...shared, number: 1, fingerprint, product_key: 'PRESS', followed: 2 },
    { ...shared, number: 2, fingerprint, product_key: null, followed: 0 },
    {
      ...shared,
      number: 3,
      fingerprint: sha256(agentB).slice(0, 12),
      product_key: 'OTHER',
      followed: 0,
    },
  ]);
  expect(JSON.stringify(agents)).not.toContain(agentA);
  const page = await authority.server.inject({ url: `${path}?limit=2`, headers: byOperator });
  expect(page.headers['x-total-count']).toBe('3');
  const next = /<([^>]+)>; rel="next"/.exec(String(page.headers.link))?.[1] ?? '';
  const answer = await authority.server.inject({ url: next, headers: byOperator });
  const rest = dataOf(answer) as { agents: AgentObject[] };
  expect(rest.agents.map(({ number }) => number)).toEqual([3]);
});

test('an agent that waits for a change is listed as waiting', async () => {
  await using authority = await openAuthority();
  await authority.changes({ follow: ['KEY-1'] });
  const { epoch, cursor } = await authority.changes({});
  const waits = authority.changes({ epoch, cursor, wait: 25 });
  await expect.poll(async () => (await listed(authority)).map(({ waiting }) => waiting)).toEqual([true]);
  await authority.time.advance(25_000);
  await waits;
  expect((await listed(authority)).map(({ waiting }) => waiting)).toEqual([false]);
});

test('a forgotten agent follows its keys again', async () => {
  await using authority = await openAuthority();
  const { epoch, cursor } = await authority.changes({ follow: ['KEY-1'] });
  const url = `${path}/1`;
  const forgotten = await authority.server.inject({ method: 'DELETE', url, headers: byOperator });
  expect(dataOf(forgotten)).toMatchObject({ number: 1, followed: 1 });
  expect(await listed(authority)).toEqual([]);
  expect(await authority.changes({ epoch, cursor })).toMatchObject({ reset: true });
});

test('an agent that is not there, and a number that is none, are not found', async () => {
  await using authority = await openAuthority();
  for (const number of ['1', '0', '-1', 'x', '1'.repeat(16)]) {
    const answer = await authority.server.inject({
      method: 'DELETE',
      url: `${path}/${number}`,
      headers: byOperator,
    });
    expect([number, answer.statusCode, answer.json<{ code: string }>().code]).toEqual([
      number,
      404,
      'agent_not_found',
    ]);
  }
});

test("an account's token and other credentials see no agents, and forget none", async () => {
  await using authority = await openAuthority();
  await authority.changes({});
  const scopes = ['admin'];
  const issued = await authority.post('/admin/v1/tokens', { scopes, account_id: 'default' }, byOperator);
  const { token } = issued.json<{ data: { token: string } }>().data;
  for (const headers of [{ authorization: `Bearer ${token}` }, byAccount, byProduct]) {
    const list = await authority.server.inject({ url: path, headers });
    const forget = await authority.server.inject({ method: 'DELETE', url: `${path}/1`, headers });
    expect([list.statusCode, forget.statusCode]).toEqual([403, 403]);
  }
  expect(await listed(authority)).toHaveLength(1);
});
