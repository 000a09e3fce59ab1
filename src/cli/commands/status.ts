import { setTimeout } from 'node:timers/promises';
import { parseDuration } from '../../config/value/unit.ts';
import { callDaemon } from '../client/daemon.ts';
import { requestAndShow, showResponse } from '../client/request.ts';
import { CommandError, defineCommand, type GlobalOptions, textOption, UsageError } from '../command.ts';
import { exitCode } from '../exit-code.ts';
import type { Output } from '../output.ts';
import { statusView } from './status/status-view.ts';
import { watchStatus } from './status/watch.ts';
import { healthObject } from '../../wire/status.ts';

export const command = defineCommand({
  command: 'status',
  describe: 'Show the state of the daemon',
  builder: {
    check: { type: 'boolean', default: false, describe: 'Only check: exit 0 when it is ready' },
    watch: { type: 'boolean', default: false, describe: 'Refresh until Ctrl-C' },
    interval: textOption('How often with --watch, such as 500ms; default: 2s'),
  },
  examples: [
    ['latchkey status --check', 'for probes; needs no token'],
    ['latchkey status --watch', 'with rates per second, and how long the outbox takes'],
  ],
  handler: async (args, output) => {
    if (args.watch && args.check) throw new UsageError('--watch and --check cannot be combined');
    const intervalMs = readInterval(args.interval);
    if (args.watch) return await watch(args, output, intervalMs);
    if (args.check) return await check(args, output);
    return await requestAndShow(args, output, { path: '/statusz' }, statusView);
  },
});

function readInterval(text: string | undefined): number {
  if (text === undefined) return 2000;
  const intervalMs = parseDuration(text) ?? 0;
  if (intervalMs >= 200 && intervalMs <= 3_600_000) return intervalMs;
  throw new UsageError('--interval must be a duration from 200ms to 1h');
}

/** Watches until Ctrl-C, which is not a failure. */
async function watch(options: GlobalOptions, output: Output, intervalMs: number): Promise<number> {
  const end = new AbortController();
  const stop = (): void => {
    end.abort();
  };
  // Not `once`: without a listener, the library that restores the cursor would end the process by the signal.
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
