import type { UpstreamObject } from '../../../wire/server/upstream.ts';

/** A condition that the doctor and the overview of the console report. Texts are sentences. */
export type Condition = {
  code: string;
  text: string;
  advice: string;
};

/** `/sync/v1` may be silent for so long while the upstream answers other requests, in ms. */
const silentMs = 5 * 60_000;

/** Whether a gateway in front of a Latchkey hides `/sync/v1`, so that an agent learns of changes only by its own reads. */
export function examineFollowing(upstream: UpstreamObject): Condition[] {
  const { state, follows, paused_products: paused, last_success_at: success } = upstream;
  if (state === 'paused' || success === null) return [];
  const silent = follows.filter(
    ({ product_key: product, followed, confirmed_at: at }) =>
      followed > 0 &&
      !paused.includes(product) &&
      at !== null &&
      Date.parse(success) - Date.parse(at) > silentMs,
  );
  const [since] = silent.flatMap(({ confirmed_at: at }) => at ?? []).toSorted();
  if (since === undefined) return [];
  return [
    {
      code: 'sync_silent',
      text: `The upstream answers, but not at /sync/v1 since ${since}: changes are delivered, but a refund is seen only at the next refresh of its key.`,
      advice: 'Let what is in front of the upstream pass /sync/v1 on.',
    },
  ];
}
