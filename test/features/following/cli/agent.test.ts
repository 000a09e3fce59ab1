import { expect, test } from 'vitest';
import type { AgentObject } from '../../../../src/features/following/wire/change-feed.ts';
import { openCliShop } from '../../../support/app/cli-shop.ts';
import { buildFollower } from '../support/follower.ts';

test('an operator lists agents and forgets one', async () => {
  await using shop = await openCliShop();
  const agentId = 'b'.repeat(32);
  await shop.write(async ({ followers }) => {
    await followers.add(buildFollower({ productKey: 'PRESS' }));
    await followers.add(buildFollower({ agentId }));
  });
  const list = await shop.run('agent', 'list');
  expect(list).toMatchObject({ code: 0, err: '' });
  expect(list.out).toMatch(/number +agent +account +product +followed +state +seen +created/i);
  expect(list.out).toMatch(/\n1 +[0-9a-f]{12} +default +PRESS +0 +away /);
  expect(list.out).toMatch(/\n2 +[0-9a-f]{12} +default +all \(API key\) +0 /);
  expect(list.out).not.toContain(agentId);
  const forgotten = await shop.run('agent', 'forget', '1');
  expect(forgotten).toMatchObject({ code: 0, err: '' });
  expect(forgotten.out).toMatch(/^forgotten\n\nnumber +1\n/);
  const { agents } = await shop.read<{ agents: AgentObject[] }>('agent', 'list');
  expect(agents.map(({ number }) => number)).toEqual([2]);
  expect(await shop.run('agent', 'forget', '1')).toMatchObject({
    code: 1,
    out: '',
    err: expect.stringContaining('agent_not_found') as string,
  });
});
