import type { OperationState } from '../domain/outbox/operation.ts';
import type { PreloadProgress } from '../domain/agent/preload.ts';
import type { Outcome } from '../domain/outbox/outcome.ts';
import type { RoleName } from '../domain/role.ts';

/** The upstream as an agent sees it. Times are epoch ms. */
export type UpstreamStatus = {
  state: 'up' | 'down' | 'paused' | 'unknown';
  since: number;
  /** `unknown`: the upstream has not answered yet. */
  protocol: 'unknown' | 'plain' | 'latchkey';
  /** The license keys of each product that are followed; empty unless the upstream is a Latchkey. */
  follows: readonly FollowStatus[];
  breaker: 'closed' | 'open' | 'half_open';
  lastSuccessAt: number | null;
  lastError: string | null;
  lastErrorAt: number | null;
  /** When the last error ended; null: it still lasts, or there was none. */
  recoveredAt: number | null;
  /** Until when the upstream asked us to wait (`Retry-After`); null: it does not ask now. */
  retryAfterUntil: number | null;
  /** When the upstream is probed next; null: it is up, or a probe is under way. */
  nextAttemptAt: number | null;
  /** `sync.rate`: the most requests a second. */
  rate?: number;
  /** The proxy to the upstream, without its password; null: none is used. */
  proxy: string | null;
  /** Products whose secret the upstream rejects. */
  pausedProducts: readonly string[];
  /** The upstream rejects the API key. */
  couponsPaused: boolean;
};

/** The license keys of a product that this agent follows at a Latchkey. */
export type FollowStatus = {
  productKey: string;
  /** How many. */
  followed: number;
  /** When the upstream last confirmed all of them (epoch ms); null: it has not answered yet. */
  confirmedAt: number | null;
};

/** What the limiter of the upstream knows of it. */
export type LimiterStatus = Omit<UpstreamStatus, 'proxy' | 'protocol' | 'follows'>;

/** Counts requests to the upstream, for `/metrics`. */
export type UpstreamMeter = {
  answered(outcome: Outcome<unknown>['outcome']): void;
  /** The upstream's count differs from what this agent's operations explain. */
  unexpected(): void;
};

export type OutboxStatus = {
  depth: Readonly<Record<OperationState, number>>;
  /** Uncertain operations that only a person can decide. */
  held: number;
  oldestAgeMs: number | null;
};

/**
 * `full`, `read_only`: changes are refused, reads work. `damaged`: nothing is changed or sent any more. `unavailable`,
 * `slow`, `refused`: the database cannot be used, or not by this process.
 */
export type StorageState = 'ok' | 'full' | 'damaged' | 'unavailable' | 'slow' | 'read_only' | 'refused';

export type FreshnessCounts = {
  fresh: number;
  stale: number;
  grace: number;
  expired: number;
  disabled: number;
};

/** The license keys of an agent that the upstream answers with 404 and that are not refused yet. */
export type MissingStatus = {
  /** At most `maxCountedMissing`. */
  count: number;
  /** The first 404 (epoch ms). */
  since: number;
};

export const maxCountedMissing = 1_000;

/** The leases of a holder. Times are epoch ms. */
export type HolderStatus = {
  issuer: string;
  /** The thumbprint of the key of this device. */
  device: string;
  lastSuccessAt: number | null;
  lastError: string | null;
  lastErrorAt: number | null;
  /** When the first lease ends; null: there is no valid lease. */
  nextEnd: number | null;
  /** Uses that the issuer has not confirmed. */
  pendingUses: number;
};

/** The agents of an authority, and how many of their requests wait for a change at this process. */
export type AgentsStatus = { known: number; waiting: number };

/** The signing key and the key statement of an issuer of leases. Times are epoch ms. */
export type IssuerStatus = {
  issuer: string;
  /** The version of the key statement. */
  version: number;
  /** The thumbprint of the key that signs, and when it ends. */
  kid: string;
  notAfter: number;
  /** How many requests wait for a change of their license. */
  waiting: number;
};

/** The issuer of leases, and the devices that have asked for seats; null: not read from the database. */
export type LeaseIssuerStatus = IssuerStatus & { activations: number | null; seatsTaken: number | null };

/** A sender of events since the start of the process. Times are epoch ms; null: never. */
export type SenderStatus = {
  name: string;
  from: string;
  /** When an event with a right signature was last received. */
  lastEventAt: number | null;
  /** When an event was last refused because of its signature or its form. */
  lastRefusedAt: number | null;
  lastRefusal: 'wrong_signature' | 'not_understood' | null;
};

/** The events that an agent receives from stores. */
export type StoreEventStatus = { senders: readonly SenderStatus[]; waitingReads: number };

/** The endpoints that get events. */
export type WebhookStatus = {
  endpoints: number;
  /** Whose last attempt failed. */
  failing: number;
  paused: number;
  /** When the oldest event that waits happened (epoch ms); null: none waits. */
  oldestAt: number | null;
};

/** The content of `/statusz`. */
export type Status = {
  role: RoleName;
  version: string;
  instance: string;
  uptimeMs: number;
  /** `otherTcp`: the further addresses of `listen.tcp`. `tls`: the certificate of all of them. */
  listeners: {
    tcp: string | null;
    otherTcp: readonly string[];
    socket: string | null;
    sockets: readonly string[];
    public: string | null;
    /** Sockets whose files were removed, so that no client can connect. */
    lost: readonly string[];
    tls: { notAfter: number } | null;
  };
  upstream: UpstreamStatus | null;
  outbox: OutboxStatus | null;
  /** Null on an authority. */
  preload: PreloadProgress | null;
  /** Null: there are none. */
  missing: MissingStatus | null;
  /** Null unless this is a holder. */
  leases: HolderStatus | null;
  /** Null on a holder, and until `lease setup` was run. */
  issuer: LeaseIssuerStatus | null;
  /** Null unless this is an agent that is configured to receive events of stores. */
  storeEvents: StoreEventStatus | null;
  storage: StorageState;
  /** Null: not read from the database since the start. */
  records: FreshnessCounts | null;
  /** `storeAheadMs`: how far the clock of the upstream is ahead; null unless several dates differ from this machine's. */
  clock: { now: number; suspect: boolean; storeAheadMs: number | null; highWater: number };
  /** Null: there is no webhook endpoint, or it was not read from the database. */
  webhooks: WebhookStatus | null;
  /** Null: nothing here answers agents, or they were not read from the database. */
  agents: AgentsStatus | null;
  totals: Totals;
};

/** Verify responses and recorded uses since the start. */
export type Totals = { verifies: number; uses: number };
