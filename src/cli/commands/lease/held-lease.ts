import type { View } from '../../client/request.ts';
import { textOption } from '../../command.ts';
import { type Cell, formatFields, instant, type Tone, toned, whole } from '../../format.ts';
import type { Hint } from '../../hint.ts';
import { heldLeaseObject, type HeldLeaseObject } from '../../../wire/holder/held-lease.ts';

export const activationsPath = '/agent/v1/activations';
/** The issuer may take this long (`leases.timeout`), and the daemon a little more, in ms. */
export const issuerTimeoutMs = 40_000;

export const productOption = textOption('Product key; needed if the holder has several products');

export const replacesOption = textOption(
  'Take over the seat of this activation, for example of a lost device, once it has not renewed its lease for the refresh time of the product; latchkey activate lists them when no seat is free',
);

export const leaseTones: Readonly<Record<HeldLeaseObject['state'], Tone>> = {
  active: 'good',
  waiting: 'warning',
  none: 'bad',
  disabled: 'bad',
  expired: 'bad',
  ended: 'faint',
  replaced: 'bad',
  blocked: 'bad',
};

/** A lease of this device. */
export const heldLeaseView: View<HeldLeaseObject> = {
  schema: heldLeaseObject,
  show: (held, _answer, hint) => formatFields(heldLeaseFields(held, hint)),
};

function heldLeaseFields(held: HeldLeaseObject, hint: Hint): Readonly<Record<string, Cell>> {
  const { state, last_error: error } = held;
  return {
    license: whole(held.license_key),
    state: [
      toned(state, leaseTones[state]),
      state === 'waiting' ? ' for the issuer, which is asked again' : '',
    ],
    product: held.product_key,
    activation: whole(held.activation_id),
    expires: instant(held.expires_at),
    'renewed from': instant(held.refresh_at),
    'uses to report': held.pending_uses === 0 ? null : held.pending_uses,
    problem: error === null ? null : [toned(error, 'bad'), `; see ${hint('doctor')}`],
  };
}
