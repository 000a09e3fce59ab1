import { closeSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { openOwnFile, retryWhileBusy } from '../../../src/store/sqlite/files/private-file.ts';
import { temporaryDirectory } from '../../support/temporary.ts';

function failing(code: string, times: number): () => void {
  let calls = 0;
  return () => {
    calls += 1;
    if (calls <= times) throw Object.assign(new Error(code), { code });
  };
}

test.each(['EPERM', 'EACCES', 'EBUSY'])('on Windows, an action that fails with %s is retried', (code) => {
  const pauses: number[] = [];
  const pause = (ms: number): void => void pauses.push(ms);
  retryWhileBusy(failing(code, 3), { platform: 'win32', pause });
  expect(pauses).toHaveLength(3);
});

test('on Windows, an action that always fails is retried for a second', () => {
  let waitedMs = 0;
  const pause = (ms: number): void => void (waitedMs += ms);
  const always = failing('EPERM', Infinity);
  expect(() => retryWhileBusy(always, { platform: 'win32', pause })).toThrow('EPERM');
  expect(waitedMs).toBe(1000);
});

test.each([
  { platform: 'linux', code: 'EPERM' },
  { platform: 'darwin', code: 'EBUSY' },
  { platform: 'win32', code: 'ENOSPC' },
] as const)('on $platform, an action that fails with $code is not retried', ({ platform, code }) => {
  const pause = (): void => expect.unreachable();
  expect(() => retryWhileBusy(failing(code, 1), { platform, pause })).toThrow(code);
});

// Wine cannot open a link.
test.skipIf(process.platform === 'win32').each(['linux', 'win32'] as const)(
  'with the code for %s, a file is opened, a link to it is refused, and a missing file is reported',
  async (platform) => {
    await using directory = temporaryDirectory();
    const path = join(directory.path, 'token');
    writeFileSync(path, 'secret');
    const file = openOwnFile(path, platform);
    expect(readFileSync(file, 'utf8')).toBe('secret');
    closeSync(file);
    const link = join(directory.path, 'link');
    symlinkSync(path, link);
    expect(() => openOwnFile(link, platform)).toThrow(expect.objectContaining({ code: 'ELOOP' }));
    expect(() => openOwnFile(join(directory.path, 'none'), platform)).toThrow(
      expect.objectContaining({ code: 'ENOENT' }),
    );
  },
);
