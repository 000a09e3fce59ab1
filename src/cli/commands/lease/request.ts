import type { z } from 'zod';
import { defineRequest, type View } from '../../client/request.ts';
import { licenseKeyPositional, readLicenseKey } from '../../values.ts';
import { leaseRequestObject } from '../../../wire/holder/held-lease.ts';
import { productOption, replacesOption } from './held-lease.ts';

const requestView: View<z.infer<typeof leaseRequestObject>> = {
  schema: leaseRequestObject,
  show: ({ request }) => request,
};

export const command = defineRequest({
  command: 'request <key..>',
  describe: 'Write a signed request for a lease, for a machine without a network',
  builder: {
    key: licenseKeyPositional,
    end: { type: 'boolean', describe: 'Give the seat back instead' },
    refused: {
      type: 'boolean',
      describe:
        'The vendor has no seat left, no move left, or has blocked this device: make the next request',
    },
    product: productOption,
    replaces: replacesOption,
  },
  examples: [
    [
      'latchkey lease request ABCDE-FGHJK-LMNPQ-RSTUV > machine.req',
      'then, at the vendor: latchkey lease sign machine.req',
    ],
    ['latchkey lease request ABCDE-FGHJK-LMNPQ-RSTUV --end > machine.req', 'gives the seat back'],
  ],
  epilogue:
    'The same request is written again until its answer is installed. It also reports the uses that were counted here. While a request with uses is unanswered, no other request is written: the vendor may have counted them.',
  request: (args) => ({
    method: 'POST',
    path: '/agent/v1/lease/request',
    json: {
      license_key: readLicenseKey(args.key),
      product_key: args.product,
      replaces: args.replaces,
      ...(args.end === true && { end: true }),
      ...(args.refused === true && { refused: true }),
    },
  }),
  view: requestView,
});
