import type { Feature } from '../../feature.ts';
import { noLocks } from '../../service/locks.ts';

/** A page on which buyers see their licenses, free seats and get leases for machines without a network. */
export const buyers: Feature = {
  name: 'buyers',
  needs: ['leases', 'webhooks'],
  useCases: {
    load: () => import('./service/use-cases.ts'),
    locks: { freeBuyersSeat: noLocks, requestRecovery: noLocks },
  },
  process: async ({ clock, current }) => {
    const settings = current.configuration.listen.public?.buyers ?? null;
    if (settings === null) return {};
    const { buyersPage } = await import('./http/page.ts');
    return { page: buyersPage(settings, () => clock.monotonic()) };
  },
};
