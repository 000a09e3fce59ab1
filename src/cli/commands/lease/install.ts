import { z } from 'zod';
import { requestAndShow } from '../../client/request.ts';
import { CommandError, defineCommand, positional } from '../../command.ts';
import { readTextFile } from '../../values.ts';
import { heldLeaseView } from './held-lease.ts';

const content = z.object({
  lease: z.string().optional(),
  notice: z.string().optional(),
  sequence: z.string().optional(),
  keys: z.string(),
});

export const command = defineCommand({
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
});

function readAnswer(file: string): z.infer<typeof content> {
  const read = content.safeParse(withoutEnvelope(parseJson(readTextFile(file))));
  if (!read.success) throw new CommandError([`latchkey: ${file} is not a file of: latchkey lease sign`]);
  return read.data;
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** The answer of `POST /lease/v1` works as well. */
function withoutEnvelope(value: unknown): unknown {
  return typeof value === 'object' && value !== null && 'data' in value ? value.data : value;
}
