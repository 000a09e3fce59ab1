import type { z } from 'zod';
import { signedAnswerObject } from '../../../wire/lease.ts';
import { defineRequest, type View } from '../../client/request.ts';
import { positional, textOption } from '../../command.ts';
import { readTextFile } from '../../values.ts';

const answerView: View<z.infer<typeof signedAnswerObject>> = {
  schema: signedAnswerObject,
  show: (answer) => JSON.stringify(answer, null, 2),
};

export const command = defineRequest({
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
  request: ({ file, until }) => ({
    method: 'POST',
    path: '/admin/v1/leases',
    json: { request: readTextFile(file), until },
  }),
  view: answerView,
});
