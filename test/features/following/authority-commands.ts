import type { CommandOf } from '../../../src/service/writer.ts';
import { tenant } from '../../support/app/authority-commands.ts';
import { at } from '../../support/builders/store-builders.ts';

const agentId = '0123456789abcdef0123456789abcdef';

type OfAgents = 'followKeys' | 'forgetAgent' | 'pruneFollowers';

/** A command for each use case of this feature (support/app/authority-commands.ts). */
export const commands: { [Name in OfAgents]: CommandOf<Name> } = {
  followKeys: { agentId, tenant, startsAnew: true, follow: ['KEY', 'NO-KEY'], unfollow: ['NO-KEY'] },
  // The agent stays for the next request.
  pruneFollowers: { before: at, limit: 10 },
  forgetAgent: { number: 1 },
};
