import { setTimeout as sleep } from 'node:timers/promises';
import { locateDaemon } from '../../config/load.ts';
import { reloadObject, stopObject } from '../../wire/status.ts';
import { readAddress } from '../client/endpoint.ts';
import { defineRequest, request, type Result } from '../client/request.ts';
import { CommandError, defineCommand } from '../command.ts';
import { toLoadOptions } from '../configuration.ts';
import { exitCode } from '../exit-code.ts';
import { formatFields } from '../format.ts';

/** How often the command looks whether the process has ended, in ms. */
const pollMs = 50;

/** How much longer than the process says, in ms. */
const marginMs = 2_000;

/** How long a process takes that answers no more requests, because it is ending already, in s. */
const drainingS = 15;

export const stop = defineCommand({
  command: 'stop',
  describe: 'End the daemon, and wait until it has ended',
  builder: {},
  examples: [['latchkey stop', 'after the requests in flight are answered']],
  handler: async (args, output) => {
    const call = { method: 'POST', path: '/admin/v1/stop' } as const;
    const limitMs = (await endsWithinS(request(args, call, stopObject))) * 1_000 + marginMs;
    const located = locateDaemon(toLoadOptions(args));
    if (located.ok && !(await hasEnded(located.location.stateDir, limitMs))) {
      const line = `latchkey: the daemon is ending, but has not ended after ${Math.ceil(limitMs / 1_000)} seconds: see its log`;
      throw new CommandError([line]);
    }
    await output.result({ stopped: true }, 'stopped', Date.now());
    return exitCode.done;
  },
});

export const reload = defineRequest({
  command: 'reload',
  describe: 'Let the daemon read its configuration again',
  builder: {},
  examples: [['latchkey reload', 'after latchkey config check; an invalid configuration changes nothing']],
  epilogue: 'With an invalid configuration, the exit code is 78.',
  request: () => ({ method: 'POST', path: '/admin/v1/reload' }),
  view: {
    schema: reloadObject,
    show: ({ changed, restart }) =>
      formatFields({
        changed: changed.length === 0 ? 'nothing' : changed.join(', '),
        'needs a restart': restart.length === 0 ? null : restart.join(', '),
      }),
  },
});

async function endsWithinS(asked: Promise<Result<{ ends_within_s: number }>>): Promise<number> {
  try {
    return (await asked).data.ends_within_s;
  } catch (error) {
    if (error instanceof CommandError && error.refusal?.code === 'draining') return drainingS;
    throw error;
  }
}

/** Waits until the process has released the state directory. Returns false if it has not within the limit. */
async function hasEnded(stateDir: string, limitMs: number): Promise<boolean> {
  const { isLocked } = await import('../../store/sqlite/files/state-directory.ts');
  const deadline = performance.now() + limitMs;
  while (readAddress(stateDir).ok || isLocked(stateDir)) {
    if (performance.now() > deadline) return false;
    await sleep(pollMs);
  }
  return true;
}
