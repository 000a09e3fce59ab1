import { copyFileSync, existsSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { openWriting } from '../../src/store/sqlite/connection.ts';
import { openStore } from '../../src/store/sqlite/files/open.ts';
import { databaseIn } from '../../src/store/sqlite/files/state-directory.ts';
import { buildOperation } from '../support/builders/operation-builders.ts';
import { ownProgram, latchkey } from '../support/process/command-line.ts';
import { openPseudoTerminal } from '../support/process/pseudo-terminal.ts';
import { patienceMs } from '../support/patience.ts';
import { isWindows } from '../support/platform.ts';
import { temporaryDirectory } from '../support/temporary.ts';

/** A state directory of a daemon that was stopped; its database is a backup as well. */
function leave(directory: string, role: 'agent' | 'authority', unfinished = 0): string {
  using store = openStore({ directory });
  using connection = openWriting(store.databasePath);
  connection.transaction.settings.set('role', role);
  for (let count = 0; count < unfinished; count += 1) connection.transaction.operations.add(buildOperation());
  return databaseIn(directory);
}

// Its paths are those of POSIX.
test.skipIf(isWindows)(
  'after the restore of an agent without a configuration, restore says that the agent needs one',
  async () => {
    await using directory = temporaryDirectory();
    const backups = {
      agent: leave(join(directory.path, 'a'), 'agent'),
      authority: leave(join(directory.path, 'b'), 'authority'),
    };
    const advised = async (backup: string, state: string): Promise<string | undefined> => {
      const { out } = await latchkey('restore', backup, '--state-dir', join(directory.path, state));
      return out.trimEnd().split('\n').at(-1);
    };
    const at = `--state-dir ${directory.path}`;
    expect(await advised(backups.agent, 'c')).toBe(
      `Start it with its upstream and products in the configuration: latchkey --config FILE ${at}/c serve`,
    );
    expect(await advised(backups.authority, 'd')).toBe(`Start it: latchkey ${at}/d serve`);
  },
);

/** Restores a backup into a state directory. Returns the lines between the first and the last. */
async function restore(backup: string, state: string, ...options: string[]): Promise<string[]> {
  const { code, out, err } = await latchkey('restore', backup, '--state-dir', state, ...options);
  expect([code, err]).toEqual([0, '']);
  const [first, ...others] = out.trimEnd().split('\n').slice(0, -1);
  expect(first).toMatch(
    new RegExp(`^${backup} is restored into ${state}, as a new instance: [0-9a-f-]{36}$`),
  );
  return others;
}

// Its paths are those of POSIX.
test.skipIf(isWindows)('restore prints the unfinished changes of the backup', async () => {
  await using directory = temporaryDirectory();
  const restored = async (name: string, unfinished: number): Promise<string[]> =>
    await restore(leave(join(directory.path, name), 'agent', unfinished), join(directory.path, `to-${name}`));
  expect(await restored('a', 0)).toEqual(['The backup has no unfinished changes.']);
  expect(await restored('b', 1)).toEqual([
    'The backup has 1 unfinished change: each is read back from the upstream before any is sent.',
  ]);
  expect(await restored('c', 2)).toEqual([
    'The backup has 2 unfinished changes: each is read back from the upstream before any is sent.',
  ]);
});

// Its paths are those of POSIX.
test.skipIf(isWindows)('restore refuses to give up unsent changes unless it is told to', async () => {
  await using directory = temporaryDirectory();
  const [backup, state] = [join(directory.path, 'backup.db'), join(directory.path, 'state')];
  leave(state, 'agent', 2);
  copyFileSync(databaseIn(state), backup);
  // The backup has these two, and not the three that follow.
  leave(state, 'agent', 3);
  const before = readFileSync(databaseIn(state));
  const flags = `--state-dir ${state}`;
  expect(await latchkey('restore', backup, '--state-dir', state)).toEqual({
    code: 1,
    out: '',
    err:
      `latchkey: the database in ${state} has 3 changes (3 pending) that the backup does not have and the upstream has not accepted: after a restore they would never be sent\n` +
      `To send them first: latchkey ${flags} serve\n` +
      `To give them up: latchkey ${flags} restore ${backup} --drop-unsent\n` +
      'Nothing was changed.\n',
  });
  expect(readFileSync(databaseIn(state)).equals(before)).toBe(true);
  expect(readdirSync(state).filter((name) => name.includes('.new') || name.includes('.replaced'))).toEqual(
    [],
  );
  const kept = `${databaseIn(state)}.replaced`;
  expect(await restore(backup, state, '--drop-unsent')).toEqual([
    `The previous database is kept as ${kept}`,
    '3 changes (3 pending) in it were not sent, and will not be.',
    'The backup has 2 unfinished changes: each is read back from the upstream before any is sent.',
  ]);
  // Nothing is lost if the backup has every change.
  expect(await restore(backup, state)).toEqual([
    `The previous database is kept as ${kept}-2`,
    'The backup has 2 unfinished changes: each is read back from the upstream before any is sent.',
  ]);
});

test.skipIf(isWindows)('on a terminal, restore asks whether to give up unsent changes', async () => {
  await using directory = temporaryDirectory();
  const [backup, state] = [leave(join(directory.path, 'backup'), 'agent'), join(directory.path, 'state')];
  leave(state, 'agent', 3);
  const argv = [...ownProgram, 'restore', backup, '--state-dir', state];
  const answer = async (keys: string): Promise<number> => {
    await using terminal = openPseudoTerminal(argv, { columns: 300 });
    await vi.waitFor(() => expect(terminal.written()).toContain('3 changes (3 pending)'), patienceMs);
    terminal.type(keys);
    return await terminal.ended;
  };
  expect(await answer('\r')).toBe(1);
  expect(existsSync(`${databaseIn(state)}.replaced`)).toBe(false);
  expect(await answer('y')).toBe(0);
  expect(existsSync(`${databaseIn(state)}.replaced`)).toBe(true);
});

/** How a damaged disk leaves a database. */
const damages: readonly (readonly [what: string, damage: (database: Buffer) => Buffer])[] = [
  ['its schema is overwritten', (database) => database.fill(0xa5, 100, 4096)],
  ['its first page is zeros', (database) => database.fill(0, 0, 4096)],
  ['it is cut off', (database) => database.subarray(0, 6000)],
  ['it is empty', () => Buffer.alloc(0)],
];

// Its paths are those of POSIX.
test.skipIf(isWindows).for(damages)(
  'restore replaces a damaged database and keeps its bytes: %s',
  async ([, damage]) => {
    await using directory = temporaryDirectory();
    const [backup, state] = [leave(join(directory.path, 'backup'), 'agent'), join(directory.path, 'state')];
    const path = leave(state, 'agent', 3);
    writeFileSync(path, damage(readFileSync(path)));
    writeFileSync(`${path}-wal`, 'a log that nobody can read');
    const damaged = readFileSync(path);
    expect(await restore(backup, state)).toEqual([
      `The previous database is kept as ${path}.replaced and ${path}.replaced-wal`,
      'It could not be read: changes in it that were not sent yet are never sent.',
      'The backup has no unfinished changes.',
    ]);
    expect(readFileSync(`${path}.replaced`).equals(damaged)).toBe(true);
    expect(readFileSync(`${path}.replaced-wal`, 'utf8')).toBe('a log that nobody can read');
    expect(await latchkey('state', 'show', '--state-dir', state)).toMatchObject({ code: 0, err: '' });
  },
);

// Its paths are those of POSIX.
test.skipIf(isWindows)('restore keeps a write-ahead log whose database is missing', async () => {
  await using directory = temporaryDirectory();
  const [backup, state] = [leave(join(directory.path, 'backup'), 'agent'), join(directory.path, 'state')];
  const path = leave(state, 'agent', 3);
  renameSync(path, `${path}-wal`);
  expect(await restore(backup, state)).toContain(`The previous database is kept as ${path}.replaced-wal`);
});

test.for<readonly [content: string | null, reason: string]>([
  [null, 'there is no such file.'],
  ['', 'it is empty.'],
  ['text', 'it is not an SQLite database.'],
])(
  'restore rejects a file that is no backup (%j) before it creates a state directory',
  async ([content, reason]) => {
    await using directory = temporaryDirectory();
    const [file, state] = [join(directory.path, 'file'), join(directory.path, 'state')];
    if (content !== null) writeFileSync(file, content);
    expect(await latchkey('restore', file, '--state-dir', state)).toEqual({
      code: 1,
      out: '',
      err: `latchkey: The database ${file} is refused: ${reason}\nNothing was changed.\n`,
    });
    expect(existsSync(state)).toBe(false);
  },
);
