import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chown, rm, writeFile } from 'node:fs/promises';
import { createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { afterEach, expect, test, vi } from 'vitest';
import { formatPath, quoteForShell } from '../../src/cli/hint.ts';
import { latchkey } from '../support/process/command-line.ts';
import { type FakeDaemon, license, startFakeDaemon } from '../support/process/fake-daemon.ts';
import { isWindows } from '../support/platform.ts';
import { temporaryDirectory } from '../support/temporary.ts';
import { patienceMs } from '../support/patience.ts';

const isRoot = process.getuid?.() === 0;
const stranger = 54_321;

afterEach(() => {
  vi.unstubAllEnvs();
  vi.restoreAllMocks();
});

async function startLicenseDaemon(): Promise<FakeDaemon> {
  const daemon = await startFakeDaemon();
  daemon.answer({ body: { data: license } });
  return daemon;
}

test('suggested commands use the npm script in a clone', async () => {
  await using directory = temporaryDirectory();
  vi.stubEnv('npm_lifecycle_event', 'latchkey');
  const { err } = await latchkey('status', '--state-dir', directory.path);
  expect(err).toContain(`Start it: npm run latchkey -- --state-dir ${directory.path} serve\n`);
  expect((await latchkey('status', '--jsn')).err).toContain('See: npm run latchkey -- status --help\n');
  for (const name of ['HOME', 'XDG_CONFIG_HOME', 'XDG_STATE_HOME']) vi.stubEnv(name, directory.path);
  expect((await latchkey('status')).err).toContain('Write a configuration: npm run latchkey -- init\n');
  vi.stubEnv('npm_lifecycle_event', 'test');
  expect((await latchkey('status', '--jsn')).err).toContain('See: latchkey status --help\n');
});

// Its paths are those of POSIX.
test.skipIf(isWindows)(
  'formatPath writes a relative path in the working directory, unless that is the root',
  async () => {
    await using directory = temporaryDirectory();
    const file = join(directory.path, 'latchkey.yaml');
    await writeFile(file, '{}');
    const told = async (from: string): Promise<string> => {
      vi.spyOn(process, 'cwd').mockReturnValue(from);
      return (await latchkey('config', 'check', '--config', file)).out;
    };
    expect(await told(directory.path)).toBe('ok: ./latchkey.yaml (authority)\n');
    expect(await told('/')).toBe(`ok: ${file} (authority)\n`);
  },
);

test('on Windows, suggested commands quote paths for cmd.exe and PowerShell, and paths have backslashes', () => {
  for (const [word, quoted] of [
    [String.raw`C:\ProgramData\Latchkey`, String.raw`C:\ProgramData\Latchkey`],
    [String.raw`C:\Program Files\a'b`, String.raw`"C:\Program Files\a'b"`],
    ['C:\\My Files\\', String.raw`"C:\My Files\\"`],
    ['a,b', '"a,b"'],
    // cmd.exe has no quotes that stop `$`, and needs none.
    [String.raw`C:\it's $home`, String.raw`'C:\it''s $home'`],
  ] as const) {
    expect(quoteForShell(word, 'win32')).toBe(quoted);
  }
  expect(quoteForShell(String.raw`C:\x`, 'linux')).toBe(String.raw`'C:\x'`);
  const here = String.raw`C:\Users\Ada`;
  expect(formatPath(String.raw`C:\Users\Ada\latchkey.yaml`, 'win32', here)).toBe(String.raw`.\latchkey.yaml`);
  expect(formatPath(String.raw`D:\latchkey.yaml`, 'win32', here)).toBe(String.raw`D:\latchkey.yaml`);
});

test('a command uses the port if the socket is gone', async () => {
  await using daemon = await startLicenseDaemon();
  await daemon.announce({ socket: join(daemon.stateDir, 'gone.sock'), tcp: daemon.url });
  expect((await latchkey('verify', 'K', '--state-dir', daemon.stateDir)).code).toBe(0);
  expect(daemon.received).toMatchObject([
    { listener: 'tcp', headers: { authorization: 'Bearer lk_admin_secret' } },
  ]);
});

test('a daemon on all addresses is called on the loopback address', async () => {
  await using daemon = await startLicenseDaemon();
  await daemon.announce({ socket: null, tcp: daemon.url.replace('127.0.0.1', '0.0.0.0') });
  expect((await latchkey('verify', 'K', '--state-dir', daemon.stateDir)).code).toBe(0);
  expect(daemon.received).toMatchObject([{ listener: 'tcp', headers: { host: 'localhost' } }]);
});

test('without listen.json no configured address is tried', async () => {
  await using daemon = await startLicenseDaemon();
  await rm(join(daemon.stateDir, 'listen.json'));
  const file = join(daemon.stateDir, 'config.yaml');
  const tcp = daemon.url.replace('http://', '');
  await writeFile(
    file,
    `state_dir: ${daemon.stateDir}\nlisten: { socket: ${daemon.socket}, tcp: "${tcp}" }\n`,
  );
  for (const argv of [
    ['verify', 'K'],
    ['status', '--check'],
    ['outbox', 'list'],
  ]) {
    const { code, err } = await latchkey(...argv, '--config', file);
    expect(code).toBe(69);
    expect(err).toBe(
      `latchkey: no daemon runs on ${daemon.stateDir} (from ${file}): there is no listen.json in it\n` +
        `Start it: latchkey --config ${file} serve\n` +
        'To use another daemon, pass --state-dir DIR or --config FILE\n',
    );
  }
  expect([...daemon.received, ...daemon.probes]).toEqual([]);
});

test('the daemon of another state directory gets no token, and the error names it', async () => {
  await using daemon = await startLicenseDaemon();
  daemon.become('0199-another');
  await daemon.announce({ socket: null, tcp: daemon.url });
  expect(await latchkey('use', 'K', '--state-dir', daemon.stateDir)).toEqual({
    code: 69,
    out: '',
    err:
      `latchkey: no daemon can be reached on ${daemon.stateDir} (from --state-dir); looked at\n` +
      `  ${daemon.url}: the daemon of another state directory listens there, instance 0199-another\n` +
      `Start it: latchkey --state-dir ${daemon.stateDir} serve\n` +
      'To use another daemon, pass --state-dir DIR or --config FILE\n',
  });
  expect(daemon.received).toEqual([]);
  expect(daemon.probes.map(({ headers }) => headers)).toEqual([
    expect.not.objectContaining({ authorization: expect.anything() as unknown }),
  ]);
});

test('status --check does not accept the daemon of another state directory', async () => {
  await using daemon = await startLicenseDaemon();
  daemon.answer({ body: { status: 'ok', reasons: [] } });
  daemon.become('0199-another');
  const { code, out, err } = await latchkey('status', '--check', '--state-dir', daemon.stateDir);
  expect({ code, out }).toEqual({ code: 69, out: '' });
  expect(err).toContain(`${daemon.socket}: the daemon of another state directory listens there`);
});

test('doctor does not read the status of the daemon of another state directory', async () => {
  await using daemon = await startLicenseDaemon();
  daemon.answer({ body: { status: 'ok', reasons: [] } });
  daemon.become('0199-another');
  await daemon.announce({ socket: null, tcp: daemon.url });
  const { out } = await latchkey('doctor', '--state-dir', daemon.stateDir);
  expect(out).not.toContain('the daemon is ready');
  expect(out).toContain(
    `warn  no daemon runs here; ${daemon.url}: the daemon of another state directory listens there`,
  );
});

test('another program at the address of a killed daemon gets no token', async () => {
  await using daemon = await startLicenseDaemon();
  daemon.become(null);
  const { code, err } = await latchkey('verify', 'K', '--state-dir', daemon.stateDir);
  expect(code).toBe(69);
  expect(err).toContain(`${daemon.url}: something other than Latchkey is listening there`);
  expect(daemon.received).toEqual([]);
});

test('a command uses the port if the socket belongs to another daemon', async () => {
  await using daemon = await startLicenseDaemon();
  await using other = await startFakeDaemon();
  other.become('0199-another');
  await daemon.announce({ socket: other.socket, tcp: daemon.url });
  expect((await latchkey('verify', 'K', '--state-dir', daemon.stateDir)).code).toBe(0);
  expect(other.received).toEqual([]);
  expect(daemon.received).toMatchObject([{ listener: 'tcp' }]);
});

test('an unreadable listen.json is reported with the advice to restart the daemon', async () => {
  await using daemon = await startLicenseDaemon();
  const file = join(daemon.stateDir, 'listen.json');
  await writeFile(file, JSON.stringify({ socket: daemon.socket, tcp: null }));
  const { code, err } = await latchkey('verify', 'K', '--state-dir', daemon.stateDir);
  expect(code).toBe(1);
  expect(err).toContain(`${file} cannot be read: the daemon may be running another version.`);
  expect(daemon.received).toEqual([]);
});

test('LATCHKEY_TOKEN overrides the token in the state directory', async () => {
  await using daemon = await startLicenseDaemon();
  vi.stubEnv('LATCHKEY_TOKEN', 'lk_other');
  await latchkey('verify', 'K', '--state-dir', daemon.stateDir);
  expect(daemon.received[0]?.headers.authorization).toBe('Bearer lk_other');
});

test('LATCHKEY_TOKEN is not sent to a daemon that cannot prove that it knows admin.token', async () => {
  await using daemon = await startLicenseDaemon();
  vi.stubEnv('LATCHKEY_TOKEN', 'lk_other');
  await writeFile(join(daemon.stateDir, 'admin.token'), 'lk_replaced\n');
  const { code, err } = await latchkey('verify', 'K', '--state-dir', daemon.stateDir);
  expect(code).toBe(69);
  expect(err).toContain(
    'does not know the token in admin.token; if the file was replaced, restart the daemon',
  );
  expect(daemon.received).toEqual([]);
});

// Windows does not show which user listens: without admin.token it sends no token.
test.skipIf(isWindows)('without admin.token, LATCHKEY_TOKEN is sent with a warning', async () => {
  await using daemon = await startLicenseDaemon();
  vi.stubEnv('LATCHKEY_TOKEN', 'lk_other');
  await rm(join(daemon.stateDir, 'admin.token'));
  const { code, err } = await latchkey('verify', 'K', '--state-dir', daemon.stateDir);
  expect([code, err]).toEqual([
    0,
    'latchkey: LATCHKEY_TOKEN is sent without a proof that this is the daemon: there is no admin.token to check with\n',
  ]);
  expect(daemon.received[0]?.headers.authorization).toBe('Bearer lk_other');
});

test('a daemon of an older version gets no token, and the error says to restart it', async () => {
  await using daemon = await startLicenseDaemon();
  daemon.age();
  await daemon.announce({ socket: null, tcp: daemon.url });
  expect(await latchkey('verify', 'K', '--state-dir', daemon.stateDir)).toEqual({
    code: 69,
    out: '',
    err:
      `latchkey: the token was not sent: no proof that the daemon on ${daemon.stateDir} (from --state-dir) listens there; looked at\n` +
      `  ${daemon.url}: the daemon there cannot prove that it knows admin.token: restart it after the upgrade\n`,
  });
  expect(daemon.received).toEqual([]);
});

// Its paths are those of POSIX.
test.skipIf(isWindows)('without a daemon, the error lists each address and how to start one', async () => {
  await using daemon = await startLicenseDaemon();
  await daemon.announce({ socket: join(daemon.stateDir, 'gone.sock'), tcp: 'http://127.0.0.1:1' });
  const { code, err } = await latchkey('verify', 'K', '--state-dir', daemon.stateDir);
  expect(code).toBe(69);
  expect(err).toContain(`${daemon.stateDir}/gone.sock: no such file or directory`);
  expect(err).toContain('http://127.0.0.1:1: connection refused');
  expect(err).toContain(`latchkey --state-dir ${daemon.stateDir} serve`);
});

// Its paths are those of POSIX.
test.skipIf(isWindows)(
  'a daemon that accepts connections and does not respond is reported as hanging',
  async () => {
    await using daemon = await startLicenseDaemon();
    const socket = join(daemon.stateDir, 'silent.sock');
    const held = new Set<Socket>();
    await using server = createServer((connection) => held.add(connection)).listen(socket);
    await once(server, 'listening');
    await daemon.announce({ socket, tcp: daemon.url });
    const inTime = AbortSignal.timeout.bind(AbortSignal);
    vi.spyOn(AbortSignal, 'timeout').mockImplementation(() => inTime(50));
    const hint = `end its process, then start it: latchkey --state-dir ${daemon.stateDir} serve`;
    const { code, err } = await latchkey('verify', 'K', '--state-dir', daemon.stateDir);
    expect([code, err]).toEqual([69, expect.stringContaining(`It hangs: ${hint}\n`) as string]);
    const examined = await latchkey('doctor', '--state-dir', daemon.stateDir);
    expect(examined.code).toBe(1);
    expect(examined.out).toContain('fail  the daemon accepts connections and does not respond; ');
    expect(examined.out).toContain(hint);
    expect(daemon.probes).toEqual([]);
    for (const connection of held) connection.destroy();
  },
);

test('an unreadable or empty token is reported', async () => {
  await using daemon = await startLicenseDaemon();
  await writeFile(join(daemon.stateDir, 'admin.token'), 'two\nlines\n');
  expect(await latchkey('verify', 'K', '--state-dir', daemon.stateDir)).toMatchObject({
    code: 1,
    err: expect.stringContaining('no token in') as string,
  });
  expect(daemon.received).toEqual([]);
});

test('a request without a response is not repeated', async () => {
  await using daemon = await startLicenseDaemon();
  daemon.answer(undefined);
  const { code, err } = await latchkey('use', 'K', '--state-dir', daemon.stateDir);
  expect(code).toBe(69);
  expect(err).toContain('may or may not have been made');
  expect(daemon.received).toHaveLength(1);
});

test('a command prints each error of the configuration on a line', async () => {
  await using directory = temporaryDirectory();
  const file = join(directory.path, 'config.yaml');
  await writeFile(file, 'listen: { tcp: nonsense, socket: [] }\n');
  const { code, err } = await latchkey('verify', 'K', '--config', file);
  expect(code).toBe(78);
  expect(err.trimEnd().split('\n')).toEqual([
    expect.stringMatching(/listen\.tcp: must be host:port/),
    expect.stringMatching(/listen\.socket: must be a path/),
  ]);
});

test.skipIf(!isRoot)('the token is not sent to a socket that another user holds', async () => {
  await using daemon = await startLicenseDaemon();
  await daemon.announce({ socket: daemon.socket, tcp: null });
  await chown(daemon.socket, stranger, stranger);
  const { code, err } = await latchkey('verify', 'K', '--state-dir', daemon.stateDir);
  expect(code).toBe(69);
  expect(err).toContain(`${daemon.socket}: user ${stranger} listens there`);
  expect(daemon.received).toEqual([]);
});

test.skipIf(!isRoot)("root sends the token of the daemon's own user to that daemon", async () => {
  await using daemon = await startFakeDaemon();
  daemon.answer({ body: { data: { operations: [] } } });
  for (const name of ['.', 'fake.sock', 'admin.token', 'listen.json']) {
    await chown(join(daemon.stateDir, name), stranger, stranger);
  }
  expect(await latchkey('outbox', 'list', '--state-dir', daemon.stateDir)).toMatchObject({ code: 0 });
  expect(daemon.received).toHaveLength(1);
});

test.skipIf(!isRoot)('LATCHKEY_TOKEN alone is not sent to a port that another user holds', async () => {
  vi.stubEnv('LATCHKEY_TOKEN', 'lk_other');
  await using daemon = await startLicenseDaemon();
  const script = `
    const server = require('node:http').createServer((request, response) => {
      process.stdout.write('RECEIVED ' + JSON.stringify(request.headers) + '\\n');
      response.end('{}');
    }).listen(0, '127.0.0.1', () => process.stdout.write(server.address().port + '\\n'));`;
  const options = { uid: stranger, gid: stranger, cwd: '/', timeout: patienceMs } as const;
  const child = spawn(process.execPath, ['-e', script], { ...options, stdio: ['ignore', 'pipe', 'inherit'] });
  try {
    let heard = '';
    child.stdout.on('data', (bytes: Buffer) => (heard += bytes.toString()));
    await once(child.stdout, 'data');
    const tcp = `http://127.0.0.1:${heard.trim()}`;
    await daemon.announce({ socket: null, tcp });
    await rm(join(daemon.stateDir, 'admin.token'));
    const { code, err } = await latchkey('verify', 'K', '--state-dir', daemon.stateDir);
    expect(code).toBe(69);
    expect(err).toContain(`${tcp}: user ${stranger} listens there`);
    expect(heard).not.toContain('RECEIVED');
  } finally {
    child.kill();
  }
});
