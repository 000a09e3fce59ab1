import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { latchkey } from '../support/process/command-line.ts';
import { startFakeDaemon } from '../support/process/fake-daemon.ts';

/* Commands of this version with a daemon of an older version. */

test('an unreadable reply of an older daemon is reported as a change that was made', async () => {
  await using daemon = await startFakeDaemon();
  daemon.answer({ body: { data: { token_id: 'token-1', scopes: ['verify'] } } });
  expect(await latchkey('token', 'revoke', 'token-1', '--state-dir', daemon.stateDir)).toEqual({
    code: 1,
    out: '',
    err:
      "latchkey: cannot read the daemon's reply: the daemon may be running another version. After an upgrade, restart it.\n" +
      'The change was made; only the reply could not be read.\n',
  });
});

test('doctor advises to restart a daemon of an older version', async () => {
  await using daemon = await startFakeDaemon();
  const doctor = async (): Promise<string> => (await latchkey('doctor', '--state-dir', daemon.stateDir)).out;
  daemon.answer({ body: { status: 'ok', reasons: [] } });
  const advice = 'the daemon may be running another version. After an upgrade, restart it.';
  expect(await doctor()).toContain(`warn  its status could not be read  →  ${advice}\n`);
  const file = join(daemon.stateDir, 'listen.json');
  await writeFile(file, JSON.stringify({ socket: daemon.socket, tcp: null }));
  const [, finding] = (await doctor()).split('\n');
  expect(finding).toMatch(/ It was looked for on .+ {2}→ {2}restart it$/);
  expect(finding).toContain(`warn  ${file} cannot be read: ${advice} It was`);
});

test('doctor reports a daemon that cannot prove itself', async () => {
  await using daemon = await startFakeDaemon();
  daemon.answer({ body: { status: 'ok', reasons: [] } });
  daemon.age();
  const { out } = await latchkey('doctor', '--state-dir', daemon.stateDir);
  expect(out).toContain('restart it after the upgrade  →  see what listens there, and restart the daemon\n');
});
