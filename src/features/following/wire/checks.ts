import type { Checks } from '../../../wire/check.ts';

/** The change feed may be silent for so long while the upstream answers other requests, in ms. */
const silentMs = 5 * 60_000;

export const followingChecks: Checks = {
  /** What is in front of a Latchkey hides the change feed, so that an agent learns of changes only by its own reads. */
  sync_silent: {
    level: 'warn',
    find: ({ upstream }) => {
      if (upstream === null || upstream.state === 'paused' || upstream.last_success_at === null) return null;
      const { follows, paused_products: paused, last_success_at: success } = upstream;
      const silent = follows.flatMap(({ product_key: product, followed, confirmed_at: at }) =>
        followed === 0 || paused.includes(product) ? [] : (at ?? []),
      );
      const [since] = silent.toSorted();
      return (
        since !== undefined &&
        Date.parse(success) - Date.parse(since) > silentMs &&
        `the upstream answers, but not at /sync/v1 since ${since}: changes are delivered, but a refund is seen only at the next refresh of its key`
      );
    },
    advice: 'let what is in front of the upstream pass /sync/v1 on',
  },
};
