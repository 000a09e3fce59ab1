import { defaultBackoffPolicy, defaultReconcileAfterMs } from '../../domain/outbox/delivery.ts';
import { defaultBreakerPolicy } from '../../domain/outbox/circuit-breaker.ts';
import type { SectionOf } from '../description.ts';

const backoffKeys = {
  first: {
    kind: 'wait',
    default: defaultBackoffPolicy.firstMs as number,
    purpose: 'The maximum wait after the first failure; it doubles with each further one.',
  },
  max: {
    kind: 'wait',
    default: defaultBackoffPolicy.maxMs as number,
    purpose: 'The upper limit of that maximum.',
  },
} as const;

const backoff: SectionOf<typeof backoffKeys> = {
  kind: 'section',
  purpose: 'How long an operation that was not applied waits before it is sent again.',
  keys: backoffKeys,
  rules: [
    {
      about: ['first', 'max'],
      text: 'must not be longer than max',
      holds: ({ first, max }) => first <= max,
    },
  ],
};

export const sync = {
  kind: 'section',
  purpose: 'How an agent sends changes to the upstream and reads keys from it.',
  keys: {
    rate: {
      kind: 'rate',
      default: 5,
      unit: 'requests a second',
      purpose: 'The maximum request rate to the upstream; a burst may be two seconds’ worth.',
    },
    concurrency: {
      kind: 'count',
      default: 4,
      unit: 'license keys',
      purpose:
        'How many keys are processed at the same time, over at most twice as many connections plus two.',
    },
    reconcile_after: {
      kind: 'wait',
      default: defaultReconcileAfterMs as number,
      purpose:
        'How long to wait after a lost answer before the key is read back; it must exceed the longest time that a request can be in transit.',
    },
    writers: {
      kind: 'word',
      words: ['many', 'single'],
      default: 'many',
      purpose:
        '`single` promises that this agent alone changes the use counts of its keys; lost answers can then be settled with certainty.',
    },
    on_doubt: {
      kind: 'word',
      words: ['infer', 'hold'],
      default: 'infer',
      purpose:
        'What happens to an operation whose answer was lost when another writer could explain the count: `infer` settles it as the count suggests, `hold` leaves it for a person to decide.',
    },
    max_pending: {
      kind: 'count',
      default: 1_000_000,
      unit: 'operations',
      purpose: 'Once this many wait for the upstream, further changes are refused with 507.',
    },
    backoff: backoff as typeof backoff,
    breaker: {
      kind: 'section',
      purpose: 'When the upstream is considered away.',
      keys: {
        failures: {
          kind: 'count',
          default: defaultBreakerPolicy.failures as number,
          unit: 'failures',
          purpose: 'After this many in a row, nothing is sent but a probe.',
        },
        open: {
          kind: 'wait',
          default: defaultBreakerPolicy.openMs as number,
          purpose: 'How long to wait before the probe is sent.',
        },
      },
    },
  },
} as const;
