import type { BreakerPolicy } from '../domain/outbox/outcome.ts';
import type { SyncPolicy } from '../service/outbox/queue.ts';
import type { LookupLimits } from './lookup-queue.ts';

/** What the configuration says about requests to the upstream. */
export type SyncOptions = {
  /** Requests a second. */
  rate: number;
  /** How many queues send at once. */
  concurrency: number;
  breaker: BreakerPolicy;
  policy: SyncPolicy;
  /** How long an unknown key is remembered, in ms. */
  unknownMs: number;
  lookups: LookupLimits;
  /** After this long without a request, a probe is sent, in ms. */
  probeMs: number;
  /** The ids of the configured products. */
  productIds: readonly string[];
  /** The key by which people know a product. */
  productKeyOf: (productId: string) => string;
  hasApiKey: boolean;
};
