import { reachOf } from '../../../../src/domain/latchkey.ts';
import type { NewFollower } from '../../../../src/features/following/service/tables.ts';
import { at } from '../../../support/builders/store-builders.ts';

export function buildFollower(changes: Partial<NewFollower> = {}): NewFollower {
  const agent = {
    agentId: 'a'.repeat(32),
    accountId: 'default',
    productKey: null,
    followed: 0,
    createdAt: at,
    seenAt: at,
    ...changes,
  };
  return { reach: reachOf(agent), ...agent };
}
