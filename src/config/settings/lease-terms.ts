import { z } from 'zod';
import { defaultLeaseTerms } from '../../domain/catalogue.ts';
import { count, duration, optional } from '../setting-types.ts';
import { formatDuration } from '../value/unit.ts';

const { holdMs, termMs, refreshMs } = defaultLeaseTerms;

/** The settings of leases in a product of an agent. */
export const leaseTerms = {
  seats: optional(count).meta({
    description:
      'How many devices may use one license key at the same time, 1 to 1000000. If omitted, any number. This setting and the next four are only for an agent that issues leases.',
    unit: 'devices',
  }),
  hold: duration.prefault(formatDuration(holdMs)).meta({
    description:
      'How long a seat stays taken after the last lease of its device has expired, 0 to 1000d. Long times bind a license to machines; with 0 and a short `term`, seats are free again by themselves.',
  }),
  term: duration
    .prefault(formatDuration(termMs))
    .meta({ description: 'How long a lease is valid, 1m to 400d, but never longer than `freshness.grace`.' }),
  refresh: duration
    .prefault(formatDuration(refreshMs))
    .meta({ description: 'After which time a device renews its lease, at least 10s and less than `term`.' }),
  lease_email: z
    .boolean()
    .prefault(false)
    .meta({ description: 'Whether leases contain the e-mail address of the buyer.' }),
};
