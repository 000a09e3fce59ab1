import type { Outcome } from '../../../src/domain/outbox/outcome.ts';
import type { SyncUpstream } from '../../../src/service/ports.ts';

const missing: Outcome<never> = {
  outcome: 'not_applied',
  reason: 'missing',
  status: 404,
  detail: 'HTTP 404',
  retryAfterMs: null,
};

/** A plain upstream: it has no change feed. */
export const noSync: SyncUpstream = {
  probe: () => Promise.resolve(missing),
  ask: () => Promise.resolve(missing),
};
