import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterEach, expect, test, vi } from 'vitest';
import { formatUnit, type UnitOptions } from '../../../src/features/install/system-service/systemd-unit.ts';
import { startCommandOf } from '../../../src/features/install/system-service/service-file.ts';
import { temporaryDirectory } from '../../support/temporary.ts';
import { latchkey, type Outcome } from '../../support/process/command-line.ts';

const hasAnalyze = spawnSync('systemd-analyze', ['--version']).status === 0;
const plain = {
  scope: 'system',
  program: ['/usr/bin/latchkey'],
  config: null,
  stateDir: null,
  writes: '/var/lib/latchkey',
} as const satisfies UnitOptions;
const unitIn = (root: string): string => join(root, 'etc/systemd/system/latchkey.service');

afterEach(() => {
  vi.unstubAllEnvs();
});

test('service print prints the unit and changes nothing', async () => {
  await using root = temporaryDirectory();
  const { code, out } = await latchkey('service', 'print', '--root', root.path);
  expect(code).toBe(0);
  expect(out).toContain(`ExecStart=${process.execPath} `);
  expect(out).toContain('src/cli/launcher.js serve\n');
  for (const line of [
    'Type=notify',
    'NotifyAccess=all',
    'ExecReload=/bin/kill -HUP $MAINPID',
    'User=latchkey',
    // Its user has no home.
    'CacheDirectory=latchkey',
  ]) {
    expect(out.split('\n')).toContain(line);
  }
  expect(existsSync(join(root.path, 'etc'))).toBe(false);
  const machine = await latchkey('service', 'print', '--root', root.path, '--json');
  expect(JSON.parse(machine.out)).toEqual({ path: unitIn(root.path), unit: out });
});

test('service install writes the unit below --root and prints the next steps, also when it is repeated', async () => {
  await using root = temporaryDirectory();
  for (const _ of [1, 2]) {
    const { code, out } = await latchkey('service', 'install', '--root', root.path);
    expect({ code, first: out.split('\n')[0] }).toEqual({
      code: 0,
      first: `Installed ${unitIn(root.path)}. Next:`,
    });
    expect(out).toContain('systemctl enable --now latchkey');
  }
  const { out } = await latchkey('service', 'print');
  expect(readFileSync(unitIn(root.path), 'utf8')).toBe(out);
});

test('service install advises to add the user only if there is none', async () => {
  await using root = temporaryDirectory();
  const advice = async (): Promise<string> => (await latchkey('service', 'install', '--root', root.path)).out;
  expect(await advice()).toContain('  useradd --system');
  writeFileSync(join(root.path, 'etc/passwd'), 'latchkey:x:990:990::/nonexistent:/usr/sbin/nologin\n');
  expect(await advice()).not.toContain('useradd');
});

test('service install asks for the line state_dir unless the configuration file has that line', async () => {
  await using root = temporaryDirectory();
  const config = join(root.path, 'etc/latchkey/config.yaml');
  const install = async (...argv: string[]): Promise<string> =>
    (await latchkey('service', 'install', '--root', root.path, ...argv)).out;
  const step = '  edit /etc/latchkey/config.yaml';
  const line = `${step}: it needs the line  state_dir: /var/lib/latchkey\n`;
  expect(await install()).toContain(line);
  mkdirSync(dirname(config), { recursive: true });
  for (const text of ['listen: { tcp: 127.0.0.1:8787 }\n', 'state_dir: /srv/latchkey\n', 'state_dir: [\n']) {
    writeFileSync(config, text);
    expect(await install()).toContain(line);
  }
  writeFileSync(config, 'state_dir: /var/lib/latchkey\nupstream: { base_url: x }\n');
  expect(await install()).toContain(`${step}\n`);
  // The option wins over the file, but other commands read only the file.
  const other = await install('--state-dir', '/srv/latchkey');
  expect(other).toContain(`${step}: it needs the line  state_dir: /srv/latchkey\n`);
});

test('the unit checks the configuration before a reload signals the daemon', async () => {
  await using root = temporaryDirectory();
  const file = join(root.path, 'latchkey.yaml');
  const unit = formatUnit({ ...plain, config: file, stateDir: '/var/lib/latchkey' });
  const [check = '', signal] = [...unit.matchAll(/^ExecReload=(.*)$/gm)].map(([, command]) => command);
  expect(signal).toBe('/bin/kill -HUP $MAINPID');
  const [program, ...argv] = check.split(' ');
  expect(program).toBe('/usr/bin/latchkey');
  writeFileSync(file, 'listen: { tcp: 127.0.0.1:8787 }\n', { mode: 0o600 });
  expect(await latchkey(...argv)).toMatchObject({ code: 0 });
  writeFileSync(file, 'listen: { tcp: nonsense }\n');
  expect(await latchkey(...argv)).toMatchObject({ code: 78, err: expect.stringContaining('listen.tcp') });
});

test('service install replaces a unit of another version, but no edited unit', async () => {
  await using root = temporaryDirectory();
  const path = unitIn(root.path);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, formatUnit({ ...plain, program: ['/old/latchkey'] }));
  expect(await latchkey('service', 'install', '--root', root.path)).toMatchObject({ code: 0 });
  const changed = `${readFileSync(path, 'utf8')}Environment=A=b\n`;
  writeFileSync(path, changed);
  for (const command of ['install', 'uninstall']) {
    const { code, err } = await latchkey('service', command, '--root', root.path);
    expect(code).toBe(1);
    expect(err).toContain(`${path} was edited`);
  }
  expect(readFileSync(path, 'utf8')).toBe(changed);
});

test('service uninstall removes the unit once it is disabled', async () => {
  await using root = temporaryDirectory();
  const path = unitIn(root.path);
  await latchkey('service', 'install', '--root', root.path);
  const wants = join(dirname(path), 'multi-user.target.wants');
  mkdirSync(wants);
  symlinkSync(path, join(wants, 'latchkey.service'));
  expect(await latchkey('service', 'uninstall', '--root', root.path)).toMatchObject({
    code: 1,
    err: `latchkey: ${path} is enabled. First: systemctl disable --now latchkey\n`,
  });
  spawnSync('rm', [join(wants, 'latchkey.service')]);
  expect(await latchkey('service', 'uninstall', '--root', root.path)).toMatchObject({ code: 0 });
  expect(existsSync(path)).toBe(false);
  expect(await latchkey('service', 'uninstall', '--root', root.path)).toMatchObject({ code: 1 });
});

test("service install --user writes the unit where the user's systemd looks", async () => {
  await using home = temporaryDirectory();
  vi.stubEnv('XDG_CONFIG_HOME', join(home.path, 'config'));
  const { code, out } = await latchkey('service', 'install', '--user');
  expect(code).toBe(0);
  expect(out).toContain('systemctl --user enable --now latchkey');
  const unit = readFileSync(join(home.path, 'config/systemd/user/latchkey.service'), 'utf8');
  expect(unit).toContain('WantedBy=default.target');
  expect(unit).not.toMatch(/User=|StateDirectory=|Protect/);
});

test('the first line of a unit names the systemctl edit command for it', async () => {
  await using home = temporaryDirectory();
  vi.stubEnv('XDG_CONFIG_HOME', join(home.path, 'config'));
  const firstLine = async (...argv: string[]): Promise<string | undefined> =>
    (await latchkey('service', 'print', ...argv)).out.split('\n')[0];
  expect(await firstLine()).toMatch(/To change it: systemctl edit latchkey$/);
  expect(await firstLine('--user')).toMatch(/To change it: systemctl --user edit latchkey$/);
  // One of an earlier version, which named the manager of the machine, is unchanged all the same.
  const path = join(home.path, 'config/systemd/user/latchkey.service');
  await latchkey('service', 'install', '--user');
  writeFileSync(path, readFileSync(path, 'utf8').replace('systemctl --user edit', 'systemctl edit'));
  expect(await latchkey('service', 'uninstall', '--user')).toMatchObject({ code: 0, err: '' });
});

test('a unit quotes words that systemd would expand', () => {
  const unit = formatUnit({
    ...plain,
    program: ['/opt/a b/lat"ch'],
    config: '/etc/100%/$x.yaml',
    writes: '/srv/100%/$x y',
  });
  expect(unit).toContain(String.raw`ExecStart="/opt/a b/lat\"ch" serve --config /etc/100%%/$$x.yaml`);
  expect(unit).toContain('ReadWritePaths="/srv/100%%/$x y"\n');
});

test('the unit has the state directory and the configuration of the command line', async () => {
  await using home = temporaryDirectory();
  const config = join(home.path, 'latchkey.yaml');
  writeFileSync(config, 'state_dir: /var/lib/shops/latchkey\n');
  const byFile = await latchkey('service', 'print', '--config', config);
  expect(byFile.out).toContain(`serve --config ${config}\n`);
  expect(byFile.out).toContain('StateDirectory=shops/latchkey\n');
  const byFlag = await latchkey('service', 'print', '--config', config, '--state-dir', '/srv/latchkey');
  expect(byFlag.out).toContain(`serve --config ${config} --state-dir /srv/latchkey\n`);
  expect(byFlag.out).toContain('ReadWritePaths=/srv/latchkey\n');
  expect(byFlag.out).not.toContain('StateDirectory=');
  vi.stubEnv('XDG_CONFIG_HOME', join(home.path, 'config'));
  const ofUser = await latchkey('service', 'install', '--user', '--state-dir', join(home.path, 'state'));
  expect(ofUser.out).toContain(`latchkey --state-dir ${join(home.path, 'state')} doctor`);
});

test('the command to start a daemon is that of the system service for its state directory', async () => {
  await using folder = temporaryDirectory();
  const start = (stateDir: string): string | null =>
    startCommandOf(stateDir, 'linux', ['/nowhere', folder.path]);
  expect(start('/var/lib/latchkey')).toBeNull();
  for (const [of, unit] of [
    ['/var/lib/latchkey', formatUnit(plain)],
    ['/srv/latchkey', formatUnit({ ...plain, writes: '/srv/latchkey' })],
  ] as const) {
    writeFileSync(join(folder.path, 'latchkey.service'), unit);
    const others = ['/var/lib/latchkey', '/srv/latchkey', '/srv'].filter((path) => path !== of);
    expect(start(of)).toBe('systemctl start latchkey');
    for (const other of others) expect(start(other)).toBeNull();
  }
});

test('service install refuses a system service that could not read its program or write its state', async () => {
  await using home = temporaryDirectory('/tmp');
  const program = join(home.path, 'latchkey');
  writeFileSync(program, '', { mode: 0o755 });
  const install = (...argv: string[]): Promise<Outcome> =>
    latchkey('service', 'install', '--program', program, '--state-dir', '/home/ada/state', ...argv);
  const { code, out, err } = await install();
  expect([code, out]).toEqual([1, '']);
  expect(err).toContain(`${program} is hidden from the service, which has its own /tmp`);
  expect(err).toContain('the state directory /home/ada/state is in a home directory');
  expect(err).toContain('latchkey service install --user');
  // Another system is not this one.
  expect(await install('--root', home.path)).toMatchObject({ code: 0 });
});

test('a unit for a program in a home directory can read home directories', () => {
  const unitFor = (program: string): string => formatUnit({ ...plain, program: [program] });
  expect(unitFor('/home/ada/latchkey')).toContain('ProtectHome=read-only');
  expect(unitFor('/usr/bin/latchkey')).toContain('ProtectHome=yes');
});

test('the unit has no start timeout, because a migration may be long', () => {
  expect(formatUnit(plain).split('\n')).toContain('TimeoutStartSec=infinity');
});

test.runIf(hasAnalyze)(
  'systemd finds nothing wrong with the unit, and little exposed (skipped without systemd-analyze)',
  async () => {
    await using root = temporaryDirectory();
    await latchkey('service', 'install', '--root', root.path);
    const analyze = (...argv: string[]) => spawnSync('systemd-analyze', argv, { encoding: 'utf8' });
    const verified = analyze('verify', '--man=no', unitIn(root.path));
    expect([verified.status, verified.stderr]).toEqual([0, '']);
    const exposure = analyze('security', '--offline=yes', '--no-pager', unitIn(root.path));
    const level = /Overall exposure level for latchkey\.service: ([\d.]+)/.exec(exposure.stdout)?.[1];
    expect(Number(level)).toBeLessThan(2.5);
  },
);
