import { spawnSync } from 'node:child_process';
import type { Bench } from '../bench.ts';
import { compare } from '../compare.ts';
import type { Measured } from '../load/load.ts';
import { oneKey, use, verify } from '../sample.ts';
import { startLatchkey, type Server } from '../server.ts';
import { copyOfStore } from '../stores.ts';
import { notMeasured, type Theme } from '../theme.ts';

const writers = 16;
const what = `verify while ${writers} connections write, fsync slowed to 5 ms, authority`;
const goal = { atLeast: 0.8 };

/** Delays each fsync by 5 ms. Only fsync stops at the tracer. */
const slowDisk =
  'strace -D -f --seccomp-bpf -qq -o /dev/null -e trace=fsync,fdatasync -e inject=fsync,fdatasync:delay_exit=5000'.split(
    ' ',
  );

export const slowDiskTheme: Theme = {
  name: 'slow-disk',
  about: 'verify while others write, on a disk that takes 5 ms a commit',
  async *measure(bench) {
    const missing = findMissing();
    if (missing !== null) {
      yield notMeasured(what, '×', goal, missing);
      return;
    }
    const state = await copyOfStore(bench, { role: 'authority', licenses: 1000 });
    const server = await startLatchkey(bench, { state, under: slowDisk });
    const contestants = {
      alone: () => ask(bench, server),
      besideWrites: async () => {
        const [verifies] = await Promise.all([ask(bench, server), write(bench, server)]);
        return verifies;
      },
    };
    const { alone, besideWrites } = await bench.alternate(contestants);
    const by = 'perSecond';
    yield compare(what, { 'beside writes': besideWrites }, { alone }, { by, goal });
  },
};

/** The reason why no disk can be slowed here. Null: it is possible. */
function findMissing(): string | null {
  if (spawnSync('strace', ['-V'], { stdio: 'ignore' }).error !== undefined) return 'strace is not installed';
  const { status } = spawnSync('strace', [...slowDisk.slice(1), 'true'], { stdio: 'ignore' });
  return status === 0 ? null : 'strace may not trace here';
}

async function ask(bench: Bench, server: Server): Promise<Measured> {
  return await bench.load(server, { target: server.tcp, request: verify, keys: oneKey, connections: 64 });
}

async function write(bench: Bench, server: Server): Promise<Measured> {
  const keys = { first: 1, count: 1 };
  return await bench.load(server, { target: server.tcp, request: use, keys, connections: writers });
}
