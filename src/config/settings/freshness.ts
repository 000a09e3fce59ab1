import { z } from 'zod';
import { defaultFreshnessPolicy } from '../../domain/agent/freshness.ts';
import { rule, section } from '../schema.ts';
import { duration, wait } from '../types.ts';
import { formatDuration } from '../value/unit.ts';

export const freshness = section(
  z
    .strictObject({
      fresh: duration
        .prefault(formatDuration(defaultFreshnessPolicy.freshMs))
        .meta({ description: 'Up to this age an answer is `fresh`.' }),
      stale: duration
        .prefault(formatDuration(defaultFreshnessPolicy.staleMs))
        .meta({ description: 'Up to this age an answer is `stale`.' }),
      grace: duration.prefault(formatDuration(defaultFreshnessPolicy.graceMs)).meta({
        description:
          'Up to this age an answer is `grace`; beyond it, verifying an enabled key gives 503 until the upstream answers.',
      }),
      refresh: wait.prefault('6h').meta({
        description:
          'How often a known key is read again from the upstream. A change applies to a key from its next read on.',
      }),
      unknown: duration
        .prefault('60s')
        .meta({ description: 'How long the upstream’s 404 is remembered for a key that was never seen.' }),
      gone: duration.prefault('24h').meta({
        description: 'How long reads of a known key must keep getting 404 before it is refused as gone.',
      }),
    })
    .refine(({ fresh, stale }) => fresh <= stale, rule(['fresh', 'stale'], 'must not be longer than stale'))
    .refine(({ stale, grace }) => stale <= grace, rule(['stale', 'grace'], 'must not be longer than grace')),
).meta({
  description:
    'How long an agent relies on the upstream’s last answer for a key. Its age is counted from that answer.',
});
