import { spawn, type ChildProcessByStdio } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import type { Readable } from 'node:stream';
import { expect, test } from 'vitest';
import { ownProgram } from '../support/process/command-line.ts';
import { temporaryDirectory } from '../support/temporary.ts';

type Trial = ChildProcessByStdio<null, Readable, null>;

/** How a test ends a running command. */
type Leave = (trial: Trial, home: string) => Promise<void> | void;

/** Waits for the first line of output; the data directory exists by then. */
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
  ['demo', 'only its first line is read', cutAfterOneLine],
  ['demo', 'it is interrupted', interrupt],
  ['demo --store gumroad', 'it is interrupted', interrupt],
  ['demo --store lemonsqueezy', 'it is interrupted', interrupt],
  ['sandbox', 'its credentials are never read', cut],
  ['sandbox --store gumroad --with-agent', 'its credentials are never read', cut],
  ['sandbox --store lemonsqueezy --with-agent', 'its credentials are never read', cut],
])('%s removes its data if %s', async (command, _, leave) => {
  await using home = temporaryDirectory();
  const [program, ...argv] = ownProgram;
  const trial = spawn(program, [...argv, ...command.split(' ')], {
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
