import { callDaemon } from '../client/daemon.ts';
import { requestAndShow, showResponse } from '../client/request.ts';
import { CommandError, defineCommand, type GlobalOptions } from '../command.ts';
import { exitCode } from '../exit-code.ts';
import type { Output } from '../output.ts';
import { statusView } from './status/status-view.ts';
import { healthObject } from '../../wire/status.ts';

export const command = defineCommand({
  command: 'status',
  describe: 'Show the state of the daemon',
  builder: {
    check: { type: 'boolean', default: false, describe: 'Only check: exit 0 when it is ready' },
  },
  examples: [['latchkey status --check', 'for probes; needs no token']],
  handler: async (args, output) => {
    if (args.check) return await check(args, output);
    return await requestAndShow(args, output, { path: '/statusz' }, statusView);
  },
});

/** Needs no token. */
async function check(options: GlobalOptions, output: Output): Promise<number> {
  const called = await callDaemon(options, { path: '/readyz' }, false);
  if (!called.ok) throw new CommandError(called.lines, called.code);
  const { answer } = called;
  const code = await showResponse(options, output, answer, {
    schema: healthObject,
    show: ({ status, reasons }) => [status, ...reasons].join('\n'),
  });
  return answer.status === 200 ? code : exitCode.failed;
}
