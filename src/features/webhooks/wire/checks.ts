import { type Checks, some } from '../../../wire/check.ts';
import type { StatusObject, StoreEventsObject } from '../../../wire/status.ts';

const list = { command: 'webhook list', page: 'webhooks' };

export const webhookChecks: Checks = {
  webhooks_paused: {
    level: 'fail',
    find: ({ webhooks }) => {
      const paused = some(webhooks?.paused, 'webhook endpoint is paused', 'webhook endpoints are paused');
      return paused && `${paused}: events wait, and are removed after 30 days`;
    },
    advice: 'repair the receiver, and resume the endpoint; see which',
    ...list,
  },
  webhooks_failing: {
    level: 'warn',
    find: ({ webhooks }) => {
      const failing = some(webhooks?.failing, 'webhook endpoint does', 'webhook endpoints do');
      return failing && `${failing} not take events: they wait`;
    },
    advice: 'an endpoint is paused after three days; see why',
    ...list,
  },
  store_event_refused: {
    level: 'warn',
    find: (status) =>
      sendersOf(status).flatMap(({ name, from, refusal, last_refused_at: at }) => {
        const what = refusal === 'wrong_signature' ? 'had a wrong signature' : 'could not be read';
        const event = `the last event for webhooks.in.${name} (${from})`;
        return refusal === null ? [] : [`${event} ${what}, at ${at}: it was ignored`];
      }),
    advice: 'compare its secret, and the store in its `from`, with the store that sends the events',
  },
  store_event_received: {
    level: 'ok',
    find: (status) =>
      sendersOf(status).flatMap(({ name, refusal, last_event_at: at }) => {
        const what =
          at === null ? 'has received no event since the start' : `received its last event at ${at}`;
        return refusal === null ? [`webhooks.in.${name} ${what}`] : [];
      }),
    advice: null,
  },
};

type Sender = StoreEventsObject['senders'][number];

/** `refusal`: of the last event. A refusal before it does not count: that event may have been from somebody else. */
function sendersOf({ store_events: events }: StatusObject): (Sender & { refusal: Sender['last_refusal'] })[] {
  return (events?.senders ?? []).map((sender) => {
    const { last_event_at: at, last_refused_at: refusedAt, last_refusal: refusal } = sender;
    const isLast = refusedAt !== null && (at === null || Date.parse(refusedAt) > Date.parse(at));
    return { ...sender, refusal: isLast ? refusal : null };
  });
}
