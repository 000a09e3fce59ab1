import { type GaugeDescription, one } from '../../../daemon/gauges.ts';
import { commitBuckets, type Metrics } from '../../../daemon/metrics.ts';
import type { RepeatReason, TransactionMeasure } from '../store/writer.ts';

const repeatReasons: readonly RepeatReason[] = ['conflict', 'away', 'doubt'];
const databaseStates = ['unavailable', 'slow', 'refused', 'full', 'read_only'] as const;

/** The connections of this process to its database: all, free, the limit, and the waiting reads and writes. */
export type ConnectionCounts = { connections: number; free: number; waiting: number; max: number };

export type DatabaseMetrics = {
  transacted(measure: TransactionMeasure): void;
  repeated(reason: RepeatReason): void;
};

/** Adds the metrics of a node. */
export function databaseMetrics(metrics: Metrics, connections: () => ConnectionCounts): DatabaseMetrics {
  const repeats = metrics.counter('database_repeats_total', 'Writes that were retried.', ['reason']);
  for (const reason of repeatReasons) repeats.inc({ reason }, 0);
  const waits = metrics.histogram(
    'database_connection_wait_seconds',
    'How long a write waited for a connection.',
    commitBuckets,
  );
  metrics.addGauges(databaseGauges(connections));
  return {
    transacted({ waitedMs, durationMs }) {
      metrics.committed({ durationMs });
      waits.observe(waitedMs / 1000);
    },
    repeated: (reason) => repeats.inc({ reason }),
  };
}

const databaseGauges = (counts: () => ConnectionCounts): readonly GaugeDescription[] => [
  {
    name: 'database_state',
    help: '1: this node sees the database in this state (src/features/postgres/store/README.md, States of the database).',
    labels: ['state'],
    read: ({ status: { storage } }) =>
      databaseStates.map((state) => ({ labels: { state }, value: Number(storage === state) })),
  },
  {
    name: 'database_connections',
    help: 'Connections to the database.',
    labels: ['state'],
    read() {
      const { connections, free } = counts();
      return [
        { labels: { state: 'used' }, value: connections - free },
        { labels: { state: 'free' }, value: free },
      ];
    },
  },
  {
    name: 'database_connections_limit',
    help: 'The limit of connections of this node (store.postgres.pool).',
    read: () => one(counts().max),
  },
  {
    name: 'database_waiting',
    help: 'Reads and writes that wait for a connection now.',
    read: () => one(counts().waiting),
  },
];
