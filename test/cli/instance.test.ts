import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { latchkey } from '../support/process/command-line.ts';
import { startDaemonProcess } from '../support/process/daemon-process.ts';
import { temporaryDirectory } from '../support/temporary.ts';

test('a killed daemon is unreachable even if another daemon has its port', async () => {
  await using killedDirectory = temporaryDirectory();
  await using otherDirectory = temporaryDirectory();
  const killed = await startDaemonProcess(killedDirectory.path, { listen: { tcp: '127.0.0.1:0' } });
  const { tcp } = killed;
  await killed.kill();
  const address = tcp.replace('http://', '');
  await using other = await startDaemonProcess(otherDirectory.path, { listen: { tcp: address } });
  expect(other.tcp).toBe(tcp);

  const [killedState, otherState] = [killedDirectory, otherDirectory].map(({ path }) => join(path, 'state'));
  const { instance } = JSON.parse(readFileSync(`${otherState}/listen.json`, 'utf8')) as { instance: string };
  for (const argv of [
    ['status', '--check'],
    ['product', 'list'],
  ]) {
    expect(await latchkey(...argv, '--state-dir', `${otherState}`)).toMatchObject({ code: 0, err: '' });
    const { code, out, err } = await latchkey(...argv, '--state-dir', `${killedState}`);
    expect({ code, out }).toEqual({ code: 69, out: '' });
    expect(err).toContain(
      `${tcp}: the daemon of another state directory listens there, instance ${instance}`,
    );
  }
});
