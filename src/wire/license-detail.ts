import { z } from 'zod';
import { localLicense } from '../domain/agent/license-snapshot.ts';
import type { Purchase } from '../domain/catalogue.ts';
import type { SoldLicense } from '../domain/license.ts';
import {
  licenseObject,
  licenseState,
  serializeLicense,
  stateOfSnapshot,
  stateOfSold,
  type KnownSnapshot,
} from './license.ts';
import { explainedOperation, type ExplainedOperation } from './operation.ts';
import { instant } from './parameters.ts';
import { serializerOf, type Inside } from './server/shape.ts';

const count = z.int().min(0);

/** How an agent knows a license. */
const licenseFreshness = z
  .object({
    state: z.enum(['fresh', 'stale', 'grace', 'expired']),
    confirmed_at: instant.describe('When the upstream confirmed the license.'),
    grace_until: instant.describe(
      'Until when the license is answered if the upstream does not confirm it again.',
    ),
    confirmed: z
      .object({ uses: z.int(), enabled: z.boolean() })
      .meta({ id: 'ConfirmedLicense' })
      .describe('What the upstream said. The license itself contains the changes that are not sent yet.'),
  })
  .meta({ id: 'LicenseFreshness' });

/** `GET /admin/v1/licenses/:key`: what the page of one license shows. */
export const licenseDetail = z
  .object({
    license: licenseObject,
    state: licenseState,
    product: z
      .object({
        product_key: z.string(),
        name: z.string().nullable().describe('Null: unknown here.'),
        seats: z.int().nullable().describe('How many devices may have a seat; null: any number.'),
      })
      .meta({ id: 'LicenseProduct' }),
    activations: count.describe('Devices that have asked for a seat.'),
    seats_taken: count,
    purchase: z
      .object({ purchase_id: z.string(), date: instant, refunded_at: instant.nullable() })
      .meta({ id: 'LicensePurchase' })
      .nullable()
      .describe('Null: not sold here, or this is an agent.'),
    freshness: licenseFreshness.nullable().describe('Null on an authority.'),
    operations: z
      .array(explainedOperation)
      .describe('Changes that have not reached the upstream, the oldest first; at most 100.'),
    operations_total: count,
  })
  .meta({ id: 'LicenseDetail' });

export type LicenseDetail = z.infer<typeof licenseDetail>;

type DetailFacts = Pick<Inside<typeof licenseDetail>, 'product' | 'activations' | 'seatsTaken'>;

const writeDetail = serializerOf(
  licenseDetail.omit({ license: true, operations: true, operations_total: true }),
);

/** A license of an authority. */
export function serializeSoldDetail(
  sold: SoldLicense,
  { purchase, ...facts }: DetailFacts & { purchase: Purchase | null },
): LicenseDetail {
  return {
    license: serializeLicense(sold),
    ...writeDetail({
      ...facts,
      state: stateOfSold(sold),
      purchase: purchase && { ...purchase, date: purchase.createdAt },
      freshness: null,
    }),
    operations: [],
    operations_total: 0,
  };
}

/** A license that an agent has stored. `graceUntil`: epoch ms. */
export function serializeSnapshotDetail(
  known: KnownSnapshot,
  {
    graceUntil,
    operations,
    operationsTotal,
    ...facts
  }: DetailFacts & { graceUntil: number; operations: ExplainedOperation[]; operationsTotal: number },
): LicenseDetail {
  const { license, freshness, confirmedAt } = known;
  return {
    license: serializeLicense(localLicense(known)),
    ...writeDetail({
      ...facts,
      state: stateOfSnapshot(known),
      purchase: null,
      freshness: { state: freshness, confirmedAt, graceUntil, confirmed: license },
    }),
    operations,
    operations_total: operationsTotal,
  };
}
