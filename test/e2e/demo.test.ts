import { spawn, type ChildProcessByStdio } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import type { Readable } from 'node:stream';
import { expect, test } from 'vitest';
import { fromSource } from '../support/process/command-line.ts';
import { temporaryDirectory } from '../support/temporary.ts';

type Trial = ChildProcessByStdio<null, Readable, null>;

/** What becomes of it while it runs. */
type Leave = (trial: Trial, home: string) => Promise<void> | void;

/** Waits for its first line, before which it has made its data. */
async function begun({ stdout }: Trial, home: string): Promise<void> {
  await once(stdout, 'data');
  expect(readdirSync(home)).not.toEqual([]);
}

const cut: Leave = ({ stdout }) => {
  stdout.destroy();
};
const cutAfterOneLine: Leave = async (trial, home) => {
  await begun(trial, home);
  await cut(trial, home);
};
const interrupt: Leave = async (trial, home) => {
  await begun(trial, home);
  trial.kill('SIGINT');
};

test.each([
  ['demo', 'of which only the first line is read', cutAfterOneLine],
  ['demo', 'that is interrupted', interrupt],
  ['sandbox', 'whose credentials nobody reads', cut],
])('a %s %s removes its data', async (command, _, leave) => {
  await using home = temporaryDirectory();
  const [program, ...argv] = fromSource;
  const trial = spawn(program, [...argv, command], {
    env: { PATH: process.env['PATH'], HOME: home.path, TMPDIR: home.path },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const ended = once(trial, 'close');
  try {
    await leave(trial, home.path);
    await ended;
    expect(readdirSync(home.path)).toEqual([]);
  } finally {
    trial.kill('SIGKILL');
  }
});
