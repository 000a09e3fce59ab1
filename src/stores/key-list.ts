import type { KeyPage } from '../domain/agent/preload.ts';
import type { Outcome } from '../domain/outbox/outcome.ts';
import { done, failWith } from '../domain/problem/problem.ts';
import type { SyncControl } from '../service/ports.ts';
import type { Turns } from './activations.ts';

type ListKeys = (productId: string, after: string | null, signal: AbortSignal) => Promise<Outcome<KeyPage>>;

/** Lists license keys at a store, within the rate’s share for refreshes. */
export function keyLister(limiter: Turns, listKeys: ListKeys): NonNullable<SyncControl['listKeys']> {
  return async (productId, after, signal) => {
    const admission = await limiter.admit('refresh', signal, 'license keys');
    if (!admission.admitted) return failWith('upstream_unreachable', admission.detail);
    const outcome = await listKeys(productId, after, signal);
    limiter.observe(outcome, { owner: productId, subject: 'license keys' });
    if (outcome.outcome === 'applied') return done(outcome.value);
    const { detail, retryAfterMs } = outcome;
    if (outcome.outcome === 'not_applied' && outcome.reason === 'rejected')
      return failWith('upstream_refused', detail);
    const wait = retryAfterMs === null ? {} : { retryAfterS: Math.ceil(retryAfterMs / 1000) };
    return failWith('upstream_unreachable', detail, wait);
  };
}
