import { setTimeout } from 'node:timers/promises';
import { parseDuration } from '../../../config/value/unit.ts';
import { ask, report } from '../../client/ask.ts';
import { reachDaemon } from '../../client/reach.ts';
import { type Command, defineCommand, type GlobalOptions, textOption, UsageError } from '../../command.ts';
import { exitCode } from '../../exit-code.ts';
import type { Output } from '../../output.ts';
import { readiness, statusView } from './status-view.ts';

/** `status`. */
export const statusCommand: Command = defineCommand(
  (syntax) =>
    syntax
      .option('check', { type: 'boolean', default: false, describe: 'Only check: exit 0 when it is ready' })
      .option('watch', { type: 'boolean', default: false, describe: 'Refresh until Ctrl-C' })
      .option('interval', textOption('How often with --watch, such as 500ms; default: 2s'))
      .example('latchkey status --check', 'for probes; needs no token')
      .example('latchkey status --watch', 'with rates per second, and how long the outbox takes'),
  async (args, output) => {
    if (args.watch && args.check) throw new UsageError('--watch and --check are not given together');
    const intervalMs = readInterval(args.interval);
    if (args.watch) return await watch(args, output, intervalMs);
    if (args.check) return await check(args, output);
    return await ask(args, output, { path: '/statusz' }, statusView);
  },
);

function readInterval(given: string | undefined): number {
  if (given === undefined) return 2000;
  const intervalMs = parseDuration(given) ?? 0;
  if (intervalMs >= 200 && intervalMs <= 3_600_000) return intervalMs;
  throw new UsageError('--interval must be a duration from 200ms to 1h');
}

/** Watches until Ctrl-C, which is the way to end it and no failure. */
async function watch(options: GlobalOptions, output: Output, intervalMs: number): Promise<number> {
  const { watchStatus } = await import('./status-watch.ts');
  const end = new AbortController();
  const stop = (): void => {
    end.abort();
  };
  // Not `once`: where nobody listens any more, what restores the cursor would end the process by the signal.
  process.on('SIGINT', stop).on('SIGTERM', stop);
  try {
    return await watchStatus(options, output, {
      intervalMs,
      signal: end.signal,
      pause: async (ms, signal) => await setTimeout(ms, undefined, { signal }).catch(() => undefined),
      clock: () => performance.now(),
    });
  } finally {
    process.off('SIGINT', stop).off('SIGTERM', stop);
  }
}

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
