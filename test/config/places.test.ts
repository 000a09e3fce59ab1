import { randomUUID } from 'node:crypto';
import { rmSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { win32 } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { defaultStateDirs, findAddresses, pipeOf as pipeOfClient } from '../../src/client/address.ts';
import {
  findConfigurationFiles,
  findSocket,
  type Machine,
  pipeOf,
  stateDirOf,
  systemStateDir,
  variableBehind,
} from '../../src/config/defaults.ts';
import { parseConfiguration } from '../../src/config/load.ts';
import type { Sources } from '../../src/config/source.ts';
import { configSources, configurationOf, errorsOf } from '../support/builders/config-builders.ts';

const windows: Machine['environment'] = {
  LOCALAPPDATA: String.raw`C:\Users\Ada\AppData\Local`,
  ProgramData: String.raw`C:\ProgramData`,
};
const onWindows = (environment = windows): Machine => ({
  environment,
  home: String.raw`C:\Users\Ada`,
  platform: 'win32',
});
const onMac: Machine = { environment: { XDG_STATE_HOME: '/x' }, home: '/Users/ada', platform: 'darwin' };

test('on Windows the state and the configuration are in the local application data of the user', () => {
  expect(stateDirOf(onWindows(), {})).toBe(String.raw`C:\Users\Ada\AppData\Local\Latchkey`);
  expect(stateDirOf(onWindows({}), {})).toBe(String.raw`C:\Users\Ada\AppData\Local\Latchkey`);
  expect(findConfigurationFiles(onWindows())).toEqual([
    String.raw`C:\Users\Ada\AppData\Local\Latchkey\config.yaml`,
    String.raw`C:\ProgramData\Latchkey\config.yaml`,
  ]);
});

test('on Windows the names of variables have no case, and a variable with a relative path is ignored', () => {
  const machine = onWindows({ localappdata: String.raw`D:\Local`, PROGRAMDATA: 'relative' });
  expect(stateDirOf(machine, {})).toBe(String.raw`D:\Local\Latchkey`);
  expect(systemStateDir(machine)).toBe(String.raw`C:\ProgramData\Latchkey`);
});

test('on Windows /etc is never searched, even if every other place is empty', () => {
  const read: string[] = [];
  const sources: Sources = {
    ...configSources({ platform: 'win32', environment: windows }),
    readFile: (path) => {
      read.push(path);
      throw Object.assign(new Error('ENOENT'), { code: 'ENOENT' });
    },
  };
  expect(parseConfiguration(sources)).toMatchObject({ ok: true, file: null });
  expect(read).toEqual([String.raw`C:\Users\Ada\AppData\Local\Latchkey\config.yaml`]);
});

const shared = String.raw`C:\ProgramData\Latchkey\config.yaml`;

test.each([
  ['safe', shared],
  [{ unsafe: 'other users can write to it' }, null],
] as const)('on Windows a configuration in ProgramData that is checked as %o is used: %s', (local, file) => {
  const input = {
    platform: 'win32',
    environment: windows,
    files: { [shared]: 'log: { level: warn }' },
  } as const;
  const result = parseConfiguration(configSources({ ...input, local }));
  expect(result).toMatchObject({ ok: true, file, configuration: { log: { level: file ? 'warn' : 'info' } } });
});

test('on macOS the state and the configuration are in Application Support, and XDG variables have no effect', () => {
  expect(stateDirOf(onMac, {})).toBe('/Users/ada/Library/Application Support/Latchkey');
  expect(findSocket({ ...onMac, environment: { XDG_RUNTIME_DIR: '/run/1' } }, '/s')).toBe('/s/latchkey.sock');
  expect(findConfigurationFiles(onMac)).toEqual([
    '/Users/ada/Library/Application Support/Latchkey/config.yaml',
    '/Library/Application Support/Latchkey/config.yaml',
  ]);
});

test('the pipe of a state directory has the same name for each way to write the path on Windows', () => {
  const name = pipeOf(String.raw`C:\Users\Ada\AppData\Local\Latchkey`);
  expect(name).toMatch(/^\\\\\.\\pipe\\latchkey-[0-9a-f]{32}$/);
  for (const path of [
    String.raw`c:\users\ADA\appdata\local\latchkey`,
    String.raw`C:\Users\Ada\AppData\Local\Latchkey` + '\\',
    'C:/Users/Ada/AppData/Local/Latchkey',
    String.raw`C:\Users\Eve\..\Ada\AppData\.\Local\Latchkey`,
    String.raw`\\?\C:\Users\Ada\AppData\Local\Latchkey`,
  ]) {
    expect(pipeOf(path), path).toBe(name);
    expect(pipeOfClient(path), path).toBe(name);
  }
  expect(pipeOf(String.raw`C:\Users\Eve\AppData\Local\Latchkey`)).not.toBe(name);
});

test.each([
  ['darwin', { XDG_STATE_HOME: '/x', XDG_RUNTIME_DIR: '/run/user/1' }],
  ['linux', { XDG_STATE_HOME: '/x', XDG_RUNTIME_DIR: '/run/user/1' }],
  ['linux', { XDG_STATE_HOME: 'relative' }],
] as const)('on %s with %o the client library looks where the daemon is', (platform, environment) => {
  const machine: Machine = { environment, home: homedir(), platform };
  const stateDir = stateDirOf(machine, {});
  expect(defaultStateDirs(environment, platform)).toEqual([stateDir, systemStateDir(machine)]);
  const sockets = findAddresses({}, environment, platform).map((each) => each.kind === 'socket' && each.path);
  expect(sockets[0]).toBe(findSocket(machine, stateDir));
});

test.each([
  { LOCALAPPDATA: String.raw`D:\Data`, ProgramData: String.raw`E:\Shared` },
  { localappdata: String.raw`D:\Data` },
  { LOCALAPPDATA: 'relative' },
])('on Windows with %o the client library looks only in the profile', (environment) => {
  const home = win32.join(homedir());
  expect(defaultStateDirs(environment, 'win32')).toEqual([
    stateDirOf({ environment, home, platform: 'win32' }, {}),
  ]);
  expect(findAddresses({}, environment, 'win32')).toEqual([]);
});

test('on Windows the client library finds the pipe of a state directory that the program names', () => {
  const agent = String.raw`C:\ProgramData\Latchkey`;
  expect(findAddresses({ stateDir: agent }, windows, 'win32')).toEqual([
    { agent, kind: 'socket', path: pipeOf(agent) },
  ]);
});

// On Linux, these paths of Windows are names of files in the working directory.
test.skipIf(process.platform === 'win32')(
  'on Windows the client library reads listen.json in the profile, but not in ProgramData',
  () => {
    const folders = ['LOCALAPPDATA', 'ProgramData'].map(
      (name) => [name, `\\${name}-${randomUUID()}`] as const,
    );
    for (const [, folder] of folders) {
      const file = `${folder}\\Latchkey\\listen.json`;
      writeFileSync(file, JSON.stringify({ tcp: 'http://127.0.0.1:4711', socket: null }));
      onTestFinished(() => rmSync(file));
    }
    const found = findAddresses({}, Object.fromEntries(folders), 'win32');
    const byTcp = found.filter(({ kind }) => kind === 'tcp').map(({ agent }) => agent);
    expect(byTcp).toEqual([`${folders[0]?.[1]}\\Latchkey`]);
  },
);

test('the configured state directory decides the default pipe', () => {
  const { stateDir, listen } = configurationOf({
    platform: 'win32',
    flags: { state_dir: String.raw`D:\Shop` },
  });
  expect([stateDir, listen.socket]).toEqual([String.raw`D:\Shop`, pipeOf(String.raw`d:\shop`)]);
});

test('a failed start on Windows names the variable behind the path', () => {
  const stateDir = stateDirOf(onWindows(), {});
  expect(variableBehind(stateDir, onWindows())).toBe('LOCALAPPDATA');
  expect(variableBehind(pipeOf(stateDir), onWindows())).toBe('LOCALAPPDATA');
  expect(variableBehind(stateDir, onWindows({}))).toBe('USERPROFILE');
  expect(variableBehind(String.raw`D:\Shop`, onWindows())).toBeNull();
});

test.each([
  ['linux', 107],
  ['darwin', 103],
] as const)('on %s the path of a socket has at most %i bytes', (platform, limit) => {
  const text = (length: number): string => `listen: { socket: /${'x'.repeat(length - 1)} }`;
  expect(configurationOf({ platform, text: text(limit) }).listen.socket).toHaveLength(limit);
  expect(errorsOf({ platform, text: text(limit + 1) })).toEqual([
    expect.stringContaining(`listen.socket: must be a path of at most ${limit} bytes`),
  ]);
});

const windowsSocket = (text: string): readonly string[] => errorsOf({ platform: 'win32', text });

test('on Windows a socket is a named pipe of at most 256 characters', () => {
  const pipe = (length: number): string => String.raw`\\.\pipe\ `.trim().padEnd(length, 'p');
  const of = (path: string): string => `listen: { socket: '${path}' }`;
  expect(configurationOf({ platform: 'win32', text: of(pipe(256)) }).listen.socket).toHaveLength(256);
  for (const path of [pipe(257), './latchkey.sock', String.raw`C:\latchkey.sock`]) {
    expect(windowsSocket(of(path))).toEqual([
      expect.stringContaining(
        String.raw`listen.socket: must be a named pipe, such as \\.\pipe\latchkey-shop`,
      ),
    ]);
  }
});

test('on Windows listen.socket has the mode 0600, and other sockets 0600 or 0666 and no group', () => {
  const path = String.raw`'\\.\pipe\shop'`;
  for (const mode of ['0660', '0666']) {
    expect(windowsSocket(`listen: { socket_mode: "${mode}" }`)).toEqual([
      expect.stringMatching(/^listen\.socket_mode: must be "0600" on Windows/),
    ]);
  }
  expect(windowsSocket(`listen: { sockets: [{ path: ${path}, mode: "0640", group: shop }] }`)).toEqual([
    expect.stringMatching(/^listen\.sockets\[0\]\.mode: must be "0600"/),
    expect.stringMatching(/^listen\.sockets\[0\]\.group: cannot be set on Windows: remove it/),
  ]);
  const { sockets } = configurationOf({
    platform: 'win32',
    text: `listen: { sockets: [{ path: ${path}, mode: "0666" }] }`,
  }).listen;
  expect(sockets[0]?.mode).toBe(0o666);
});
