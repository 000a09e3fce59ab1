import { z } from 'zod';
import { defaultFreshnessPolicy } from '../../domain/agent/license-snapshot.ts';
import { rule, section } from '../section.ts';
import { duration, wait } from '../setting-types.ts';
import { formatDuration } from '../value/unit.ts';

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
