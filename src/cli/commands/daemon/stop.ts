import { setTimeout as sleep } from 'node:timers/promises';
import { locateDaemon } from '../../../config/load.ts';
import { readAddress } from '../../client/endpoint.ts';
import { request, type Result } from '../../client/request.ts';
import { CommandError, defineCommand } from '../../command.ts';
import { toLoadOptions } from '../../configuration.ts';
import { exitCode } from '../../exit-code.ts';
import { stopObject } from '../../../wire/status.ts';

/** How often the command looks whether the process has ended, in ms. */
const pollMs = 50;
/** How much longer than the process says, in ms. */
const marginMs = 2_000;

export const command = defineCommand({
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

/** How long a process takes that answers no more requests, because it is ending already, in s. */
const drainingS = 15;

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
  const { isLocked } = await import('../../../store/sqlite/files/lock.ts');
  const deadline = performance.now() + limitMs;
  while (readAddress(stateDir).ok || isLocked(stateDir)) {
    if (performance.now() > deadline) return false;
    await sleep(pollMs);
  }
  return true;
}
