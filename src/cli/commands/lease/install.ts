import { readFileSync } from 'node:fs';
import { z } from 'zod';
import { formatReason } from '../../../config/errors.ts';
import { readNamedFile } from '../../../config/file/named-file.ts';
import { defineRequest } from '../../client/request.ts';
import { CommandError, positional } from '../../command.ts';
import { heldLeaseView } from './held-lease.ts';

const content = z.object({
  lease: z.string().optional(),
  notice: z.string().optional(),
  keys: z.string(),
});

export const command = defineRequest({
  command: 'install <file>',
  describe: 'Install the lease that the vendor has signed for this machine',
  builder: { file: positional('File that latchkey lease sign has written; - is standard input', 'file') },
  examples: [['latchkey lease install machine.lease', 'on the machine that made the request']],
  request: ({ file }) => ({ method: 'PUT', path: '/agent/v1/lease', json: readAnswer(file) }),
  view: heldLeaseView,
});

function readAnswer(file: string): z.infer<typeof content> {
  let value: unknown;
  try {
    value = JSON.parse(file === '-' ? readFileSync(0, 'utf8') : readNamedFile(file));
  } catch (error) {
    if (error instanceof SyntaxError) throw new CommandError([notALease(file)]);
    throw new CommandError([`latchkey: cannot read ${file}: ${formatReason(error)}`]);
  }
  const read = content.safeParse(withoutEnvelope(value));
  if (!read.success) throw new CommandError([notALease(file)]);
  return read.data;
}

/** The answer of `POST /lease/v1` works as well. */
function withoutEnvelope(value: unknown): unknown {
  return typeof value === 'object' && value !== null && 'data' in value ? value.data : value;
}

function notALease(file: string): string {
  return `latchkey: ${file} is not a file of: latchkey lease sign`;
}
