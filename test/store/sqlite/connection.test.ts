import { join } from 'node:path';
import { expect, test } from 'vitest';
import { openWriting } from '../../../src/store/sqlite/connection.ts';
import { createDatabase } from '../../../src/store/sqlite/files/database-file.ts';
import { temporaryDirectory } from '../../support/temporary.ts';

test.each([
  { platform: 'darwin', isOn: 1 },
  { platform: 'linux', isOn: 0 },
] as const)('on $platform, fullfsync of the writing connection is $isOn', async ({ platform, isOn }) => {
  await using directory = temporaryDirectory();
  const path = join(directory.path, 'latchkey.db');
  createDatabase(path);
  using connection = openWriting(path, 'authority', platform);
  const pragma = (name: string): unknown => connection.database.prepare(`PRAGMA ${name}`).get()?.[name];
  expect([pragma('fullfsync'), pragma('checkpoint_fullfsync')]).toEqual([isOn, isOn]);
  expect(pragma('synchronous')).toBe(2);
});
