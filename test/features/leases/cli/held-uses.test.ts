import { copyFileSync, existsSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { openWriting } from '../../../../src/store/sqlite/connection.ts';
import { openStore } from '../../../../src/store/sqlite/files/open.ts';
import { databaseIn } from '../../../../src/store/sqlite/files/state-directory.ts';
import { latchkey } from '../../../support/process/command-line.ts';
import { isWindows } from '../../../support/platform.ts';
import { temporaryDirectory } from '../../../support/temporary.ts';
import { buildHeldLease } from '../support/records.ts';

test('state show names the uses of a holder that the issuer has not confirmed', async () => {
  await using directory = temporaryDirectory();
  const totals = { uses: { recorded: 5, returned: 1 }, confirmedUses: { recorded: 3, returned: 0 } };
  {
    using connection = openWriting(leaveHolder(directory.path, {}));
    connection.transaction.heldLeases.put(buildHeldLease(totals));
  }
  const { out } = await latchkey('state', 'show', '--state-dir', directory.path);
  expect(out).toContain('\n  uses that the issuer of leases has not confirmed: 3\n');
});

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

/** The store of a holder that was stopped. The issuer has confirmed one use of each license key. */
function leaveHolder(directory: string, uses: Readonly<Record<string, number>>): string {
  using store = openStore({ directory });
  using connection = openWriting(store.databasePath);
  const { settings, heldLeases } = connection.transaction;
  settings.set('role', 'holder');
  for (const [licenseKey, recorded] of Object.entries(uses)) {
    const totals = { uses: { recorded, returned: 0 }, confirmedUses: { recorded: 1, returned: 0 } };
    heldLeases.put(buildHeldLease({ licenseKey, activationId: `activation-${licenseKey}`, ...totals }));
  }
  return databaseIn(directory);
}

// Its paths are those of POSIX.
test.skipIf(isWindows)(
  'restore at a holder refuses to give up uses that the issuer has not confirmed',
  async () => {
    await using directory = temporaryDirectory();
    const [backup, state] = [join(directory.path, 'backup.db'), join(directory.path, 'state')];
    leaveHolder(state, { A: 3, B: 1 });
    copyFileSync(databaseIn(state), backup);
    // The backup has two of these uses: it can report them.
    leaveHolder(state, { A: 5, C: 2 });
    const flags = `--state-dir ${state}`;
    expect(await latchkey('restore', backup, '--state-dir', state)).toEqual({
      code: 1,
      out: '',
      err:
        `latchkey: the database in ${state} has 3 uses that the backup does not have and the issuer of leases has not confirmed: after a restore they would never be sent\n` +
        `To send them first: latchkey ${flags} serve\n` +
        `To give them up: latchkey ${flags} restore ${backup} --drop-unsent\n` +
        'Nothing was changed.\n',
    });
    const kept = `${databaseIn(state)}.replaced`;
    expect(existsSync(kept)).toBe(false);
    expect(await restore(backup, state, '--drop-unsent')).toEqual([
      `The previous database is kept as ${kept}`,
      '3 uses in it were not confirmed by the issuer of leases, and will not be sent.',
      'The backup has no unfinished changes.',
    ]);
    // The backup has every use now.
    expect(await restore(backup, state)).toContain(`The previous database is kept as ${kept}-2`);
  },
);

// Its paths are those of POSIX.
test.skipIf(isWindows)(
  'uses of another activation in the backup are no reason to give up those of this one',
  async () => {
    await using directory = temporaryDirectory();
    const [backup, state] = [
      leaveHolder(join(directory.path, 'backup'), { A: 9 }),
      join(directory.path, 'state'),
    ];
    leaveHolder(state, { A: 3 });
    {
      using connection = openWriting(databaseIn(state));
      const { heldLeases } = connection.transaction;
      for (const held of heldLeases.all()) heldLeases.put({ ...held, activationId: 'another' });
    }
    expect(await latchkey('restore', backup, '--state-dir', state)).toMatchObject({
      code: 1,
      err: expect.stringContaining('has 2 uses that the backup does not have') as string,
    });
  },
);
