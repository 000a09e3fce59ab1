import { z } from 'zod';
import { heldState, pendingUses } from '../domain/held-lease.ts';
import type { HeldLeaseStatus } from '../service/ports.ts';
import { maxDocumentBytes, nonceText } from './lease.ts';
import { boolean, identifier, instant, parameters, text, licenseKeyText } from '../../../wire/parameters.ts';
import { serializerOf } from '../../../wire/shape.ts';

const productKey = identifier.optional().describe('Needed if the holder has several products.');

/** `GET /agent/v1/lease`. */
export const leaseQuery = parameters({
  license_key: licenseKeyText,
  product_key: productKey,
  nonce: nonceText.optional(),
});

/** `POST /agent/v1/activations`. */
export const activateParameters = parameters(
  { license_key: licenseKeyText, product_key: productKey, replaces: identifier.optional() },
  { id: 'Activation' },
);

/** `POST /agent/v1/lease/request`. */
export const leaseRequestParameters = parameters(
  {
    license_key: licenseKeyText,
    product_key: productKey,
    end: boolean.optional(),
    replaces: identifier.optional(),
    refused: boolean.optional().describe('The issuer has refused the last request and recorded it.'),
  },
  { id: 'LeaseRequest' },
);

/** `PUT /agent/v1/lease`: the answer of the issuer. */
export const installParameters = parameters(
  {
    lease: text(maxDocumentBytes).optional(),
    notice: text(maxDocumentBytes).optional(),
    sequence: text(maxDocumentBytes).optional(),
    keys: text(maxDocumentBytes),
  },
  { id: 'LeaseAnswer' },
);

export const leaseRequestObject = z.object({ request: z.string() }).meta({ id: 'SignedRequest' });

export const programAnswerObject = z
  .object({
    lease: z.string().optional(),
    notice: z.string().optional(),
    proof: z.string().optional().describe('Only with a nonce.'),
    keys: z.string(),
  })
  .meta({ id: 'HeldDocuments', description: 'It has either a lease or a notice.' });

export const heldLeaseObject = z
  .object({
    license_key: z.string(),
    product_key: z.string(),
    activation_id: z.string().nullable(),
    state: z
      .enum(['active', 'disabled', 'expired', 'ended', 'replaced', 'blocked', 'waiting', 'none'])
      .describe('`waiting`: the issuer has not answered the request yet. `none`: it has refused.'),
    expires_at: instant.nullable(),
    refresh_at: instant.nullable(),
    pending_uses: z.int().describe('Uses that the issuer has not confirmed.'),
    last_error: z.string().nullable().describe('Why the last request got no lease.'),
  })
  .meta({ id: 'HeldLease' });

export type HeldLeaseObject = z.infer<typeof heldLeaseObject>;

export const heldLeaseList = z
  .object({ activations: z.array(heldLeaseObject) })
  .meta({ id: 'HeldLeaseList' });

const writeHeldLease = serializerOf(heldLeaseObject);

export function serializeHeldLease({ held, lease, lastError, now }: HeldLeaseStatus): HeldLeaseObject {
  return writeHeldLease({
    ...held,
    state: heldState(held, now),
    expiresAt: lease && lease.expiresAt,
    refreshAt: lease && lease.refreshAt,
    pendingUses: pendingUses(held),
    lastError,
  });
}
