import { commandGroup, helpLine } from '../../cli/command.ts';
import { reachOf } from '../../domain/latchkey.ts';
import { licenseKeysIn } from '../../domain/license.ts';
import type { Feature } from '../../feature.ts';
import { noLocks } from '../../service/locks.ts';
import { forgetFollower } from './service/follower-id.ts';
import { tables } from './store/tables.ts';
import { followingChecks } from './wire/checks.ts';

/** What a Latchkey tells another about changes of license keys. */
export const following: Feature = {
  name: 'following',
  routes: async () => {
    const [{ changeFeedRoutes }, { agentRoutes }] = await Promise.all([
      import('./http/change-feed.ts'),
      import('./http/agent.ts'),
    ]);
    return [...changeFeedRoutes, ...agentRoutes];
  },
  useCases: {
    load: () => import('./service/use-cases.ts'),
    locks: {
      // A change of a license that is being followed must see that it is followed.
      followKeys: ({ agentId, tenant, follow }) => ({
        syncAgent: [agentId, reachOf(tenant)],
        licenses: [follow.flatMap(spellingsOf)],
      }),
      forgetAgent: noLocks,
      pruneFollowers: noLocks,
    },
    local: ['followFromBelow', 'makeFollowerId', 'recordChanges'],
    byOneNode: { pruneFollowers: { ok: true, value: { removed: 0 } } },
    essential: ['makeFollowerId', 'pruneFollowers', 'recordChanges'],
  },
  tables,
  lists: ['followers'],
  onCopy: forgetFollower,
  atLatchkey: async () => (await import('./daemon/follow-upstream.ts')).followUpstream,
  process: async (parts) => (await import('./daemon/process.ts')).startFollowing(parts),
  findings: followingChecks,
  commands: [
    commandGroup(
      'agent',
      'List and forget the agents that send changes to an authority',
      () => import('./cli/agent.ts'),
    ),
  ],
  replacedHelp: {
    audit: helpLine('agent audit', 'List the agents of an authority; see who did what'),
  },
};

/** The spellings under which a license key may be stored. */
function spellingsOf(licenseKey: string): string[] {
  return [...new Set([licenseKey, ...licenseKeysIn(licenseKey)])];
}
