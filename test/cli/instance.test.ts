import { cpSync, readFileSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { latchkey } from '../support/process/command-line.ts';
import { startDaemonProcess, type DaemonProcess } from '../support/process/daemon-process.ts';
import { isWindows } from '../support/platform.ts';
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

/** A running daemon and a copy of its state directory. */
async function startWithCopy(
  directory: string,
): Promise<{ daemon: DaemonProcess; state: string; copy: string }> {
  const daemon = await startDaemonProcess(directory, { listen: { tcp: '127.0.0.1:0' } });
  const [state, copy] = [join(directory, 'state'), join(directory, 'copy')];
  cpSync(state, copy, { recursive: true, filter: (path) => !path.endsWith('.sock') });
  return { daemon, state, copy };
}

test('commands on a copy of a state directory do not act on the daemon of the original', async () => {
  await using directory = temporaryDirectory();
  const { daemon, state, copy } = await startWithCopy(directory.path);
  await using _ = daemon;
  for (const argv of [['stop'], ['product', 'add', 'Theme'], ['status', '--check'], ['use', 'KEY']]) {
    const { code, out, err } = await latchkey(...argv, '--state-dir', copy);
    expect([argv, code, out]).toEqual([argv, 69, '']);
    expect(err).toBe(
      `latchkey: no daemon runs on ${copy} (from --state-dir): it is a copy, and its listen.json is that of the original\n` +
        'To use the daemon of the original, pass --state-dir DIR or --config FILE\n' +
        `To start this copy, never while the original runs: latchkey --state-dir ${copy} serve\n`,
    );
  }
  const doctor = await latchkey('doctor', '--state-dir', copy);
  expect(doctor.out).toContain(
    'warn  no daemon runs here; it is a copy, and its listen.json is that of the original',
  );
  expect(doctor.out).not.toContain('the daemon is ready');
  const products = await latchkey('product', 'list', '--state-dir', state, '--json');
  expect(JSON.parse(products.out)).toMatchObject({ total: 0 });
});

// Windows does not move a directory whose files are open.
test.skipIf(isWindows)(
  'commands reach the daemon of a state directory that was moved while it runs',
  async () => {
    await using directory = temporaryDirectory();
    const { daemon, state, copy } = await startWithCopy(directory.path);
    await using _ = daemon;
    const moved = join(directory.path, 'moved');
    renameSync(state, moved);
    renameSync(copy, state);
    expect(await latchkey('product', 'list', '--state-dir', moved)).toMatchObject({ code: 0 });
    expect(await latchkey('product', 'list', '--state-dir', state)).toMatchObject({ code: 69 });
    renameSync(state, copy);
    renameSync(moved, state);
  },
);
