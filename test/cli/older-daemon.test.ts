import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { latchkey } from '../support/process/command-line.ts';
import { startFakeDaemon } from '../support/process/fake-daemon.ts';

/* Commands of this version at a daemon that still runs the version before. */

test('a change that is answered in an older shape is told as made, and the daemon as to be restarted', async () => {
  await using daemon = await startFakeDaemon();
  daemon.answer({ body: { data: { token_id: 'token-1', scopes: ['verify'] } } });
  expect(await latchkey('token', 'revoke', 'token-1', '--state-dir', daemon.stateDir)).toEqual({
    code: 1,
    out: '',
    err:
      'latchkey: the answer is not understood: is the daemon of another version? After an upgrade, restart it.\n' +
      'It is no refusal: the change was made.\n',
  });
});

test('doctor advises to restart a daemon whose addresses or status are those of an older version', async () => {
  await using daemon = await startFakeDaemon();
  const doctor = async (): Promise<string> => (await latchkey('doctor', '--state-dir', daemon.stateDir)).out;
  daemon.answer({ body: { status: 'ok', reasons: [] } });
  const advice = 'is the daemon of another version? After an upgrade, restart it.';
  expect(await doctor()).toContain(`warn  its status could not be read  →  ${advice}\n`);
  const file = join(daemon.stateDir, 'listen.json');
  await writeFile(file, JSON.stringify({ socket: daemon.socket, tcp: null }));
  const [, finding] = (await doctor()).split('\n');
  expect(finding).toMatch(/ It was looked for on .+ {2}→ {2}restart it$/);
  expect(finding).toContain(`warn  ${file} is not understood: ${advice} It was`);
});
