import { expect, test } from 'vitest';
import { hasRoom } from '../../../../src/features/following/service/followers.ts';
import type { AuthorityTransaction } from '../../../../src/service/tables.ts';
import { openApp } from '../../../support/app/http-app.ts';

const hour = 3_600_000;
const now = 100 * hour;
const maximum = 3;

async function add(
  { followers }: AuthorityTransaction,
  agentId: string,
  { reach = 'default/PRESS', seenAt = now } = {},
): Promise<void> {
  const row = { agentId, reach, accountId: 'default', productKey: 'PRESS', seenAt };
  await followers.add({ ...row, followed: 0, createdAt: 0 });
}

test('the agents of one product leave room for those of another', async () => {
  await using opened = await openApp();
  await opened.write(async (transaction) => {
    for (const agentId of ['a', 'b', 'c']) await add(transaction, agentId);
    expect(await hasRoom(transaction, 'default/PRESS', now, maximum)).toBe(false);
    expect(await hasRoom(transaction, 'default/OTHER', now, maximum)).toBe(true);
  });
});

test('in a full product a follower that was silent for two hours makes room, and one that was not silent does not', async () => {
  await using opened = await openApp();
  await opened.write(async (transaction) => {
    const { followers } = transaction;
    await add(transaction, 'fresh');
    await add(transaction, 'live', { seenAt: now - 1.9 * hour });
    await add(transaction, 'other', { reach: 'default/OTHER', seenAt: 0 });
    await add(transaction, 'silent', { seenAt: now - 2.1 * hour });
    await followers.follow((await followers.get('silent', 'default/PRESS'))?.number ?? 0, ['KEY-1']);
    expect(await hasRoom(transaction, 'default/PRESS', now, maximum)).toBe(true);
    const left = ['fresh', 'live', 'silent'].map(async (id) => await followers.get(id, 'default/PRESS'));
    expect((await Promise.all(left)).map((agent) => agent?.agentId)).toEqual(['fresh', 'live', undefined]);
    expect(await followers.countOfReach('default/OTHER')).toBe(1);
    await add(transaction, 'next');
    expect(await hasRoom(transaction, 'default/PRESS', now, maximum)).toBe(false);
  });
});
