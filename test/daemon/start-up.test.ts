import { spawnSync } from 'node:child_process';
import {
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { expect, test } from 'vitest';
import { explainFailure, isTooManyOpenFiles } from '../../src/daemon/serve.ts';
import { startDaemon } from '../../src/daemon/start.ts';
import { embeddedConfiguration } from '../../src/config/load.ts';
import { machineTime } from '../../src/daemon/system/clock.ts';
import { openStore } from '../../src/store/sqlite/files/open.ts';
import type { Log } from '../../src/service/ports.ts';
import { silent } from '../support/silent-log.ts';
import { temporaryDirectory } from '../support/temporary.ts';

const isWindows = process.platform === 'win32';

async function start(stateDir: string, log: Log = silent): Promise<void> {
  const configuration = embeddedConfiguration({ state_dir: stateDir, listen: { tcp: '127.0.0.1:0' } });
  const daemon = await startDaemon(configuration, { log });
  await daemon.stop();
}

/** Overwrites the first page of a table, or of the schema itself. */
function corrupt(path: string, table: string): void {
  const database = new DatabaseSync(path, { readOnly: true });
  const row = database.prepare('SELECT rootpage FROM sqlite_schema WHERE name = ?').get(table);
  database.close();
  const at = row === undefined ? 100 : (Number(row['rootpage']) - 1) * 4096;
  const file = openSync(path, 'r+');
  writeSync(file, Buffer.alloc(3996, 0xa5), 0, 3996, at);
  closeSync(file);
}

test.for(['setting', 'token', 'account', 'the schema'])(
  'a start on a database whose %s is damaged names the file, and how to restore a backup',
  async (table) => {
    await using directory = temporaryDirectory();
    const state = join(directory.path, 'state');
    openStore({ directory: state })[Symbol.dispose]();
    const path = join(state, 'latchkey.db');
    corrupt(path, table);
    await expect(start(state)).rejects.toMatchObject({
      name: 'DatabaseRefused',
      message: expect.stringMatching(
        new RegExp(
          `^The database ${RegExp.escape(path)} is refused: it is damaged.*: restore a backup: latchkey restore FILE$`,
        ),
      ) as string,
    });
  },
);

// Windows cannot move an open database away.
test.skipIf(isWindows)('A store that cannot be checked for damage is not called damaged.', async () => {
  await using directory = temporaryDirectory();
  const state = join(directory.path, 'state');
  const path = join(state, 'latchkey.db');
  const warned = Promise.withResolvers<readonly unknown[]>();
  // The check starts after this line is logged.
  const info = (_: object, message: string): void => {
    if (message === 'ready') renameSync(path, `${path}.away`);
  };
  const configuration = embeddedConfiguration({ state_dir: state, listen: { tcp: '127.0.0.1:0' } });
  const log: Log = {
    ...silent,
    info,
    warn: (...line) => warned.resolve(line),
    error: (...line) => warned.resolve(line),
  };
  const daemon = await startDaemon(configuration, { log });
  expect(await warned.promise).toEqual([
    { part: 'store', error: 'Error: unable to open database file' },
    'the store could not be checked for damage: the next start checks it again',
  ]);
  expect(await daemon.status()).toMatchObject({ storage: 'ok' });
  await daemon.stop();
});

test('After its state directory was moved away, a daemon refuses changes.', async () => {
  await using directory = temporaryDirectory();
  const state = join(directory.path, 'state');
  const logged = Promise.withResolvers<unknown>();
  // The listeners may miss the directory first.
  const error: Log['error'] = (about) => {
    if (about['part'] === 'store') logged.resolve(about);
  };
  const log: Log = { ...silent, error };
  const configuration = embeddedConfiguration({ state_dir: state, listen: { tcp: '127.0.0.1:0' } });
  const time = { ...machineTime, sleep: () => nextTurn() };
  const daemon = await startDaemon(configuration, { log, time });
  expect(await daemon.status()).toMatchObject({ storage: 'ok' });
  renameSync(state, join(directory.path, 'elsewhere'));
  expect(await logged.promise).toMatchObject({
    part: 'store',
    error: 'its directory was moved or removed',
    hint: expect.stringContaining('restore the directory, or restore a backup') as string,
  });
  expect(await daemon.status()).toMatchObject({ storage: 'damaged' });
  await daemon.stop();
});

test.for(['admin.token', 'api.key'])('A secret in %s that could be guessed is refused.', async (name) => {
  await using directory = temporaryDirectory();
  const state = join(directory.path, 'state');
  mkdirSync(state, { mode: 0o700 });
  writeFileSync(join(state, name), 'fifteen-letters\n', { mode: 0o600 });
  await expect(start(state)).rejects.toMatchObject({
    name: 'StateDirectoryRefused',
    message: `The state directory ${state} is refused: ${name} in it has fewer than 16 characters: write a longer one, or remove it for a new one.`,
  });
  expect(existsSync(join(state, 'listen.json'))).toBe(false);
  writeFileSync(join(state, name), 'sixteen-letters!\n', { mode: 0o600 });
  await start(state);
  expect(readFileSync(join(state, name), 'utf8')).toBe('sixteen-letters!\n');
});

test('A start with an unknown key in api.key warns, with advice for a restore and an upgrade.', async () => {
  await using directory = temporaryDirectory();
  const state = join(directory.path, 'state');
  const warnings: string[] = [];
  const warn = ({ hint }: { hint?: string }, message: string): void => {
    // Under Wine, a start also warns that it cannot check access rights.
    if (hint !== undefined) warnings.push(`${message} (${hint})`);
  };
  await start(state, { ...silent, warn });
  await start(state, { ...silent, warn });
  expect(warnings).toEqual([]);
  writeFileSync(join(state, 'api.key'), 'rotated-after-the-backup\n', { mode: 0o600 });
  await start(state, { ...silent, warn });
  expect(warnings).toEqual([
    'the key in api.key matches no account (if a backup was restored, an older key is valid again: latchkey account rotate default; if an older version rotated the key, it did not update the file: write the current key into api.key)',
  ]);
});

const moreFiles = 'allow more open files: ulimit -n, or LimitNOFILE= in the unit of the service';

test.for([
  "EMFILE: too many open files, open '/program/part.js'",
  'cannot listen on /run/latchkey.sock: listen EMFILE: too many open files /run/latchkey.sock',
  'Worker initialization failure: EMFILE',
  'Cannot read package config /program/package.json: too many open files.',
])('a start that is allowed too few open files says where that is set: %s', (message) => {
  expect(isTooManyOpenFiles(new Error(message))).toBe(true);
  expect(explainFailure(new Error(message))).toBe(`${message.replace(/\.$/, '')}; ${moreFiles}`);
});

// Windows has no limit on open files.
test.skipIf(isWindows)(
  'If the database cannot be opened, a start advises more open files only if no more files can be opened.',
  () => {
    const message = 'The state directory /state cannot be used: unable to open database file';
    expect(explainFailure(new Error(message))).toBe(message);
    const program = `
    import { openSync } from 'node:fs';
    import { explainFailure } from '${pathToFileURL('src/daemon/serve.ts').href}';
    try {
      for (;;) openSync(process.execPath, 'r');
    } catch {
      process.stdout.write(explainFailure(new Error('${message}')));
    }`;
    const limited = [
      '-c',
      'ulimit -n 64 && exec "$0" --input-type=module --eval "$1"',
      process.execPath,
      program,
    ];
    expect(spawnSync('sh', limited, { encoding: 'utf8' }).stdout).toBe(`${message}; ${moreFiles}`);
  },
);

test.for([
  'The state directory /state cannot be used: database or disk is full',
  "The state directory /state cannot be used: ENOSPC: no space left on device, open '/state/admin.token'",
  "The state directory /state cannot be used: EDQUOT: disk quota exceeded, open '/state/admin.token'",
])('a start on a disk whose last reserve is used up says what to do: %s', (message) => {
  expect(explainFailure(new Error(message))).toContain(`${message}; free some space there and start again`);
});
