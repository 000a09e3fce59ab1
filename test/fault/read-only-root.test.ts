import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { expect, test } from 'vitest';
import { createTables } from '../../src/store/sqlite/files/migrations.ts';
import { secret } from '../support/harness/agent-harness.ts';
import { ownProgram, runProcess, type Program } from '../support/process/command-line.ts';
import { serveBy } from '../support/process/daemon-process.ts';
import { canMount } from '../support/process/small-disk.ts';
import { temporaryDirectory } from '../support/temporary.ts';

/** The program on a machine where it can write only to this directory, as in a container. */
function writingOnlyTo(directory: string): Program {
  const mounts = 'mount --bind "$0" "$0" && mount -o remount,bind,ro / && cd / && exec "$@"';
  return ['unshare', '--mount', 'sh', '-c', mounts, directory, ...ownProgram];
}

/** A backup of an agent with so many changes that SQLite cannot restore it in memory alone. */
function writeLargeBackup(path: string): void {
  using database = new DatabaseSync(path);
  database.exec('PRAGMA application_id = 0x4c544348');
  createTables(database);
  database.exec(`
    WITH RECURSIVE numbers (number) AS (SELECT 1 UNION ALL SELECT number + 1 FROM numbers LIMIT 20000)
    INSERT INTO outbox (id, kind, subject, queue, product_key, state, maybe_applied, held, attempts, failures, next_at,
        outage, created_at)
      SELECT 'operation-' || number, 'usage', 'KEY-' || number, 'counter', 'press', 'pending', 0, 0, 0, 0, 0, 0, 5
        FROM numbers`);
}

test.runIf(canMount)(
  'if only the state directory is writable, an agent starts, makes a backup and restores it (skipped where mounting is not allowed)',
  async () => {
    await using directory = temporaryDirectory();
    const config = join(directory.path, 'config.yaml');
    const upstream = { base_url: 'http://127.0.0.1:9' };
    const products = [{ key: 'press', secret }];
    const listen = { tcp: '127.0.0.1:0' };
    const state_dir = join(directory.path, 'state');
    writeFileSync(config, JSON.stringify({ state_dir, listen, upstream, products }), { mode: 0o600 });
    const program = writingOnlyTo(directory.path);
    {
      await using daemon = await serveBy([...program, 'serve', '--config', config]);
      const backup = join(directory.path, 'backup.db');
      expect(await runProcess(['backup', backup, '--config', config], {}, program)).toMatchObject({
        code: 0,
      });
      daemon.signal('SIGTERM');
      expect([await daemon.ended, daemon.complaints]).toEqual([0, '']);
    }
    const large = join(directory.path, 'large.db');
    writeLargeBackup(large);
    expect(await runProcess(['restore', large, '--config', config], {}, program)).toMatchObject({
      code: 0,
      err: '',
    });
    await using _daemon = await serveBy([...program, 'serve', '--config', config]);
    const { out } = await runProcess(['status', '--json', '--config', config], {}, program);
    expect(JSON.parse(out)).toMatchObject({ outbox: { uncertain: 20_000 } });
  },
);
