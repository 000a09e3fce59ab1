import { fileAnswerObject } from '../../../wire/lease.ts';
import { request } from '../../client/request.ts';
import { defineCommand, positional, textOption } from '../../command.ts';
import { readTextFile } from '../../values.ts';

/** The machine makes another request, with the number that the answer tells it. */
const outOfSequence = [
  'latchkey: the request does not follow the last one of this machine: its state or yours was restored, or this is an old file',
  'No lease was signed. Install the answer on the machine; then make and sign another request: latchkey lease request KEY',
];

export const command = defineCommand({
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
});
