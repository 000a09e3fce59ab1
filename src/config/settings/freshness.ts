import { defaultFreshnessPolicy } from '../../domain/agent/freshness.ts';
import type { SectionOf } from '../description.ts';

const keys = {
  fresh: {
    kind: 'duration',
    default: defaultFreshnessPolicy.freshMs as number,
    purpose: 'Up to this age an answer is `fresh`.',
  },
  stale: {
    kind: 'duration',
    default: defaultFreshnessPolicy.staleMs as number,
    purpose: 'Up to this age an answer is `stale`.',
  },
  grace: {
    kind: 'duration',
    default: defaultFreshnessPolicy.graceMs as number,
    purpose:
      'Up to this age an answer is `grace`; beyond it, verifying an enabled key gives 503 until the upstream answers.',
  },
  refresh: {
    kind: 'wait',
    default: '6h',
    purpose:
      'How often a known key is read again from the upstream. A change applies to a key from its next read on.',
  },
  unknown: {
    kind: 'duration',
    default: '60s',
    purpose: 'How long the upstream’s 404 is remembered for a key that was never seen.',
  },
  gone: {
    kind: 'duration',
    default: '24h',
    purpose: 'How long reads of a known key must keep getting 404 before it is refused as gone.',
  },
} as const;

export const freshness: SectionOf<typeof keys> = {
  kind: 'section',
  purpose:
    'How long an agent relies on the upstream’s last answer for a key. Its age is counted from that answer.',
  keys,
  rules: [
    {
      about: ['fresh', 'stale'],
      text: 'must not be longer than stale',
      holds: ({ fresh, stale }) => fresh <= stale,
    },
    {
      about: ['stale', 'grace'],
      text: 'must not be longer than grace',
      holds: ({ stale, grace }) => stale <= grace,
    },
  ],
};
