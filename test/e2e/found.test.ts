import { chmodSync, chownSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { ownProgram, runProcess, type Outcome } from '../support/process/command-line.ts';
import { type DaemonProcess, serveIn } from '../support/process/daemon-process.ts';
import { temporaryDirectory } from '../support/temporary.ts';

const isRoot = process.getuid?.() === 0;
const stranger = 54_321;

/** Runs a command line in a directory, with an empty home. */
async function runIn(directory: string, ...argv: string[]): Promise<Outcome> {
  const empty = { HOME: '/nonexistent', XDG_CONFIG_HOME: '', XDG_STATE_HOME: '', XDG_RUNTIME_DIR: '' };
  return await runProcess(argv, empty, ownProgram, directory);
}

/** Starts a daemon in a directory, with a `latchkey.yaml` in it. */
async function startIn(directory: string): Promise<DaemonProcess> {
  const text = 'state_dir: ./state\nlisten: { tcp: "127.0.0.1:0" }\n';
  writeFileSync(join(directory, 'latchkey.yaml'), text, { mode: 0o600 });
  return await serveIn(directory);
}

test('a command that finds no daemon prints where it looked and what to do next', async () => {
  await using directory = temporaryDirectory();
  expect(await runIn(directory.path, 'status')).toEqual({
    code: 69,
    out: '',
    err: `latchkey: there is no configuration, and no daemon runs here; looked at
  ./latchkey.yaml
  /nonexistent/.config/latchkey/config.yaml
  /etc/latchkey/config.yaml
  /nonexistent/.local/state/latchkey (where a daemon without a configuration keeps its state)
Write a configuration: latchkey init
Or see what it does: latchkey demo
To use a running daemon, pass --state-dir DIR or --config FILE
`,
  });
  const { out } = await runIn(directory.path, 'config', 'check');
  expect(out).toBe(
    'ok: no file, looked for at ./latchkey.yaml, /nonexistent/.config/latchkey/config.yaml, /etc/latchkey/config.yaml (authority)\n',
  );
});

test('commands find the daemon of their own directory, and another daemon by an option', async () => {
  await using first = temporaryDirectory();
  await using second = temporaryDirectory();
  await using one = await startIn(first.path);
  await using other = await startIn(second.path);
  const tenant = async (directory: string, ...options: string[]): Promise<unknown> => {
    const { out } = await runIn(directory, 'status', '--json', ...options);
    return (JSON.parse(out) as { listeners: { tcp: string } }).listeners.tcp;
  };
  expect(await tenant(first.path)).toBe(one.tcp);
  expect(await tenant(second.path)).toBe(other.tcp);
  expect(await tenant(second.path, '--state-dir', join(first.path, 'state'))).toBe(one.tcp);
  expect(await tenant(second.path, '--config', join(first.path, 'latchkey.yaml'))).toBe(one.tcp);
});

test('an error message names the daemon and why it was chosen, and its hint repeats the options', async () => {
  await using directory = temporaryDirectory();
  const file = "it's mine.yaml";
  for (const name of ['latchkey.yaml', file]) writeFileSync(join(directory.path, name), 'state_dir: ./state');
  const { err } = await runIn(directory.path, 'outbox', 'list');
  expect(err.split('\n').slice(0, 2)).toEqual([
    'latchkey: no daemon runs on ./state (from ./latchkey.yaml): there is no listen.json in it',
    'Start it: latchkey serve',
  ]);
  const named = await runIn(directory.path, 'outbox', 'list', '--config', file, '--state-dir', './other');
  expect(named.err.split('\n').slice(0, 2)).toEqual([
    'latchkey: no daemon runs on ./other (from --state-dir): there is no listen.json in it',
    String.raw`Start it: latchkey --config 'it'\''s mine.yaml' --state-dir ./other serve`,
  ]);
});

test('a service unit names the configuration of the directory in which it was printed', async () => {
  await using directory = temporaryDirectory();
  writeFileSync(join(directory.path, 'latchkey.yaml'), 'state_dir: ./state', { mode: 0o600 });
  const exec = async (...argv: string[]): Promise<string> =>
    /^ExecStart=.*$/m.exec((await runIn(directory.path, 'service', 'print', '--user', ...argv)).out)?.[0] ??
    '';
  expect(await exec()).toMatch(new RegExp(` serve --config ${directory.path}/latchkey.yaml$`));
  expect(await exec('--state-dir', '/srv/other')).toMatch(/ serve --state-dir \/srv\/other$/);
});

const passedOver = (reason: string): string =>
  `latchkey: ./latchkey.yaml is skipped: ${reason}; if you trust it: --config ./latchkey.yaml\n`;

test('commands skip a world-writable latchkey.yaml and print one line about it', async () => {
  await using directory = temporaryDirectory();
  writeFileSync(join(directory.path, 'latchkey.yaml'), 'listen: { tcp: nonsense }');
  chmodSync(join(directory.path, 'latchkey.yaml'), 0o666);
  const { code, out, err } = await runIn(directory.path, 'config', 'check');
  expect({ code, err }).toEqual({ code: 0, err: passedOver('other users can write to it') });
  expect(out).toContain('ok: no file');
  expect((await runIn(directory.path, 'config', 'check', '--config', 'latchkey.yaml')).code).toBe(78);
});

test.skipIf(!isRoot)(
  "root skips the latchkey.yaml of another user, and sends no request to that user's daemon",
  async () => {
    await using directory = temporaryDirectory();
    await using _daemon = await startIn(directory.path);
    for (const path of [directory.path, join(directory.path, 'latchkey.yaml')]) {
      chownSync(path, stranger, stranger);
    }
    const { code, err } = await runIn(directory.path, 'verify', 'K');
    expect(code).toBe(69);
    const reason = `its directory belongs to user ${stranger}, and this is user 0`;
    expect(err.startsWith(passedOver(reason))).toBe(true);
    expect(err).toContain('there is no configuration');
  },
);

test('a reload does not apply a latchkey.yaml that became unsafe after the start', async () => {
  await using directory = temporaryDirectory();
  const file = join(directory.path, 'latchkey.yaml');
  await using daemon = await startIn(directory.path);
  expect(await daemon.said('the configuration was read')).toMatchObject({ file });
  chmodSync(file, 0o666);
  daemon.signal('SIGHUP');
  const refused = await daemon.said('the configuration is not valid: nothing changed');
  expect(refused['errors']).toEqual([
    expect.stringMatching(
      /^file: is no file, looked for at .*, and was \.\/latchkey\.yaml: restart to change it/,
    ),
  ]);
});
