import type { Operation } from '../../../src/domain/outbox/operation.ts';

let made = 0;

/** A use of a license key that waits for its first attempt. */
export function buildOperation(with_: Partial<Operation> = {}): Operation {
  made += 1;
  return {
    id: `operation-${made}`,
    seq: 1,
    kind: 'usage',
    amount: 1,
    subject: 'KEY-1',
    productId: 'press',
    createdAt: Date.UTC(2026, 0, 1),
    credential: null,
    requestId: null,
    attempts: 0,
    failures: 0,
    nextAt: null,
    outage: false,
    lastError: null,
    reconcileAt: null,
    upstream: null,
    seenEnabled: null,
    seenRevision: null,
    payload: null,
    progress: { state: 'pending', maybeApplied: false, unanswered: false },
    ...with_,
  };
}
