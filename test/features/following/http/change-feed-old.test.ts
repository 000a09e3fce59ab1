import { afterAll, beforeAll, expect, test } from 'vitest';
import { newId } from '../../../support/harness/keyed-authority.ts';
import { openAuthority, type FollowedAuthority } from '../support/followed-authority.ts';

const day = 86_400_000;

let authority: FollowedAuthority;
beforeAll(async () => {
  authority = await openAuthority();
});
afterAll(() => authority[Symbol.asyncDispose]());

function newAgent(): string {
  return newId().replaceAll('-', '');
}

test('a follower that was silent for almost a month begins anew, because its keys may be forgotten', async () => {
  const agent = newAgent();
  const { epoch, cursor } = await authority.changes({ agent, follow: ['KEY-1'] });
  await authority.time.advance(28 * day);
  const told = await authority.changes({ agent, epoch, cursor });
  expect(told.reset).toBeUndefined();
  await authority.time.advance(29.98 * day);
  expect(await authority.changes({ agent, epoch, cursor: told.cursor })).toMatchObject({ reset: true });
});
