import { readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { latchkey } from '../../../support/process/command-line.ts';
import { startDaemonProcess } from '../../../support/process/daemon-process.ts';
import { hasPostgres, startPostgres } from '../support/postgres.ts';
import { urlOf } from '../support/postgres-url.ts';
import { temporaryDirectory } from '../../../support/temporary.ts';

test.skipIf(!hasPostgres)(
  'on PostgreSQL backup and restore name the alternative, and status reports the database',
  async () => {
    await using server = await startPostgres();
    await using directory = temporaryDirectory();
    const stateDir = join(directory.path, 'state');
    await using daemon = await startDaemonProcess(directory.path, {
      listen: { tcp: '127.0.0.1:0' },
      store: { postgres: { url: urlOf(server.address), pool: 4 } },
    });
    const config = join(directory.path, 'config.yaml');
    const run = (...words: string[]) => latchkey('--config', config, ...words);
    const backup = join(directory.path, 'backup.db');
    expect(await run('backup', backup)).toEqual({
      code: 1,
      out: '',
      err: 'latchkey: PostgreSQL has its own backup tools (backed_up_by_the_database)\nThe records are in PostgreSQL: use pg_dump.\n',
    });
    expect(readdirSync(directory.path)).not.toContain('backup.db');
    expect((await run('doctor')).code).toBe(0);

    await server.stop('immediate');
    const status = async (): Promise<string> => (await run('status')).out;
    await expect
      .poll(status)
      .toMatch(
        /^fail +the database cannot be reached +→ +the doctor says what is wrong: latchkey .+ doctor$/m,
      );
    expect(await run('status', '--check')).toMatchObject({
      code: 1,
      out: 'unavailable\nstorage_unavailable\n',
    });
    expect(await run('product', 'list')).toMatchObject({
      code: 1,
      err: 'latchkey: The database is unavailable (storage_unavailable)\nThe storage cannot be read now.\n',
    });
    const examined = await run('doctor');
    expect(examined.code).toBe(1);
    expect(examined.out).toMatch(
      /^fail +the daemon is not ready: storage_unavailable +→ +see the findings on the database below, and the log of the daemon$/m,
    );
    expect(examined.out).toMatch(/^fail +the database at .* cannot be reached: /m);

    daemon.signal('SIGTERM');
    await daemon.ended;
    writeFileSync(backup, '');
    expect(await run('restore', backup)).toEqual({
      code: 1,
      out: '',
      err: `latchkey: the records are in PostgreSQL (store.postgres), not in ${stateDir}: restore a dump of the database with pg_restore, or move this backup into an empty schema: latchkey --config ${config} store move --from ${backup}\nNothing was changed.\n`,
    });
    expect(await run('state', 'show', '--check')).toMatchObject({
      code: 0,
      out: `Nothing would be lost with ${stateDir}: the records are in PostgreSQL (store.postgres).\n`,
    });
  },
);
