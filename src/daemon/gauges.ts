import type { OutboxStatus, FollowStatus, Status, UpstreamStatus } from '../service/status.ts';

/** The states that count as depth: changes that wait or need attention. */
const outboxStates = ['pending', 'in_flight', 'uncertain', 'inferred', 'conflicted', 'dead'] as const;
const breakerStates = { closed: 0, half_open: 1, open: 2 } as const;

/** The values of the gauges at one scrape. */
export type ProcessSnapshot = {
  status: Status;
  /** Free bytes for this user on the disk of the state directory; null: unknown. */
  freeBytes: number | null;
  /** The products that an agent is configured with; empty on an authority. */
  productKeys: readonly string[];
};

export type Sample = { labels?: Record<string, string>; value: number };

/** A gauge, and how it is read. */
export type GaugeDescription = {
  name: string;
  help: string;
  labels?: readonly string[];
  read: (snapshot: ProcessSnapshot) => readonly Sample[];
};

/** The gauges of every process. */
export const processGauges: readonly GaugeDescription[] = [
  {
    name: 'info',
    help: 'Always 1.',
    labels: ['version', 'role'],
    read: ({ status: { version, role } }) => [{ labels: { version, role }, value: 1 }],
  },
  {
    name: 'start_time_seconds',
    help: 'When this process started.',
    read: () => one(performance.timeOrigin / 1000),
  },
  {
    name: 'records',
    help: 'License keys known here.',
    labels: ['freshness'],
    read: ({ status: { records } }) =>
      Object.entries(records ?? {}).map(([freshness, value]) => ({ labels: { freshness }, value })),
  },
  {
    name: 'clock_suspect',
    help: '1: the clock of this machine may be wrong: it jumped, was set back, or differs from that of the store.',
    read: ({ status: { clock } }) => one(clock.suspect),
  },
  {
    name: 'storage_full',
    help: '1: the disk is full, and changes are refused.',
    read: ({ status }) => one(status.storage === 'full'),
  },
  {
    name: 'storage_damaged',
    help: '1: the database is damaged, and nothing is changed or sent.',
    read: ({ status }) => one(status.storage === 'damaged'),
  },
  {
    name: 'storage_free_bytes',
    help: 'Free bytes on the disk of the state directory.',
    read: ({ freeBytes }) => (freeBytes === null ? [] : one(freeBytes)),
  },
];

/** The gauges of an authority, or of an agent that answers other agents. */
export const agentGauges: readonly GaugeDescription[] = [
  {
    name: 'sync_agents',
    help: 'Agents known here, one for each of their credentials.',
    read: ({ status: { agents } }) => (agents === null ? [] : one(agents.known)),
  },
  {
    name: 'sync_waiting',
    help: 'Requests of agents that wait for a change now.',
    read: ({ status: { agents } }) => (agents === null ? [] : one(agents.waiting)),
  },
];

/** With `listen.tls`. */
export const certificateGauges: readonly GaugeDescription[] = [
  {
    name: 'tls_certificate_expiry_timestamp_seconds',
    help: 'When the certificate of the TCP listener expires.',
    read: ({ status: { listeners } }) => (listeners.tls === null ? [] : one(listeners.tls.notAfter / 1000)),
  },
];

/** The gauges of an agent. */
export const upstreamGauges: readonly GaugeDescription[] = [
  {
    name: 'upstream_up',
    help: '1: the upstream answered the last request.',
    read: ofUpstream(({ state }) => one(state === 'up')),
  },
  {
    name: 'upstream_breaker_state',
    help: '0: closed, 1: half open, 2: open.',
    read: ofUpstream(({ breaker }) => one(breakerStates[breaker])),
  },
  {
    name: 'upstream_last_success_timestamp_seconds',
    help: 'When the upstream last answered, also before a restart; 0: never.',
    read: ofUpstream(({ lastSuccessAt }) => one((lastSuccessAt ?? 0) / 1000)),
  },
  {
    name: 'upstream_paused',
    help: '1: a person has paused all requests to the upstream.',
    read: ofUpstream(({ state }) => one(state === 'paused')),
  },
  {
    name: 'upstream_credential_refused',
    help: '1: the upstream refuses the credential (401, 403), and its changes wait.',
    labels: ['credential'],
    read: (snapshot) => ofUpstream((upstream) => credentialSamples(upstream, snapshot))(snapshot),
  },
  {
    name: 'upstream_paused_products',
    help: 'Products whose changes wait because the upstream refuses their secret.',
    read: ofUpstream(({ pausedProducts }) => one(pausedProducts.length)),
  },
  {
    name: 'upstream_latchkey',
    help: '1: the upstream is a Latchkey, which carries each change out once. 0: it is not, or has not answered yet.',
    read: ofUpstream(({ protocol }) => one(protocol === 'latchkey')),
  },
  {
    name: 'upstream_followed_keys',
    help: 'License keys whose changes the upstream sends.',
    labels: ['product'],
    read: ofFollows(({ followed }) => followed),
  },
  {
    name: 'upstream_confirmed_timestamp_seconds',
    help: 'When the upstream last confirmed the followed license keys; 0: never.',
    labels: ['product'],
    read: ofFollows(({ confirmedAt }) => (confirmedAt ?? 0) / 1000),
  },
  {
    name: 'outbox_operations',
    help: 'Changes that wait or need attention.',
    labels: ['state'],
    read: ofOutbox(({ depth }) => outboxStates.map((state) => ({ labels: { state }, value: depth[state] }))),
  },
  {
    name: 'outbox_held',
    help: 'Changes that wait for your decision; they count as uncertain, too.',
    read: ofOutbox(({ held }) => one(held)),
  },
  {
    name: 'outbox_oldest_age_seconds',
    help: 'Age of the oldest waiting change; 0: there is none.',
    read: ofOutbox(({ oldestAgeMs }) => one((oldestAgeMs ?? 0) / 1000)),
  },
];

/** The series of a gauge without labels. */
export function one(value: number | boolean): readonly Sample[] {
  return [{ value: Number(value) }];
}

function ofUpstream(read: (upstream: UpstreamStatus) => readonly Sample[]): GaugeDescription['read'] {
  return ({ status: { upstream } }) => (upstream === null ? [] : read(upstream));
}

function ofFollows(read: (follow: FollowStatus) => number): GaugeDescription['read'] {
  return ofUpstream(({ follows }) =>
    follows.map((each) => ({ labels: { product: each.productKey }, value: read(each) })),
  );
}

function ofOutbox(read: (outbox: OutboxStatus) => readonly Sample[]): GaugeDescription['read'] {
  return ({ status: { outbox } }) => (outbox === null ? [] : read(outbox));
}

/** Accepted credentials have the value 0: without a sample, an alert would not end. */
function credentialSamples(
  { pausedProducts, couponsPaused }: UpstreamStatus,
  { productKeys }: ProcessSnapshot,
): readonly Sample[] {
  const products = new Set([...productKeys, ...pausedProducts]);
  return [
    { labels: { credential: 'api_key' }, value: Number(couponsPaused) },
    ...[...products].map((productKey) => ({
      labels: { credential: `product:${productKey}` },
      value: Number(pausedProducts.includes(productKey)),
    })),
  ];
}
