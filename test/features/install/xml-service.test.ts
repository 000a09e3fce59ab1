import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import {
  formatLaunchdJob,
  formatScheduledTask,
  formatWinswService,
  type XmlServiceOptions,
} from '../../../src/features/install/system-service/xml-service.ts';
import { checkSystem, startCommandOf } from '../../../src/features/install/system-service/service-file.ts';
import { latchkey } from '../../support/process/command-line.ts';
import { temporaryDirectory } from '../../support/temporary.ts';

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

test('the command to start a daemon is that of the service for its state directory', async () => {
  await using folder = temporaryDirectory();
  const start = (platform: 'darwin' | 'win32', stateDir: string): string | null =>
    startCommandOf(stateDir, platform, [folder.path]);
  const macState = '/Library/Application Support/Latchkey';
  const windowsState = String.raw`C:\ProgramData\Latchkey`;
  expect(start('darwin', macState)).toBeNull();
  writeFileSync(join(folder.path, 'latchkey.plist'), formatLaunchdJob(mac));
  expect(start('darwin', macState)).toBe('sudo launchctl kickstart system/latchkey');
  expect(start('darwin', '/Library')).toBeNull();
  const plain = formatWinswService({ ...windows, config: null, stateDir: null });
  writeFileSync(join(folder.path, 'latchkey-service.xml'), plain);
  expect(start('win32', windowsState)).toBe('sc.exe start latchkey');
  expect(start('win32', String.raw`D:\my state`)).toBeNull();
});

test('the guide gives the state directory to the SID of the account, which is the hash of its name', () => {
  const sidOf = (name: string): string => {
    const digest = createHash('sha1').update(Buffer.from(name.toUpperCase(), 'utf16le')).digest();
    return ['S-1-5-80', ...[0, 4, 8, 12, 16].map((at) => digest.readUInt32LE(at))].join('-');
  };
  // This one is known.
  expect(sidOf('TrustedInstaller')).toBe('S-1-5-80-956008885-3418522649-1831038044-1853292631-2271478464');
  const guide = readFileSync(join(import.meta.dirname, '../../../examples/guides/platforms.md'), 'utf8');
  expect(guide).toContain(`"*${sidOf('latchkey')}:(OI)(CI)F"`);
});

test('service install and uninstall are refused where there is no systemd, unless they are for an image', () => {
  for (const platform of ['darwin', 'win32'] as const) {
    expect(() => checkSystem({ root: undefined }, platform)).toThrow(
      'Print the file of a service: latchkey service print',
    );
    expect(() => checkSystem({ root: '/image' }, platform)).not.toThrow();
  }
});
