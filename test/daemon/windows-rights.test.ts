import { existsSync, mkdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { WindowsTools } from '../../src/config/file/windows-rights.ts';
import { examineWindowsDirectory, examineWindowsSecret } from '../../src/daemon/doctor/files.ts';
import { secureStateDirectory } from '../../src/daemon/store/windows-directory.ts';
import { temporaryDirectory } from '../support/temporary.ts';

const ada = 'S-1-5-21-3623811015-3361044348-30300820-1013';
const own = `D:PAI(A;OICI;FA;;;SY)(A;OICI;FA;;;BA)(A;OICI;FA;;;${ada})(A;OICI;RC;;;OW)`;
const everyoneReads = `${own}(A;OICI;FR;;;WD)`;
const usersWrite = `${own}(A;OICI;FA;;;BU)`;

function recorded(saved: string, calls: (readonly string[])[] = []): WindowsTools {
  return {
    home: String.raw`C:\Users\Ada`,
    whoami: () => `pc\\ada ${ada}`,
    save: () => saved,
    icacls: (args) => calls.push(args),
  };
}

const saved = (sddl: string): string => `state\r\n${sddl}\r\n`;

function secure(directory: string, text: string, calls: (readonly string[])[] = []): string[] {
  const reasons: string[] = [];
  secureStateDirectory(directory, (reason) => reasons.push(reason), 'win32', recorded(text, calls));
  return reasons;
}

test('a missing state directory is created on Windows, and given to its user', async () => {
  await using directory = temporaryDirectory();
  const state = join(directory.path, 'a', 'state');
  const calls: (readonly string[])[] = [];
  expect(secure(state, saved(own), calls)).toEqual([]);
  expect(statSync(state).isDirectory()).toBe(true);
  expect(calls.map(([path, ...args]) => [path, args[0]])).toEqual([[state, '/inheritance:r']]);
});

test('the rights of an existing state directory are not changed', async () => {
  await using directory = temporaryDirectory();
  const calls: (readonly string[])[] = [];
  expect(secure(directory.path, saved(everyoneReads), calls)).toEqual([]);
  expect(calls).toEqual([]);
});

test('a state directory that other users of Windows can write is refused with the command that corrects it', async () => {
  await using directory = temporaryDirectory();
  expect(() => secure(directory.path, saved(usersWrite))).toThrow(
    /^The state directory .* is refused: other users can write to it \(Users\): .*icacls .* \/remove:g "\*S-1-5-32-545"$/,
  );
});

test('without an answer of icacls a state directory is used, and the reason is given', async () => {
  await using directory = temporaryDirectory();
  expect(secure(directory.path, '')).toEqual(['icacls gave no answer']);
});

test('on other systems nothing is created and no program runs', async () => {
  await using directory = temporaryDirectory();
  const state = join(directory.path, 'state');
  for (const platform of ['linux', 'darwin'] as const) {
    secureStateDirectory(state, () => undefined, platform, recorded(saved(usersWrite)));
  }
  expect(existsSync(state)).toBe(false);
});

const levels = (found: readonly { readonly level: string }[]): string[] => found.map(({ level }) => level);

test('doctor on Windows says who can access the state directory', async () => {
  await using directory = temporaryDirectory();
  const name = `state directory ${directory.path}`;
  expect(examineWindowsDirectory(directory.path, recorded(saved(own)))).toEqual([
    {
      level: 'ok',
      what: `${name} is accessible only to this user, SYSTEM and administrators`,
      advice: null,
    },
  ]);
  const [found] = examineWindowsDirectory(directory.path, recorded(saved(everyoneReads)));
  expect(found).toMatchObject({ level: 'fail', what: `${name} is accessible to other users: Everyone` });
});

test('doctor on Windows names each file of the state directory that other users can access', async () => {
  await using directory = temporaryDirectory();
  mkdirSync(join(directory.path, 'sub'));
  const inside = `admin.token\r\n${own}\r\nlatchkey.db\r\n${everyoneReads}\r\n`;
  const tools = recorded('');
  const save = (path: string): string => (path.endsWith('*') ? inside : saved(own));
  const found = examineWindowsDirectory(directory.path, { ...tools, save });
  expect(levels(found)).toEqual(['ok', 'fail']);
  expect(found[1]).toMatchObject({
    what: expect.stringMatching(/latchkey\.db is accessible to other users: Everyone$/) as string,
  });
});

test('doctor never calls a directory or a secret private if icacls gave no answer', async () => {
  await using directory = temporaryDirectory();
  const secret = join(directory.path, 'secret');
  writeFileSync(secret, 'hush');
  const found = [
    ...examineWindowsDirectory(directory.path, recorded('')),
    examineWindowsSecret(secret, recorded('')),
  ];
  expect(found).toEqual([
    expect.objectContaining({
      level: 'warn',
      what: `who can access state directory ${directory.path} was not checked: icacls gave no answer`,
    }),
    expect.objectContaining({
      level: 'warn',
      what: `who can access ${secret} was not checked: icacls gave no answer`,
    }),
  ]);
});
