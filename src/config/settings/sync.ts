import { z } from 'zod';
import { defaultFreshnessPolicy } from '../../domain/agent/license-snapshot.ts';
import { defaultBackoffPolicy, defaultReconcileAfterMs } from '../../domain/outbox/delivery.ts';
import { defaultBreakerPolicy } from '../../domain/outbox/outcome.ts';
import { rule, section } from '../section.ts';
import { count, duration, rate, wait } from '../setting-types.ts';
import { formatDuration } from '../value/unit.ts';

const backoff = section(
  z
    .strictObject({
      first: wait.prefault(formatDuration(defaultBackoffPolicy.firstMs)).meta({
        description: 'The maximum wait after the first failure; it doubles with each further one.',
      }),
      max: wait
        .prefault(formatDuration(defaultBackoffPolicy.maxMs))
        .meta({ description: 'The longest wait between two attempts.' }),
    })
    .refine(({ first, max }) => first <= max, rule(['first', 'max'], 'must not be longer than max')),
);

const breaker = section(
  z.strictObject({
    failures: count.prefault(defaultBreakerPolicy.failures).meta({
      description: 'After this many failures in a row, only probes are sent.',
      unit: 'failures',
    }),
    open: wait
      .prefault(formatDuration(defaultBreakerPolicy.openMs))
      .meta({ description: 'How long to wait before a probe is sent.' }),
  }),
);

export const sync = section(
  z.strictObject({
    rate: rate.prefault(5).meta({
      description:
        'The maximum request rate to the upstream. Bursts of up to two seconds of requests are allowed. It does not apply to a Latchkey.',
      unit: 'requests a second',
    }),
    concurrency: count.prefault(4).meta({
      description:
        'How many license keys are processed at the same time; four times as many if the upstream is a Latchkey. The upstream sees at most twice as many connections, plus two, and one more for each product.',
      unit: 'license keys',
    }),
    reconcile_after: wait.prefault(formatDuration(defaultReconcileAfterMs)).meta({
      description:
        'How long to wait after a lost response before the key is read back. It must be longer than a request can be in transit.',
    }),
    writers: z.enum(['many', 'single']).prefault('many').meta({
      description:
        '`single` promises that this agent alone changes the use counts of its keys; lost answers can then be reconciled with certainty.',
    }),
    on_uncertain: z.enum(['infer', 'hold']).prefault('infer').meta({
      description:
        'What happens to an operation whose response was lost if another writer could explain the count: `infer` decides as the count suggests, `hold` waits for the decision of a person.',
    }),
    max_pending: count.prefault(1_000_000).meta({
      description: 'If this many operations wait for the upstream, further changes are refused with 507.',
      unit: 'operations',
    }),
    keep: duration.prefault('30d').meta({
      description:
        'How long changes that were delivered to a Latchkey are kept, so that it gets them again after it was restored. It gets no change that is older than 29 days. With another upstream, finished changes are kept for 7 days.',
    }),
    backoff: backoff.prefault({}).meta({
      description: 'How long an operation that was not applied waits before it is sent again.',
    }),
    breaker: breaker.prefault({}).meta({ description: 'When the upstream is considered unavailable.' }),
  }),
).meta({ description: 'How an agent sends changes to the upstream and reads keys from it.' });

export const freshness = section(
  z
    .strictObject({
      fresh: duration
        .prefault(formatDuration(defaultFreshnessPolicy.freshMs))
        .meta({ description: 'Up to this age a license is `fresh`.' }),
      stale: duration
        .prefault(formatDuration(defaultFreshnessPolicy.staleMs))
        .meta({ description: 'Up to this age a license is `stale`.' }),
      grace: duration.prefault(formatDuration(defaultFreshnessPolicy.graceMs)).meta({
        description:
          'Up to this age a license is `grace`. After that, verifying an enabled key returns 503 until the upstream responds.',
      }),
      expiry_grace: duration.prefault(formatDuration(defaultFreshnessPolicy.expiryGraceMs)).meta({
        description:
          'How long a license is valid after its end while the upstream cannot say whether it was renewed.',
      }),
      refresh: wait.prefault('6h').meta({
        description:
          'How often a known key is read again from the upstream. A change of this setting applies to a key from its next read on.',
      }),
      unknown: duration.prefault('60s').meta({
        description:
          'How long a 404 of the upstream is kept at most. For a key that was never seen it is 2, 4, 8 … seconds at first.',
      }),
      gone: duration.prefault('24h').meta({
        description: 'How long reads of a known key must return 404 before the key is refused.',
      }),
    })
    .refine(({ fresh, stale }) => fresh <= stale, rule(['fresh', 'stale'], 'must not be longer than stale'))
    .refine(({ stale, grace }) => stale <= grace, rule(['stale', 'grace'], 'must not be longer than grace')),
).meta({
  description:
    'How long an agent relies on what the upstream last said about a license key. The age is counted from that response.',
});
