import { defineList } from '../../client/request.ts';
import { textOption } from '../../command.ts';
import { whole } from '../../format.ts';
import { activationObject } from '../../../wire/issuer/activation.ts';
import { activationRow, activationsPath } from './activation.ts';

export const command = defineList({
  command: 'list',
  describe: 'List the devices that have asked for seats',
  builder: {
    license: textOption('Only of this license key'),
    product: textOption('Only of this product', 'product'),
    state: {
      choices: ['active', 'ended', 'replaced', 'blocked'],
      describe: 'Only devices in this state',
    },
    copied: {
      type: 'boolean',
      describe: 'Only devices of whose state two copies seem to be in use',
    },
  },
  examples: [['latchkey activation list --copied', 'look for licenses that several machines share']],
  list: {
    path: activationsPath,
    member: 'activations',
    item: activationObject,
    row: (activation) => ({ ...activationRow(activation), 'license key': whole(activation.license_key) }),
  },
  query: ({ license, product, state, copied }) => ({
    license_key: license,
    product_key: product,
    state,
    copied: copied === undefined ? undefined : String(copied),
  }),
});
