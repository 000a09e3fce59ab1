import { execFile } from 'node:child_process';
import { chmodSync, chownSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { DatabaseAddress } from '../../../../src/features/postgres/store/client.ts';
import { Database } from '../../../../src/features/postgres/store/database.ts';
import { eventually } from '../../../support/harness/agent-harness.ts';
import { endWithThisProcess } from '../../../support/process/ends-with-process.ts';
import { freePort } from '../../../support/network/free-port.ts';
import { postgresProgram, userOfServer } from './postgres.ts';
import { temporaryDirectory } from '../../../support/temporary.ts';

const run = promisify(execFile);

/** A server that follows another server, and only accepts reads until it is promoted. */
export interface Standby extends AsyncDisposable {
  readonly address: DatabaseAddress;
  promote(): Promise<void>;
}

/** Starts a standby from a backup of a running server. */
export async function startStandby(primary: DatabaseAddress): Promise<Standby> {
  await using starting = new AsyncDisposableStack();
  const directory = starting.use(temporaryDirectory()).path;
  const user = userOfServer();
  chmodSync(directory, 0o755);
  if (user.uid !== undefined) chownSync(directory, user.uid, user.gid);
  const data = join(directory, 'data');
  starting.use(endWithThisProcess(data, [directory]));
  const env = { PATH: process.env['PATH'], LANG: 'C', PGPASSWORD: primary.password };
  const call = (program: string, ...args: string[]) =>
    run(postgresProgram(program), args, { ...user, cwd: directory, env });
  const from = ['-h', primary.host, '-p', String(primary.port), '-U', primary.user];
  await call('pg_basebackup', ...from, '-D', data, '-R', '-X', 'stream', '-c', 'fast');
  const port = await freePort();
  const listening = `-p ${port} -c listen_addresses=127.0.0.1 -c unix_socket_directories=${directory}`;
  // A standby must allow at least as many connections as its primary.
  const options = `${listening} -c max_connections=150 -c shared_buffers=32MB`;
  await call('pg_ctl', '-D', data, '-o', options, '-l', join(directory, 'log'), '-w', '-s', 'start');
  starting.defer(async () => {
    await call('pg_ctl', '-D', data, '-m', 'immediate', '-w', '-s', 'stop').catch(() => undefined);
  });
  await using primaryDatabase = new Database({
    address: primary,
    schema: 'none',
    pool: 1,
    statementTimeoutMs: 5_000,
  });
  // The standby accepts reads before it streams.
  await eventually(async () => {
    const rows = await primaryDatabase.query(`SELECT 1 FROM pg_stat_replication WHERE state = 'streaming'`);
    return rows.length > 0;
  });
  const owned = starting.move();
  return {
    address: { ...primary, host: directory, port },
    async promote() {
      await call('pg_ctl', '-D', data, '-w', '-s', 'promote');
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}
