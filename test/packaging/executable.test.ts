import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { isBuildable } from '../support/process/executable.ts';

const script = join(import.meta.dirname, '../../src/packaging/executable.ts');

test.skipIf(!isBuildable).each([
  ['darwin', 'There is no executable for macOS: codesign must sign it again, and only macOS has codesign.'],
  ['beos', '--platform is linux or win32, not beos'],
  ['win32', 'osslsigncode is missing. It removes the signature of node.exe: apt-get install osslsigncode'],
])('build:executable says in one line why it cannot build for %s', (platform, reason) => {
  // Without a PATH there is no osslsigncode.
  const options = { encoding: 'utf8', env: { PATH: '/nowhere' } } as const;
  const { status, stderr } = spawnSync(process.execPath, [script, '--platform', platform], options);
  expect([status, stderr]).toEqual([1, `${reason}\n`]);
});
