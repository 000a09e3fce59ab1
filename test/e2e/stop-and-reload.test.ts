import { once } from 'node:events';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { runProcess } from '../support/process/command-line.ts';
import { startDaemonProcess } from '../support/process/daemon-process.ts';
import { temporaryDirectory } from '../support/temporary.ts';

const configuration = { listen: { tcp: '127.0.0.1:0' } };

test('the command stop ends the daemon with exit code 0, and returns after the end', async () => {
  await using directory = temporaryDirectory();
  const state = join(directory.path, 'state');
  const daemon = await startDaemonProcess(directory.path, configuration);
  const stopped = await runProcess(['stop', '--state-dir', state]);
  expect(stopped).toEqual({ code: 0, out: 'stopped\n', err: '' });
  expect(existsSync(join(state, 'listen.json'))).toBe(false);
  expect(await daemon.ended).toBe(0);
  expect(await daemon.said('draining')).toMatchObject({ act: 'stop' });
  expect(await runProcess(['stop', '--json', '--state-dir', state])).toMatchObject({ code: 69, out: '' });

  await using again = await startDaemonProcess(directory.path, configuration);
  const listed = await runProcess(['audit', 'list', '--json', '--state-dir', state]);
  expect(JSON.parse(listed.out)).toMatchObject({
    acts: [{ actor: 'token:admin.token', act: 'process.stop' }],
  });
  expect(await runProcess(['stop', '--json', '--state-dir', state])).toMatchObject({
    code: 0,
    out: '{\n  "stopped": true\n}\n',
  });
  expect(await again.ended).toBe(0);
});

test('a second stop ends the wait of listen.drain_delay', async () => {
  await using directory = temporaryDirectory();
  const state = join(directory.path, 'state');
  const listen = { ...configuration.listen, drain_delay: '5m' };
  await using daemon = await startDaemonProcess(directory.path, { listen });
  const first = runProcess(['stop', '--state-dir', state]);
  await daemon.said('draining');
  expect(await runProcess(['stop', '--state-dir', state])).toMatchObject({ code: 0 });
  expect(await first).toMatchObject({ code: 0 });
  expect(await daemon.ended).toBe(0);
});

test('a stop of a process that is ending waits for its end', async () => {
  await using directory = temporaryDirectory();
  const state = join(directory.path, 'state');
  await using daemon = await startDaemonProcess(directory.path, configuration);
  const token = readFileSync(join(state, 'admin.token'), 'utf8').trim();
  // This request keeps the process from ending.
  const caller = connect(Number(new URL(daemon.tcp).port), '127.0.0.1').on('error', () => undefined);
  caller.write('POST /admin/v1/tokens HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n');
  caller.write(
    `Content-Type: application/json\r\nExpect: 100-continue\r\nAuthorization: Bearer ${token}\r\n\r\n`,
  );
  await once(caller, 'data');
  const first = runProcess(['stop', '--state-dir', state]);
  await daemon.said('draining');
  const second = runProcess(['stop', '--state-dir', state]);
  expect(await daemon.said('refused')).toMatchObject({ route: '/admin/v1/stop', code: 'draining' });
  caller.destroy();
  expect(await second).toEqual({ code: 0, out: 'stopped\n', err: '' });
  expect(await first).toMatchObject({ code: 0 });
  expect(await daemon.ended).toBe(0);
});

test('the command reload applies a configuration, and shows what changed and what needs a restart', async () => {
  await using directory = temporaryDirectory();
  const state = join(directory.path, 'state');
  const file = join(directory.path, 'config.yaml');
  await using daemon = await startDaemonProcess(directory.path, configuration);
  const write = (settings: object): void =>
    writeFileSync(file, JSON.stringify({ state_dir: state, ...settings }), { mode: 0o600 });
  const reload = (...argv: string[]) => runProcess(['reload', '--state-dir', state, ...argv]);
  expect(await reload()).toEqual({ code: 0, out: 'changed  nothing\n', err: '' });

  write({ listen: { tcp: '127.0.0.1:1' }, limits: { rate: '100' } });
  expect(await reload('--json')).toMatchObject({
    code: 0,
    out: `${JSON.stringify({ changed: ['limits.rate'], restart: ['listen.tcp'] }, null, 2)}\n`,
  });
  await daemon.said('the configuration was reloaded');

  write({ ...configuration, limits: { rate: 'fast' }, log: { levle: 'debug' } });
  const refused = await reload();
  expect(refused.code).toBe(78);
  expect(refused.err).toContain(
    'latchkey: The configuration is not valid (configuration_invalid)\nNothing was changed.\n',
  );
  expect(refused.err).toMatch(/^ {2}limits\.rate: .+config\.yaml/m);
  expect(refused.err).toMatch(/^ {2}log\.levle: .+config\.yaml/m);
  const listed = await runProcess(['audit', 'list', '--json', '--state-dir', state]);
  const { acts } = JSON.parse(listed.out) as { acts: readonly object[] };
  expect(acts).toMatchObject([
    { act: 'process.reload', detail: 'limits.rate' },
    { act: 'process.reload', detail: '' },
  ]);
});
