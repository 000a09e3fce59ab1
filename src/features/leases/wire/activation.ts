import { z } from 'zod';
import type { Activation } from '../domain/lease.ts';
import { hasSeat } from '../domain/lease-rules.ts';
import { parseDatetime } from '../../../domain/time.ts';
import { pageShape } from '../../../wire/page.ts';
import {
  boolean,
  identifier,
  instant,
  instantText,
  oneOf,
  parameters,
  licenseKeyText,
  searchText,
} from '../../../wire/parameters.ts';
import { serializerOf } from '../../../wire/shape.ts';
import { maxDocumentBytes } from './lease.ts';

const states = ['active', 'ended', 'replaced', 'blocked'] as const;

/** A device that has asked for a seat of a license, at an issuer. */
export const activationObject = z
  .object({
    activation_id: z.string(),
    license_key: z.string(),
    product_key: z.string(),
    device: z.string().describe('The thumbprint of the key of the device (RFC 7638).'),
    device_name: z.string().nullable(),
    state: z.enum(states).describe('`active`: the device may renew its lease.'),
    has_seat: z.boolean(),
    seat_until: instant
      .nullable()
      .describe('When the seat is free if the device does not renew; null: it has none.'),
    expires_at: instant.nullable().describe('When the last lease ends; null: there was none.'),
    created_at: instant,
    renewed_at: instant.nullable().describe('When the device last got a lease.'),
    uses_recorded: z.int(),
    uses_returned: z.int(),
    copied_at: instant
      .nullable()
      .describe('Since when two copies of the state of the device seem to be in use; null: never.'),
  })
  .meta({ id: 'Activation' });

export type ActivationObject = z.infer<typeof activationObject>;

export const activationList = z
  .object({ activations: z.array(activationObject) })
  .meta({ id: 'ActivationList' });

export const activationQuery = parameters({
  license_key: licenseKeyText.optional(),
  product_key: identifier.optional(),
  state: oneOf(states).optional(),
  copied: boolean.optional(),
  search: searchText('license key', 'name of the device', 'e-mail address of the buyer').optional(),
  has_seat: oneOf(['true']).optional().describe('Only devices that have a seat now.'),
  ...pageShape('activations'),
});

const writeActivation = serializerOf(activationObject);

/** `now`: epoch ms. */
export function serializeActivation(activation: Activation, now: number): ActivationObject {
  const isTaken = hasSeat(activation, now);
  return writeActivation({
    ...activation,
    hasSeat: isTaken,
    seatUntil: isTaken ? activation.seatUntil : null,
    expiresAt: activation.expiresAt || null,
    renewedAt: activation.renewedAt || null,
    usesRecorded: activation.uses.recorded,
    usesReturned: activation.uses.returned,
  });
}

/** A day ends with its last second, UTC. */
function parseEnd(text: string): number | null {
  return parseDatetime(/^\d{4}-\d\d-\d\d$/.test(text) ? `${text}T23:59:59Z` : text);
}

/** A request for a lease that came as a file. */
export const requestFileParameters = parameters(
  {
    request: z
      .string('not_text: must be text')
      .min(1, 'required: must not be empty')
      .max(maxDocumentBytes, `too_long: must have at most ${maxDocumentBytes} characters`),
    until: instantText(parseEnd, 'not_a_datetime: must be a date or an RFC 3339 datetime', {
      pattern: String.raw`^\d{4}-\d\d-\d\d`,
      description:
        'When the lease ends: a datetime, or a day, at its end in UTC. If omitted, after the term of the product.',
    }).optional(),
  },
  // A misspelt `until` would sign a lease of another length.
  { unknown: 'refused', id: 'RequestFile' },
);
