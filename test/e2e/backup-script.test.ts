import { spawnSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { latchkey, ownProgram } from '../support/process/command-line.ts';
import { startDaemonProcess } from '../support/process/daemon-process.ts';
import { readExample } from '../support/reference/guides.ts';
import { temporaryDirectory } from '../support/temporary.ts';

const repository = join(import.meta.dirname, '../..');
const script = join(repository, 'examples/backup/latchkey-backup');
const [, main = ''] = ownProgram;

/** Runs the script with `latchkey` on its PATH; `after` runs on each backup as soon as it exists. */
function backUp(
  directory: string,
  { keep = '14', after = ':' } = {},
): { status: number | null; said: string } {
  const programs = join(directory, 'programs');
  mkdirSync(programs, { recursive: true });
  const program = `#!/bin/sh\n"${process.execPath}" "${main}" "$@" || exit\n[ "$1" != backup ] || { copy=$2; ${after}; }\n`;
  writeFileSync(join(programs, 'latchkey'), program, { mode: 0o755 });
  const { status, stdout, stderr } = spawnSync('sh', [script, join(directory, 'copies'), keep], {
    encoding: 'utf8',
    env: {
      PATH: `${programs}:${process.env['PATH']}`,
      HOME: directory,
      LATCHKEY_CONFIG: join(directory, 'config.yaml'),
    },
  });
  return { status, said: stdout + stderr };
}

const copiesIn = (directory: string): string[] => readdirSync(join(directory, 'copies')).toSorted();

test('the backup script makes a verified backup that only its owner can read, and removes old backups', async () => {
  await using directory = temporaryDirectory();
  mkdirSync(join(directory.path, 'copies'));
  const older = ['latchkey-20200101T000000Z.db', 'latchkey-20200102T000000Z.db'];
  for (const name of [...older, 'something-else']) writeFileSync(join(directory.path, 'copies', name), '');
  await using daemon = await startDaemonProcess(directory.path, { listen: { tcp: '127.0.0.1:0' } });
  const token = readFileSync(join(directory.path, 'state', 'admin.token'), 'utf8').trim();
  await fetch(`${daemon.tcp}/admin/v1/products`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify({ name: 'Editor', product_key: 'EDITOR' }),
  });

  const { status, said } = backUp(directory.path, { keep: '2' });
  expect([status, said]).toEqual([0, expect.stringContaining('can be restored')]);
  // The verification must not start a daemon.
  expect(said).not.toContain('serve');
  const [kept, made = '', other, ...more] = copiesIn(directory.path);
  expect([kept, other, more]).toEqual([older[1], 'something-else', []]);
  expect(made).toMatch(/^latchkey-20\d{6}T\d{6}Z\.db$/);
  const copy = join(directory.path, 'copies', made);
  expect(statSync(copy).mode & 0o777).toBe(0o600);

  // The backup can be restored.
  const restored = join(directory.path, 'restored');
  expect(await latchkey('restore', copy, '--state-dir', restored)).toMatchObject({ code: 0 });
  const { out } = await latchkey('state', 'show', '--state-dir', restored, '--json');
  expect(JSON.parse(out)).toMatchObject({ role: 'authority', products: 1 });
});

test('the backup script fails if a backup cannot be restored, and keeps the older backups', async () => {
  await using directory = temporaryDirectory();
  mkdirSync(join(directory.path, 'copies'));
  writeFileSync(join(directory.path, 'copies', 'latchkey-20200101T000000Z.db'), '');
  await using _ = await startDaemonProcess(directory.path, { listen: { tcp: '127.0.0.1:0' } });
  const { status, said } = backUp(directory.path, { keep: '1', after: 'truncate -s 20000 "$copy"' });
  expect([status, said]).toEqual([1, expect.stringMatching(/damaged|is no/)]);
  expect(copiesIn(directory.path)).toEqual(['latchkey-20200101T000000Z.db']);
});

test('without a daemon the backup script writes nothing and fails', async () => {
  await using directory = temporaryDirectory();
  mkdirSync(join(directory.path, 'copies'));
  writeFileSync(join(directory.path, 'config.yaml'), `state_dir: ${join(directory.path, 'state')}\n`);
  expect(backUp(directory.path).status).toBe(69);
  expect(copiesIn(directory.path)).toEqual([]);
});

const isSystemdInstalled = spawnSync('systemd-analyze', ['--version']).error === undefined;

test.skipIf(!isSystemdInstalled)(
  'systemd accepts the units of the backup (skipped where systemd is not installed)',
  async () => {
    await using directory = temporaryDirectory();
    const unit = readExample('backup/latchkey-backup.service').replace(
      /^ExecStart=\S+/m,
      'ExecStart=/bin/true',
    );
    writeFileSync(join(directory.path, 'latchkey-backup.service'), unit);
    const timer = join(directory.path, 'latchkey-backup.timer');
    writeFileSync(timer, readExample('backup/latchkey-backup.timer'));
    const { status, stderr } = spawnSync('systemd-analyze', ['verify', timer], { encoding: 'utf8' });
    expect([status, stderr]).toEqual([0, '']);
  },
);
