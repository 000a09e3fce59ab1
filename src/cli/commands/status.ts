import { ask, report } from '../client/ask.ts';
import { reachDaemon } from '../client/reach.ts';
import { type Command, defineCommand, type GlobalOptions } from '../command.ts';
import { exitCode } from '../exit-code.ts';
import type { Output } from '../output.ts';
import { readiness, statusView } from './status-view.ts';

/** `status`. */
export const statusCommand: Command = defineCommand(
  (syntax) =>
    syntax
      .option('check', { type: 'boolean', default: false, describe: 'Only: exit 0 when it is ready' })
      .example('latchkey status --check', 'for probes; needs no token'),
  (args, output) => (args.check ? check(args, output) : ask(args, output, { path: '/statusz' }, statusView)),
);

/** Asks whether the daemon is ready, which needs no token. */
async function check(options: GlobalOptions, output: Output): Promise<number> {
  const reached = await reachDaemon(options, { path: '/readyz' }, false);
  if (!reached.ok) {
    output.complain(reached.lines);
    return reached.code;
  }
  const { answer } = reached;
  const shown = await report(options, output, answer, {
    schema: readiness,
    show: ({ status: word, reasons }) => [word, ...reasons].join('\n'),
  });
  return answer.status === 200 ? shown : exitCode.failed;
}
