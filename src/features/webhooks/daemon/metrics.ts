import { type GaugeDescription, one } from '../../../daemon/gauges.ts';
import type { Metrics } from '../../../daemon/metrics.ts';
import type { RoleName } from '../../../domain/role.ts';
import { eventResults, type EventResult } from '../service/store-event.ts';

export type WebhookMetrics = {
  /** Counts an event of a store. */
  readonly countReceived: (webhook: string, result: EventResult) => void;
  /** Counts an attempt to deliver an event. */
  readonly countAttempt: (result: 'delivered' | 'failed') => void;
};

/** Adds the metrics of webhooks. `senders`: the names in `webhooks.in`. */
export function webhookMetrics(
  metrics: Metrics,
  role: RoleName,
  senders: readonly string[] = [],
): WebhookMetrics {
  const received = metrics.counter('webhook_events_received_total', 'Events of stores received.', [
    'webhook',
    'result',
  ]);
  const attempts = metrics.counter('webhook_attempts_total', 'Attempts to deliver an event.', ['result']);
  // Prometheus computes a rate only for a series that existed before the first count.
  for (const webhook of senders)
    for (const result of eventResults.filter((each) => each !== 'unknown_name'))
      received.inc({ webhook, result }, 0);
  for (const result of ['delivered', 'failed']) attempts.inc({ result }, 0);
  if (role !== 'holder') metrics.addGauges(endpointGauges);
  if (role === 'agent') metrics.addGauges(storeEventGauges);
  return {
    countReceived: (webhook, result) => received.inc({ webhook, result }),
    countAttempt: (result) => attempts.inc({ result }),
  };
}

/** The gauges of the events that a process sends: an authority or an agent. */
const endpointGauges: readonly GaugeDescription[] = [
  {
    name: 'webhook_endpoints',
    help: 'Endpoints that get events.',
    labels: ['state'],
    read: ({ status: { webhooks } }) => {
      const { endpoints = 0, failing = 0, paused = 0 } = webhooks ?? {};
      return [
        { labels: { state: 'active' }, value: endpoints - failing - paused },
        { labels: { state: 'failing' }, value: failing },
        { labels: { state: 'paused' }, value: paused },
      ];
    },
  },
  {
    name: 'webhook_oldest_event_timestamp_seconds',
    help: 'When the oldest event that waits for an endpoint happened; 0: none waits.',
    read: ({ status: { webhooks } }) => one((webhooks?.oldestAt ?? 0) / 1000),
  },
];

/** The gauges of an agent that receives events of stores. */
const storeEventGauges: readonly GaugeDescription[] = [
  {
    name: 'webhook_reads_waiting',
    help: 'License keys that wait to be read because of an event of a store.',
    read: ({ status: { storeEvents } }) => (storeEvents === null ? [] : one(storeEvents.waitingReads)),
  },
];
