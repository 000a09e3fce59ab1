import { z } from 'zod';
import { defaultLeaseTerms, leaseTermLimits } from '../../domain/catalogue.ts';
import { isDistinct } from '../file/tree.ts';
import { foreignStores } from '../foreign-stores.ts';
import { rule, section } from '../section.ts';
import {
  count,
  duration,
  optional,
  secret,
  secretFile,
  text,
  productKey,
  mask,
  type Secret,
} from '../setting-types.ts';
import { formatDuration } from '../value/unit.ts';

const { holdMs, termMs, refreshMs } = defaultLeaseTerms;
const { maxSeats, maxHoldMs, minTermMs, maxTermMs, minRefreshMs } = leaseTermLimits;

/** The settings of leases in a product of an agent. */
const leaseTerms = {
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

const storeKeys = Object.values(foreignStores)
  .map(({ title, productKey: { name, where } }) => `at ${title}, the \`${name}\` (${where})`)
  .join('; ');

const product = section(
  z
    .strictObject({
      key: productKey.meta({
        description: `The key of the product; ${storeKeys}.`,
      }),
      name: optional(text).meta({
        description:
          'The display name in the console, and the `product_name` in the dialect `payhip`, until the upstream provides one.',
      }),
      secret: optional(secret).meta({
        description:
          'The secret of the product at the upstream. An agent needs the secret or its file, unless `upstream.store` is given; a holder must not have one.',
      }),
      secret_file: secretFile('secret'),
      ...leaseTerms,
    })
    .refine(
      ({ seats }) => seats === null || seats <= maxSeats,
      rule(['seats'], `must be at most ${maxSeats}`),
    )
    .refine(({ hold }) => hold <= maxHoldMs, rule(['hold'], `must be at most ${formatDuration(maxHoldMs)}`))
    .refine(
      ({ term }) => term >= minTermMs && term <= maxTermMs,
      rule(['term'], `must be ${formatDuration(minTermMs)} to ${formatDuration(maxTermMs)}`),
    )
    .refine(
      ({ refresh, term }) => refresh >= minRefreshMs && refresh < term,
      rule(['refresh', 'term'], `must be at least ${formatDuration(minRefreshMs)} and less than term`),
    ),
);

export const products = z
  .array(product)
  .refine((value) => isDistinct(value.map(({ key }) => key)), 'the same key is given twice')
  // A request that carries a secret means one product, and a renamed product is recognized by its secret.
  .refine(
    (value) => isDistinct(value.flatMap((each) => (each.secret === null ? [] : [comparable(each.secret)]))),
    'the same secret is given twice',
  )
  .prefault([])
  .meta({
    description:
      'The products of the upstream or the issuer whose license keys an agent or a holder serves. An authority keeps its products in its own store.',
  });

/** The mask stands for a secret whose file could not be read: it equals no other secret. */
function comparable(value: Secret): unknown {
  return value.reveal() === mask ? value : value.reveal();
}
