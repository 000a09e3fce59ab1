import { z } from 'zod';
import {
  heldLeaseList,
  heldLeaseObject,
  type HeldLeaseObject,
  leaseRequestObject,
} from '../wire/held-lease.ts';
import { fileAnswerObject } from '../wire/lease.ts';
import { defineRequest, pathOf, request, requestAndShow, type View } from '../../../cli/client/request.ts';
import { CommandError, defineCommand, positional, textOption } from '../../../cli/command.ts';
import { exitCode } from '../../../cli/exit-code.ts';
import {
  type Cell,
  formatFields,
  formatTable,
  instant,
  type Tone,
  toned,
  whole,
} from '../../../cli/format.ts';
import type { Hint } from '../../../domain/finding.ts';
import { licenseKeyPositional, readLicenseKey, readTextFile } from '../../../cli/values.ts';
import { setup } from './setup.ts';
import { signingKeyCommands } from './signing-key.ts';
import { parseJson } from '../../../domain/text.ts';

const activationsPath = '/agent/v1/activations';

/** The issuer may take this long (`leases.timeout`), and the daemon a little more, in ms. */
const issuerTimeoutMs = 40_000;

const productOption = textOption('Product key; needed if the holder has several products');

const replacesOption = textOption(
  'Take over the seat of this activation, for example of a lost device, once it has not renewed its lease for the refresh time of the product; latchkey activate lists them when no seat is free',
);

const leaseTones: Readonly<Record<HeldLeaseObject['state'], Tone>> = {
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
const heldLeaseView: View<HeldLeaseObject> = {
  schema: heldLeaseObject,
  show: (held, _answer, hint) => formatFields(heldLeaseFields(held, hint)),
};

/** The machine makes another request, with the number that the answer tells it. */
const outOfSequence = [
  'latchkey: the request does not follow the last one of this machine: its state or yours was restored, or this is an old file',
  'No lease was signed. Install the answer on the machine; then make and sign another request: latchkey lease request KEY',
];

const content = z.object({
  lease: z.string().optional(),
  notice: z.string().optional(),
  sequence: z.string().optional(),
  keys: z.string(),
});

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

export const commands = [
  setup,
  defineRequest({
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
    view: { schema: leaseRequestObject, show: ({ request: signed }) => signed },
  }),
  defineCommand({
    command: 'sign <file>',
    describe: 'Sign a lease for a machine without a network',
    builder: {
      file: positional('File that latchkey lease request has written; - is standard input', 'file'),
      until: textOption(
        'When the lease ends: a date (its end in UTC) or a datetime; default: the term of the product',
      ),
    },
    examples: [
      [
        'latchkey lease sign machine.req --until 2027-06-30 > machine.lease',
        'then, on the machine: latchkey lease install machine.lease',
      ],
    ],
    epilogue:
      'It counts the uses of the request, and takes or frees the seat of the machine. The audit log records it. The answer is a notice if the license is disabled or the seat was given back.',
    async handler(args, output) {
      const { file, until } = args;
      const json = { request: readTextFile(file), until };
      const call = { method: 'POST', path: '/admin/v1/leases', json } as const;
      const { data: answer, raw } = await request(args, call, fileAnswerObject);
      const code = await output.result(raw, JSON.stringify(answer, null, 2));
      if (answer.sequence !== undefined) output.printError(outOfSequence);
      return code;
    },
  }),
  defineCommand({
    command: 'install <file>',
    describe: 'Install the lease that the vendor has signed for this machine',
    builder: { file: positional('File that latchkey lease sign has written; - is standard input', 'file') },
    examples: [['latchkey lease install machine.lease', 'on the machine that made the request']],
    async handler(args, output) {
      const json = readAnswer(args.file);
      const call = { method: 'PUT', path: '/agent/v1/lease', json } as const;
      const code = await requestAndShow(args, output, call, heldLeaseView);
      if (json.sequence !== undefined)
        output.printError(['This file has no lease. Make another request: latchkey lease request KEY']);
      return code;
    },
  }),
  defineRequest({
    command: 'list',
    describe: 'List the leases of this device (holder of leases)',
    builder: {},
    examples: [['latchkey lease list', 'on the machine that runs your software']],
    epilogue: 'At the issuer, latchkey activation list shows the devices of all customers.',
    request: () => ({ path: activationsPath }),
    view: listView,
  }),
  {
    command: 'signing-key',
    describe: 'Rotate and list the keys that sign leases',
    commands: signingKeyCommands,
  },
];

export const activate = defineRequest({
  command: 'activate <key..>',
  describe: 'Take a seat of a license key for this device (holder of leases)',
  builder: { key: licenseKeyPositional, product: productOption, replaces: replacesOption },
  examples: [
    ['latchkey activate ABCDE-FGHJK-LMNPQ-RSTUV', 'on the machine that runs your software'],
    [
      'latchkey activate ABCDE-FGHJK-LMNPQ-RSTUV --replaces 01997a3e-1111-7222-8333-444455556666',
      'takes over the seat of a lost device',
    ],
  ],
  request: (args) => ({
    method: 'POST',
    path: activationsPath,
    json: { license_key: readLicenseKey(args.key), product_key: args.product, replaces: args.replaces },
    timeoutMs: issuerTimeoutMs,
  }),
  view: {
    ...heldLeaseView,
    exitCode: ({ state }) => (state === 'active' || state === 'waiting' ? exitCode.done : exitCode.failed),
  },
});

export const deactivate = defineRequest({
  command: 'deactivate <key..>',
  describe: 'Give the seat of this device back, so that another device can take it',
  builder: { key: licenseKeyPositional },
  examples: [['latchkey deactivate ABCDE-FGHJK-LMNPQ-RSTUV', 'before the machine is sold, for example']],
  epilogue:
    'If the issuer cannot be reached, it learns this as soon as it can. Until then the state is waiting.',
  request: (args) => ({
    method: 'DELETE',
    path: pathOf(activationsPath, readLicenseKey(args.key)),
    timeoutMs: issuerTimeoutMs,
  }),
  view: heldLeaseView,
});

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

function readAnswer(file: string): z.infer<typeof content> {
  const read = content.safeParse(withoutEnvelope(parseJson(readTextFile(file))));
  if (!read.success) throw new CommandError([`latchkey: ${file} is not a file of: latchkey lease sign`]);
  return read.data;
}

/** The answer of `POST /lease/v1` works as well. */
function withoutEnvelope(value: unknown): unknown {
  return typeof value === 'object' && value !== null && 'data' in value ? value.data : value;
}
