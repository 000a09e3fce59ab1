import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import {
  formatLaunchdJob,
  formatScheduledTask,
  formatWinswService,
  windowsAccount,
  windowsSid,
  type XmlServiceOptions,
} from '../../src/cli/commands/service/xml-service.ts';
import { isUnchanged } from '../../src/cli/commands/service/systemd-unit.ts';
import { startCommand } from '../../src/cli/hint.ts';
import { latchkey } from '../support/process/command-line.ts';
import { temporaryDirectory } from '../support/temporary.ts';

const hasPython = spawnSync('python3', ['-c', 'import plistlib, xml.etree.ElementTree']).status === 0;
/** Elsewhere, one of these platforms is not another. */
const isLinux = process.platform === 'linux';
const note = hasPython ? '' : ' (skipped without python3)';

/** Each element with text, by its path: `service/startargument`. */
function readXml(text: string): readonly (readonly [path: string, value: string])[] {
  const program = `
import json, re, sys, xml.etree.ElementTree as tree
found = []
def read(element, path):
    path = path + [re.sub('{.*}', '', element.tag)]
    for name, value in element.attrib.items(): found.append(['/'.join(path) + '@' + name, value])
    if (element.text or '').strip(): found.append(['/'.join(path), element.text.strip()])
    for child in element: read(child, path)
read(tree.fromstring(sys.stdin.buffer.read()), [])
json.dump(found, sys.stdout)`;
  return JSON.parse(python(program, text)) as [string, string][];
}

function readPlist(text: string): unknown {
  return JSON.parse(
    python(
      'import json, plistlib, sys; json.dump(plistlib.loads(sys.stdin.buffer.read()), sys.stdout)',
      text,
    ),
  );
}

function python(program: string, input: string): string {
  const { status, stdout, stderr } = spawnSync('python3', ['-c', program], { input, encoding: 'utf8' });
  if (status !== 0) throw new Error(stderr);
  return stdout;
}

const valuesIn = (xml: ReturnType<typeof readXml>, path: string): readonly string[] =>
  xml.filter(([at]) => at === path).map(([, value]) => value);

const windows = {
  scope: 'system',
  program: [String.raw`C:\Program Files\nodejs\node.exe`, String.raw`C:\A & B\<x>\launcher.js`],
  config: String.raw`C:\Ada's "files"\100%\config.yaml`,
  stateDir: 'D:\\my state\\',
  home: null,
  userName: String.raw`DESK\Ada & Bob`,
} as const satisfies XmlServiceOptions;

const mac = {
  scope: 'system',
  program: ['/opt/a & b/<node>', '/opt/launcher.js'],
  config: '/etc/"x"/config.yaml',
  stateDir: null,
  home: '/Users/ada & bob',
  userName: null,
} as const satisfies XmlServiceOptions;

test.skipIf(!hasPython)(
  `the file for WinSW starts and stops the daemon with the same words, and restarts it after a failure${note}`,
  () => {
    const xml = readXml(formatWinswService(windows));
    expect(valuesIn(xml, 'service/executable')).toEqual([windows.program[0]]);
    const words = (command: string): readonly string[] => [
      '--disable-sigusr1',
      '--max-semi-space-size=4',
      windows.program[1],
      command,
      '--config',
      windows.config,
      '--state-dir',
      windows.stateDir,
    ];
    expect(valuesIn(xml, 'service/startargument')).toEqual(words('serve'));
    expect(valuesIn(xml, 'service/stopargument')).toEqual(words('stop'));
    expect(valuesIn(xml, 'service/onfailure@action')).toEqual(['restart', 'restart', 'restart']);
    expect(valuesIn(xml, 'service/resetfailure')).toEqual(['1 hour']);
    const plain = readXml(formatWinswService({ ...windows, config: null, stateDir: null }));
    expect(valuesIn(plain, 'service/env@value')).toEqual([String.raw`%ProgramData%\Latchkey`]);
    expect(valuesIn(plain, 'service/logpath')).toEqual([String.raw`%ProgramData%\Latchkey\logs`]);
    expect(valuesIn(plain, 'service/serviceaccount/username')).toEqual([
      String.raw`NT AUTHORITY\LocalService`,
    ]);
  },
);

test.skipIf(!hasPython)(
  `the task of Windows starts the daemon when its user logs on, without a time limit${note}`,
  () => {
    const xml = readXml(formatScheduledTask({ ...windows, scope: 'user' }));
    expect(valuesIn(xml, 'Task/Triggers/LogonTrigger/UserId')).toEqual([windows.userName]);
    expect(valuesIn(xml, 'Task/Principals/Principal/UserId')).toEqual([windows.userName]);
    expect(valuesIn(xml, 'Task/Settings/ExecutionTimeLimit')).toEqual(['PT0S']);
    expect(valuesIn(xml, 'Task/Settings/RestartOnFailure/Count')).toEqual(['255']);
    expect(valuesIn(xml, 'Task/Settings/Hidden')).toEqual(['true']);
    expect(valuesIn(xml, 'Task/Actions/Exec/Command')).toEqual([windows.program[0]]);
    const plain = readXml(
      formatScheduledTask({ ...windows, scope: 'user', config: String.raw`C:\x\c.yaml`, userName: null }),
    );
    // A backslash before a quotation mark is doubled, or the program would read the mark as part of the path.
    expect(valuesIn(plain, 'Task/Actions/Exec/Arguments')).toEqual([
      String.raw`--disable-sigusr1 --max-semi-space-size=4 "C:\A & B\<x>\launcher.js" serve --config C:\x\c.yaml --state-dir "D:\my state\\"`,
    ]);
    expect(plain.filter(([path]) => path.endsWith('UserId'))).toEqual([]);
  },
);

test.skipIf(!hasPython)(
  `the job of launchd runs at load and after a failure, as a user of its own or as an agent of this user${note}`,
  () => {
    const daemon = {
      Label: 'latchkey',
      ProgramArguments: [
        mac.program[0],
        '--disable-sigusr1',
        '--max-semi-space-size=4',
        mac.program[1],
        'serve',
        '--config',
        mac.config,
      ],
      RunAtLoad: true,
      KeepAlive: { SuccessfulExit: false },
      ExitTimeOut: 20,
      Umask: 0o077,
      StandardOutPath: '/Library/Logs/Latchkey/latchkey.log',
      StandardErrorPath: '/Library/Logs/Latchkey/latchkey.log',
      UserName: '_latchkey',
      EnvironmentVariables: { STATE_DIRECTORY: '/Library/Application Support/Latchkey' },
    };
    expect(readPlist(formatLaunchdJob(mac))).toEqual(daemon);
    const { UserName: _user, EnvironmentVariables: _variables, ...agent } = daemon;
    const log = '/Users/ada & bob/Library/Logs/Latchkey/latchkey.log';
    expect(readPlist(formatLaunchdJob({ ...mac, scope: 'user' }))).toEqual({
      ...agent,
      StandardOutPath: log,
      StandardErrorPath: log,
    });
  },
);

test('a path with a control character is refused, because XML cannot have it', () => {
  for (const format of [formatWinswService, formatScheduledTask, formatLaunchdJob]) {
    expect(() => format({ ...mac, config: '/etc/a\u0001' })).toThrow('has a control character');
  }
});

test('an edit of the file for Windows or macOS is detected, on any line', () => {
  for (const text of [formatWinswService(windows), formatScheduledTask(windows), formatLaunchdJob(mac)]) {
    expect(isUnchanged(text)).toBe(true);
    expect(isUnchanged(`<!-- mine -->\n${text}`)).toBe(false);
    expect(isUnchanged(text.replace('serve', 'demo'))).toBe(false);
  }
  expect(isUnchanged('<service/>\n')).toBe(false);
});

test.runIf(isLinux)(
  'service print prints for another platform, and asks for full paths of that platform',
  async () => {
    const print = async (...argv: string[]) =>
      await latchkey('service', 'print', '--platform', ...argv, '--json');
    const read = async (...argv: string[]): Promise<{ path: string; unit: string }> =>
      JSON.parse((await print(...argv)).out) as { path: string; unit: string };
    const service = await read('win32', '--config', String.raw`D:\config.yaml`);
    expect(service.path).toBe(String.raw`C:\Program Files\Latchkey\latchkey-service.xml`);
    expect(service.unit).toContain(
      String.raw`<executable>C:\Program Files\Latchkey\latchkey.exe</executable>`,
    );
    expect(service.unit).toContain(String.raw`<startargument>D:\config.yaml</startargument>`);
    expect((await read('win32', '--user')).path).toBe(String.raw`%LOCALAPPDATA%\Latchkey\latchkey-task.xml`);
    expect((await read('darwin')).path).toBe('/Library/LaunchDaemons/latchkey.plist');
    const agent = await read('darwin', '--user');
    expect(agent.path).toBe('~/Library/LaunchAgents/latchkey.plist');
    // The home directory there is not known.
    expect(agent.unit).not.toContain('StandardOutPath');
    expect(await print('win32', '--config', 'config.yaml')).toMatchObject({
      code: 1,
      err: expect.stringContaining('config.yaml is not a full path on win32'),
    });
  },
);

test('startCommand suggests the service of the machine for its state directory, and serve for another', async () => {
  await using folder = temporaryDirectory();
  const start = (platform: 'darwin' | 'win32', stateDir: string): string =>
    startCommand({}, stateDir, platform, [folder.path]);
  const macState = '/Library/Application Support/Latchkey';
  const windowsState = String.raw`C:\ProgramData\Latchkey`;
  expect(start('darwin', macState)).toBe('latchkey serve');
  writeFileSync(join(folder.path, 'latchkey.plist'), formatLaunchdJob(mac));
  expect(start('darwin', macState)).toBe('sudo launchctl kickstart system/latchkey');
  expect(start('darwin', '/Library')).toBe('latchkey serve');
  const plain = formatWinswService({ ...windows, config: null, stateDir: null });
  writeFileSync(join(folder.path, 'latchkey-service.xml'), plain);
  expect(start('win32', windowsState)).toBe('sc.exe start latchkey');
  expect(start('win32', String.raw`D:\my state`)).toBe('latchkey serve');
});

test('the SID of the account of the service is the hash of its name', () => {
  const sidOf = (name: string): string => {
    const digest = createHash('sha1').update(Buffer.from(name.toUpperCase(), 'utf16le')).digest();
    return ['S-1-5-80', ...[0, 4, 8, 12, 16].map((at) => digest.readUInt32LE(at))].join('-');
  };
  // This one is known.
  expect(sidOf('TrustedInstaller')).toBe('S-1-5-80-956008885-3418522649-1831038044-1853292631-2271478464');
  expect(windowsSid).toBe(sidOf(windowsAccount.replace(/^.*\\/, '')));
});

test.runIf(isLinux).each([
  [
    'darwin',
    'Library/LaunchDaemons/latchkey.plist',
    'launchctl bootstrap system /Library/LaunchDaemons/latchkey.plist',
    'launchctl bootout system/latchkey',
  ],
  [
    'win32',
    'Program Files/Latchkey/latchkey-service.xml',
    'cd "C:\\Program Files\\Latchkey"',
    'sc.exe delete latchkey',
  ],
])(
  'service install --platform %s writes %s below --root, and uninstall removes it',
  async (platform, file, next, last) => {
    await using root = temporaryDirectory();
    const path = join(root.path, file);
    const call = async (command: string) =>
      await latchkey('service', command, '--platform', platform, '--root', root.path);
    for (const _ of [1, 2]) {
      const { code, out } = await call('install');
      expect([code, out.split('\n')[0]]).toEqual([0, `Installed ${path}. Next:`]);
      expect(out).toContain(next);
    }
    const printed = (await latchkey('service', 'print', '--platform', platform)).out;
    expect(readFileSync(path, 'utf8')).toBe(printed);
    writeFileSync(path, printed.replace('serve', 'demo'));
    for (const command of ['install', 'uninstall']) {
      expect(await call(command)).toMatchObject({ code: 1, err: expect.stringContaining('was edited') });
    }
    writeFileSync(path, printed);
    const removed = await call('uninstall');
    expect([removed.code, removed.out]).toEqual([0, expect.stringContaining(last)]);
    expect(await call('uninstall')).toMatchObject({ code: 1 });
  },
);

test('service install refuses another platform without --root, and a user of another platform', async () => {
  await using root = temporaryDirectory();
  for (const argv of [[], ['--user', '--root', root.path]]) {
    for (const command of ['install', 'uninstall']) {
      const { code, err } = await latchkey('service', command, '--platform', 'darwin', ...argv);
      expect(code).toBe(1);
      expect(err).toContain(
        'cannot be installed here for darwin. See: latchkey service print --platform darwin',
      );
    }
  }
});
