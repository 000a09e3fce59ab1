import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { embeddedConfiguration } from '../src/config/load.ts';
import * as latchkey from '../src/index.ts';
import { openStore } from '../src/store/sqlite/files/open.ts';
import { silent } from './support/silent-log.ts';
import { temporaryDirectory } from './support/temporary.ts';

test('Every error that startDaemon documents is exported as a class.', async () => {
  // The errors in the docstring of startDaemon.
  const text = readFileSync(join(import.meta.dirname, '../src/daemon/embedding.ts'), 'utf8');
  const [, documented = ''] = /rejects with ([^.]+), and leaves nothing/.exec(text) ?? [];
  const names = [...documented.matchAll(/`(\w+)`/g)].map(([, name]) => name);
  expect(names).toHaveLength(5);
  expect(Object.keys(latchkey)).toEqual(
    expect.arrayContaining([...names, 'PostgresAway', 'PostgresRefused']),
  );
  await using directory = temporaryDirectory();
  using _ = openStore({ directory: directory.path });
  const configuration = embeddedConfiguration({
    state_dir: directory.path,
    listen: { tcp: '127.0.0.1:0' },
  });
  await expect(latchkey.startDaemon(configuration, { log: silent })).rejects.toBeInstanceOf(
    latchkey.StateDirectoryHeld,
  );
});
