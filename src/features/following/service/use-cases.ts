import type { FeatureUseCases } from '../../../service/audit.ts';
import { followFromBelow } from './chain.ts';
import { followKeys, forgetAgent, pruneFollowers } from './followers.ts';
import { recordChanges } from './followed-changes.ts';
import { makeFollowerId } from './follower-id.ts';

export const useCases = {
  followFromBelow,
  followKeys,
  forgetAgent,
  makeFollowerId,
  pruneFollowers,
  recordChanges,
};

type FollowingUseCases = typeof useCases;

declare module '../../../service/writer.ts' {
  interface UseCases extends FollowingUseCases {}
}

export const audited: FeatureUseCases['audited'] = {
  forgetAgent: ({ number, reach }) => ({ act: 'agent.forget', subject: String(number), detail: reach }),
};
