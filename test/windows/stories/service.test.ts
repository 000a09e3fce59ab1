import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { runProcess } from '../../support/process/command-line.ts';
import { temporaryDirectory } from '../../support/temporary.ts';

test('the words in the file for WinSW start a daemon, and end it in good order', async () => {
  await using folder = temporaryDirectory();
  const { out } = await runProcess(['service', 'print']);
  const valuesOf = (name: string): readonly string[] =>
    [...out.matchAll(new RegExp(`<${name}>(.*)</${name}>`, 'g'))].map(([, value = '']) => value);
  const [program = ''] = valuesOf('executable');
  const state = join(folder.path, 'Latchkey');
  mkdirSync(state);
  writeFileSync(join(state, 'config.yaml'), 'listen: { tcp: 127.0.0.1:0 }\n');
  // WinSW inserts %ProgramData% into the value of STATE_DIRECTORY.
  const env = { ...process.env, ProgramData: folder.path, STATE_DIRECTORY: state };
  const daemon = spawn(program, valuesOf('startargument'), { env, cwd: state, stdio: 'ignore' });
  try {
    const ended = once(daemon, 'exit');
    await expect.poll(() => existsSync(join(state, 'listen.json'))).toBe(true);
    const stop = spawnSync(program, valuesOf('stopargument'), { env, cwd: state, encoding: 'utf8' });
    expect([stop.status, stop.stdout]).toEqual([0, 'stopped\n']);
    expect(await ended).toEqual([0, null]);
  } finally {
    daemon.kill();
  }
});
