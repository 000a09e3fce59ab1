import type { BackoffPolicy } from '../../domain/outbox/backoff.ts';
import type { RefreshPolicy } from '../../domain/agent/observation.ts';

/** How operations are delivered (configuration `sync` and `freshness`). Times are ms. */
export type SyncPolicy = {
  /** Quiet time before a lost answer is read back. */
  fenceMs: number;
  /** `single`: this agent alone changes `uses`. */
  writers: 'single' | 'many';
  /** What becomes of doubt that another writer could explain. */
  onDoubt: 'infer' | 'hold';
  backoff: BackoffPolicy;
  /** How far apart two 404s must be for the key to be gone. */
  goneMs: number;
} & RefreshPolicy;
