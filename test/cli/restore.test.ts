import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { openWriting } from '../../src/store/sqlite/connection.ts';
import { openStore } from '../../src/store/sqlite/files/open.ts';
import { databaseIn } from '../../src/store/sqlite/files/state-directory.ts';
import { buildOperation } from '../support/builders/operation-builders.ts';
import { latchkey } from '../support/process/command-line.ts';
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

// Its paths are those of POSIX.
test.skipIf(isWindows)(
  'restore prints the waiting changes, and where the previous database is kept',
  async () => {
    await using directory = temporaryDirectory();
    const state = join(directory.path, 'state');
    const lines: string[] = [];
    for (const [name, unfinished] of [
      ['a', 0],
      ['b', 1],
      ['c', 2],
    ] as const) {
      const backup = leave(join(directory.path, name), 'agent', unfinished);
      const { code, out } = await latchkey('restore', backup, '--state-dir', state);
      expect(code).toBe(0);
      const [first, ...others] = out.trimEnd().split('\n').slice(0, -1);
      expect(first).toMatch(
        new RegExp(`^${backup} is restored into ${state}, as a new instance: [0-9a-f-]{36}$`),
      );
      lines.push(...others);
    }
    const [kept, again] = [lines[1], lines[3]].map((line) => line?.replace(/.* is kept as /, '') ?? '');
    expect(lines).toEqual([
      'No change in it waits for the upstream.',
      `The previous database is kept as ${kept}`,
      '1 change in it is not finished: each is read back from the upstream before any is sent.',
      `The previous database is kept as ${again}`,
      '2 changes in it are not finished: each is read back from the upstream before any is sent.',
    ]);
    expect([kept, again].map((path) => existsSync(path ?? ''))).toEqual([true, true]);
  },
);

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
