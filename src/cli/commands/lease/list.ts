import { defineRequest, type View } from '../../client/request.ts';
import { formatTable, instant, toned, whole } from '../../format.ts';
import { heldLeaseList } from '../../../wire/holder/held-lease.ts';
import type { z } from 'zod';
import { activationsPath, leaseTones } from './held-lease.ts';

const listView: View<z.infer<typeof heldLeaseList>> = {
  schema: heldLeaseList,
  show: ({ activations }) =>
    activations.length === 0
      ? 'This device has no lease.'
      : formatTable(
          activations.map((held) => ({
            license: whole(held.license_key),
            product: held.product_key,
            state: toned(held.state, leaseTones[held.state]),
            expires: instant(held.expires_at),
            problem: held.last_error,
          })),
        ),
};

export const command = defineRequest({
  command: 'list',
  describe: 'List the leases of this device (holder of leases)',
  builder: {},
  examples: [['latchkey lease list', 'on the machine that runs your software']],
  epilogue: 'At the issuer, latchkey activation list shows the devices of all customers.',
  request: () => ({ path: activationsPath }),
  view: listView,
});
