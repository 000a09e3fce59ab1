import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { checkWindowsFile } from '../../src/config/file/configuration-file.ts';
import { findStrangers, parseSddl, type Strangers } from '../../src/config/file/sddl.ts';
import {
  adviceToRestrict,
  checkRights,
  parseSaved,
  parseSid,
  restrictToOwner,
  type Rights,
  type WindowsTools,
} from '../../src/config/file/windows-rights.ts';

const ada = 'S-1-5-21-3623811015-3361044348-30300820-1013';
const eve = 'S-1-5-21-3623811015-3361044348-30300820-1014';

function strangersOf(sddl: string, isOwnerKnown = true): Strangers {
  return findStrangers(parseSddl(sddl) ?? [], { user: ada, isOwnerKnown });
}

const nobody: Strangers = { readers: [], writers: [] };

test('a folder in the profile of a user is for that user, SYSTEM and administrators', () => {
  expect(strangersOf(`D:(A;OICIID;FA;;;SY)(A;OICIID;FA;;;BA)(A;OICIID;FA;;;${ada})`)).toEqual(nobody);
});

test('every user can add files to a folder in ProgramData', () => {
  const inherited =
    'D:AI(A;OICIID;FA;;;SY)(A;OICIID;FA;;;BA)(A;OICIIOID;GA;;;CO)(A;OICIID;0x1200a9;;;BU)(A;CIID;DCLCRPCR;;;BU)';
  expect(strangersOf(inherited)).toEqual({ readers: ['S-1-5-32-545'], writers: ['S-1-5-32-545'] });
});

test('every user who has logged on can change files in a new folder of a drive', () => {
  expect(strangersOf('D:AI(A;OICIIOID;SDGXGWGR;;;AU)(A;ID;0x1301bf;;;AU)(A;OICIID;FA;;;BA)')).toEqual({
    readers: ['S-1-5-11'],
    writers: ['S-1-5-11'],
  });
});

test.each([
  ['FR', [eve], []],
  ['0x120089', [eve], []],
  ['FX', [], []],
  ['FA', [eve], [eve]],
  ['GA', [eve], [eve]],
  ['GRGX', [eve], []],
  ['SD', [], [eve]],
  ['WD', [], [eve]],
  ['WO', [], [eve]],
  ['RC', [], []],
  ['CC', [eve], []],
  ['LC', [], [eve]],
  ['CR', [], [eve]],
  ['RP', [], [eve]],
  ['0x80000000', [eve], []],
  ['2147483648', [eve], []],
  ['??', [eve], [eve]],
  ['FRX', [eve], [eve]],
])('the rights %s of another user let it read: %o, and write: %o', (rights, readers, writers) => {
  expect(strangersOf(`D:P(A;;FA;;;${ada})(A;;${rights};;;${eve})`)).toEqual({ readers, writers });
});

test('an entry that denies opens nothing, and an unknown kind of entry opens what it says', () => {
  expect(strangersOf(`D:(D;;FA;;;WD)(XD;;FA;;;WD;(@User.a == (1)))`)).toEqual(nobody);
  expect(strangersOf(`D:(XA;;FR;;;WD;(@User.a == (1)))(ZZ;;FW;;;AN)`)).toEqual({
    readers: ['S-1-1-0'],
    writers: ['AN'],
  });
});

test.each([')', '(', '))((', ';', ''])(
  'no entry can be hidden behind a condition with the text "%s"',
  (text) => {
    const hiding = `(XA;;RC;;;SY;(@User.a == "${text}"))`;
    expect(strangersOf(`D:P${hiding}(A;OICI;FA;;;${eve})(A;;RC;;;OW)`)).toEqual({
      readers: ['S-1-1-0'],
      writers: ['S-1-1-0'],
    });
  },
);

test.each(['D:(A;;FA;;;SY', 'D:(A;;FA;;;SY))', 'D:(A;;FA;;;SY)x', 'D:x(A;;FA;;;SY)'])(
  '%s is not understood',
  (sddl) => {
    expect(strangersOf(sddl).writers).toEqual(['S-1-1-0']);
  },
);

test('a file without a list of rights is open to all, and a text without a list says nothing', () => {
  const all = { readers: ['S-1-1-0'], writers: ['S-1-1-0'] };
  expect(strangersOf('D:NO_ACCESS_CONTROL')).toEqual(all);
  expect(strangersOf('D:PNO_ACCESS_CONTROL')).toEqual(all);
  expect(strangersOf('D:PARAINO_ACCESS_CONTROL')).toEqual(all);
  expect(strangersOf('D:P')).toEqual(nobody);
  expect(parseSddl('')).toBeNull();
  expect(parseSddl('O:BAG:SYS:(ML;;NW;;;LW)')).toBeNull();
});

test('only the list of rights counts, between owner, group and labels', () => {
  expect(strangersOf(`O:BAG:BAD:PAI(A;;FA;;;SY)S:AI(ML;;NW;;;LW)(RA;;;;;WD;("D:",TI,0,1))`)).toEqual(nobody);
});

test('the built-in administrator and single services are no strangers, all services are', () => {
  const service = 'S-1-5-80-956008885-3418522649-1831038044-1853292631-2271478464';
  expect(strangersOf(`D:(A;;FA;;;LA)(A;;FA;;;${service})`)).toEqual(nobody);
  expect(strangersOf('D:(A;;FA;;;S-1-5-80-0)').writers).toEqual(['S-1-5-80-0']);
});

test('outside of the profile the owner may be another user, unless an entry limits the rights of owners', () => {
  const own = `(A;;FA;;;SY)(A;;FA;;;${ada})`;
  expect(strangersOf(`D:P${own}`, false)).toEqual({ readers: [], writers: ['S-1-3-4'] });
  expect(strangersOf(`D:P${own}(A;;RC;;;OW)`, false)).toEqual(nobody);
  expect(strangersOf(`D:P${own}(A;OIIO;RC;;;OW)`, false).writers).toEqual(['S-1-3-4']);
  expect(strangersOf(`D:P${own}(A;;FA;;;OW)`, false).writers).toEqual(['S-1-3-4']);
});

const whoamiOutput = `\r
USER INFORMATION\r
----------------\r
\r
User Name  SID                                           \r
========== ==============================================\r
pc\\S-1-5-18 ${ada}\r
`;

test('the SID of the user is the last one in the output of whoami', () => {
  expect(parseSid(whoamiOutput)).toBe(ada);
  expect(parseSid('')).toBeNull();
});

const saved = (sddl: string): string => `Latchkey\r\n${sddl}\r\n`;

test('a saved file names each file before its rights', () => {
  const text = `\uFEFFadmin.token\r\nD:(A;ID;FA;;;SY)\r\nconfig.yaml\r\nD:(A;ID;FA;;;BA)\r\n\r\n`;
  expect(parseSaved(text)).toEqual([
    { name: 'admin.token', sddl: 'D:(A;ID;FA;;;SY)' },
    { name: 'config.yaml', sddl: 'D:(A;ID;FA;;;BA)' },
  ]);
  expect(parseSaved('')).toEqual([]);
});

function machine(more: Partial<WindowsTools> = {}): WindowsTools {
  return {
    home: String.raw`C:\Users\Ada`,
    whoami: () => whoamiOutput,
    save: () => saved(`D:PAI(A;OICI;FA;;;SY)(A;OICI;FA;;;BA)(A;OICI;FA;;;${ada})`),
    icacls: () => undefined,
    ...more,
  };
}

const inProfile = String.raw`c:\users\ada\AppData\Local\Latchkey`;
const outside = String.raw`C:\ProgramData\Latchkey`;

test('the owner of a path is known only inside of the home directory, which Windows compares without case', () => {
  expect(checkRights(inProfile, machine())).toEqual({
    kind: 'checked',
    files: [{ name: 'Latchkey', readers: [], writers: [] }],
  });
  expect(checkRights(outside, machine())).toMatchObject({ files: [{ writers: ['S-1-3-4'] }] });
});

/** The error of `execFileSync`. */
const failed = (more: object): never => {
  throw Object.assign(new Error('failed'), more);
};

test.each([
  ['icacls writes nothing', { save: () => '' }, 'unchecked', 'icacls gave no answer'],
  ['whoami fails', { whoami: () => failed({ status: 1 }) }, 'unchecked', 'whoami did not name this user'],
  ['whoami prints nothing', { whoami: () => '' }, 'unchecked', 'whoami did not name this user'],
  [
    'icacls is missing',
    { save: () => failed({ code: 'ENOENT', status: null }) },
    'unchecked',
    'icacls cannot be run (ENOENT)',
  ],
  ['icacls refuses', { save: () => failed({ status: 5 }) }, 'denied', 'icacls cannot read its access rights'],
])('if %s, nothing is said about the rights', (_, more, kind, reason) => {
  expect(checkRights(inProfile, machine(more))).toEqual({ kind, reason });
});

test('a new directory is given to SYSTEM, administrators and this user, and its owner cannot change that', () => {
  const calls: (readonly string[])[] = [];
  restrictToOwner(inProfile, 'directory', machine({ icacls: (args) => calls.push(args) }));
  expect(calls).toEqual([
    [
      inProfile,
      '/inheritance:r',
      '/grant:r',
      '*S-1-5-18:(OI)(CI)F',
      '*S-1-5-32-544:(OI)(CI)F',
      `*${ada}:(OI)(CI)F`,
      '*S-1-3-4:(OI)(CI)(RC)',
    ],
  ]);
});

test('the advice is one command line for both shells of Windows, and removes the strangers', () => {
  const path = String.raw`C:\My Shop\secret`;
  expect(adviceToRestrict(path, 'file', ['S-1-1-0', 'S-1-3-4'], machine())).toBe(
    `icacls "${path}" /inheritance:r /grant:r "*S-1-5-18:F" "*S-1-5-32-544:F" "*${ada}:F" "*S-1-3-4:(RC)" /remove:g "*S-1-1-0"`,
  );
});

let directory = '';
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'latchkey-rights-'));
});
afterEach(() => {
  rmSync(directory, { recursive: true, force: true });
});

const closed: Rights = { kind: 'checked', files: [{ name: '', readers: [], writers: [] }] };
const open: Rights = { kind: 'checked', files: [{ name: '', readers: [], writers: ['S-1-5-11'] }] };

test.each([
  { name: 'both belong to this user', folder: closed, file: closed, judged: 'safe' },
  {
    name: 'others can write to the folder',
    folder: open,
    file: closed,
    judged: { unsafe: 'other users can write to its directory: Authenticated Users' },
  },
  {
    name: 'others can write to the file',
    folder: closed,
    file: open,
    judged: { unsafe: 'other users can write to it: Authenticated Users' },
  },
  {
    name: 'Windows hides the rights',
    folder: closed,
    file: { kind: 'denied', reason: 'hidden' } as const,
    judged: { unsafe: 'hidden (it)' },
  },
  {
    name: 'there is no answer',
    folder: { kind: 'unchecked', reason: 'no answer' } as const,
    file: closed,
    judged: 'safe',
    reasons: ['no answer'],
  },
])('if $name, a configuration of Windows is judged so', ({ folder, file, judged, reasons = [] }) => {
  const path = join(directory, 'config.yaml');
  writeFileSync(path, '');
  const unchecked: string[] = [];
  const check = (each: string): Rights => (each === path ? file : folder);
  expect(checkWindowsFile(path, (reason) => unchecked.push(reason), check)).toEqual(judged);
  expect(unchecked).toEqual(reasons);
});

test('a missing configuration of Windows is absent, and a folder in its place is not used', () => {
  const check = (): Rights => closed;
  expect(checkWindowsFile(join(directory, 'no.yaml'), () => undefined, check)).toBe('absent');
  expect(checkWindowsFile(directory, () => undefined, check)).toEqual({ unsafe: 'it is not a regular file' });
});
