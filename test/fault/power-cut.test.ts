import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { startAgentHarness } from '../support/harness/agent-harness.ts';
import { patience } from '../support/patience.ts';
import { temporaryDirectory } from '../support/temporary.ts';

const hasTracer = spawnSync('strace', ['-V']).status === 0 && process.getuid?.() === 0;
const calls = 'pwrite64,pwritev,fsync,fdatasync,write,writev,sendto,sendmsg';

/** Records the system calls of a process that write, until `stop` resolves with a line for each call that has ended. */
async function trace(pid: number, file: string): Promise<{ stop(): Promise<string[]> }> {
  const options = ['-f', '-y', '-s', '20', '-e', `trace=${calls}`, '-o', file, '-p', String(pid)];
  const tracer = spawn('strace', options, { stdio: ['ignore', 'ignore', 'pipe'] });
  let said = '';
  tracer.stderr.on('data', (chunk: Buffer) => (said += chunk.toString()));
  await vi.waitFor(() => expect(said).toContain('attached'), patience);
  return {
    async stop() {
      tracer.kill('SIGINT');
      await once(tracer, 'close');
      return endedCalls(readFileSync(file, 'utf8').split('\n'));
    },
  };
}

/** Joins the two halves of calls that other threads interrupted, at the place where the call ended. */
function endedCalls(lines: readonly string[]): string[] {
  const begun = new Map<string, string>();
  return lines.flatMap((line) => {
    const thread = line.split(' ')[0] ?? '';
    const half = / <unfinished \.\.\.>$/.exec(line);
    if (half !== null) {
      begun.set(thread, line.slice(0, half.index));
      return [];
    }
    const resumed = /<\.\.\. \w+ resumed>(.*)$/.exec(line);
    return [resumed === null ? line : `${begun.get(thread)}${resumed[1]}`];
  });
}

/** Whether everything that was written to the log of the database is on the disk, at each answer 200. */
function syncedAtAnswers(lines: readonly string[]): boolean[] {
  let isSynced = false;
  return lines.flatMap((line) => {
    if (/pwritev?6?4?\(\d+<[^>]*\.db-wal>/.test(line)) isSynced = false;
    else if (/f(data)?sync\(\d+<[^>]*\.db-wal>\) += 0/.test(line)) isSynced = true;
    return line.includes('HTTP/1.1 200') ? [isSynced] : [];
  });
}

test.skipIf(!hasTracer)(
  'an agent answers a change only after the disk has confirmed it, so that a power cut loses no answered change',
  async () => {
    await using directory = temporaryDirectory();
    await using harness = await startAgentHarness({ licenses: ['KEY'] });
    const { agent } = harness;
    await agent.ask('/admin/v1/sync/pause', 'post');
    const tracing = await trace(agent.process.pid, join(directory.path, 'trace'));
    for (let number = 0; number < 10; number += 1) {
      expect((await agent.change('usage', 'KEY')).status).toBe(200);
    }
    const answers = syncedAtAnswers(await tracing.stop());
    expect(answers).toEqual(Array.from({ length: 10 }, () => true));
  },
);
