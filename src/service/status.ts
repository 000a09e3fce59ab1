import type { OperationState } from '../domain/outbox/operation.ts';
import type { PreloadProgress } from '../domain/agent/preload.ts';
import type { Outcome } from '../domain/outbox/outcome.ts';
import type { RoleName } from '../domain/role.ts';

/** The upstream as an agent sees it. Times are epoch ms. */
export type UpstreamStatus = {
  state: 'up' | 'down' | 'paused' | 'unknown';
  since: number;
  protocol: 'plain' | 'latchkey';
  breaker: 'closed' | 'open' | 'half_open';
  lastSuccessAt: number | null;
  lastError: string | null;
  lastErrorAt: number | null;
  /** Since when nothing of the last error is left; null: it is not over, or there was none. */
  recoveredAt: number | null;
  /** Until when the upstream asked to be left alone (`Retry-After`); null: it did not, or that is over. */
  retryAfterUntil: number | null;
  /** When the upstream is asked again whether it is back; null: it is not away, or it is being asked. */
  nextAttemptAt: number | null;
  /** The proxy to the upstream, without its password; null: none is used. */
  proxy: string | null;
  /** Products whose secret the upstream does not accept. */
  pausedProducts: readonly string[];
  /** The upstream does not accept the API key. */
  couponsPaused: boolean;
};

/** Counts what goes up, for `/metrics`. */
export type UpstreamMeter = {
  answered(outcome: Outcome<unknown>['outcome']): void;
  /** A count moved otherwise than this agent's own operations say. */
  unexpected(): void;
};

/** The outbox in numbers. */
export type OutboxStatus = {
  depth: Readonly<Record<OperationState, number>>;
  /** Of the uncertain: those that only a person can decide. */
  held: number;
  oldestAgeMs: number | null;
};

/**
 * How the store can be used. `full`, `read_only`: changes are refused, and reading goes on. `damaged`: nothing is
 * changed or sent any more. `unavailable`, `slow`, `refused`: a database cannot be used, or not by this process.
 */
export type StorageState = 'ok' | 'full' | 'damaged' | 'unavailable' | 'slow' | 'read_only' | 'refused';

export type RecordCounts = { fresh: number; stale: number; grace: number; expired: number; disabled: number };

/** What `/statusz` tells. */
export type Status = {
  role: RoleName;
  version: string;
  instance: string;
  uptimeMs: number;
  /** `tls`: of the certificate that `tcp` shows. */
  listeners: {
    tcp: string | null;
    socket: string | null;
    sockets: readonly string[];
    /** Those of the sockets whose files were removed: nobody can connect there. */
    lost: readonly string[];
    tls: { notAfter: number } | null;
  };
  upstream: UpstreamStatus | null;
  outbox: OutboxStatus | null;
  /** Null on an authority. */
  preload: PreloadProgress | null;
  storage: StorageState;
  /** Null: the database has not told since the start. */
  records: RecordCounts | null;
  clock: { now: number; suspect: boolean; highWater: number };
  /** Answered since the start. */
  totals: Totals;
};

/** Verifies that were answered, and uses that were recorded. */
export type Totals = { verifies: number; uses: number };
