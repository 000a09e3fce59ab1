import { execFile, execFileSync } from 'node:child_process';
import { chmodSync, chownSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { DatabaseAddress } from '../../../../src/features/postgres/store/client.ts';
import { Database, type DatabaseSettings } from '../../../../src/features/postgres/store/database.ts';
import { migrate } from '../../../../src/features/postgres/store/migrations.ts';
import { endWithThisProcess } from '../../../support/process/ends-with-process.ts';
import { freePort } from '../../../support/network/free-port.ts';
import { postgresPrograms } from '../../../support/process/postgres-programs.ts';
import { temporaryDirectory } from '../../../support/temporary.ts';

const run = promisify(execFile);

/** The path of a PostgreSQL program such as `pgbench`. */
export function postgresProgram(name: string): string {
  if (postgresPrograms === null) throw new Error('PostgreSQL is not installed');
  return join(postgresPrograms, name);
}

/** Whether PostgreSQL is installed; otherwise tests that need it are skipped. */
export const hasPostgres: boolean = postgresPrograms !== null;

/** A separate server in a temporary directory, on loopback and a Unix socket. */
export interface PostgresServer extends AsyncDisposable {
  readonly address: DatabaseAddress;
  /** The process id of its parent process. */
  readonly pid: () => number;
  /** A store in its own empty schema, with the current tables. */
  store(settings?: Partial<DatabaseSettings>): Promise<Database>;
  /** The settings of `store`, before the schema exists. */
  settings(settings?: Partial<DatabaseSettings>): DatabaseSettings;
  /** `immediate`: stops it as a power cut does; `fast`: lets transactions end. */
  stop(how?: 'fast' | 'immediate'): Promise<void>;
  start(): Promise<void>;
}

/** PostgreSQL refuses to run as root, so root starts it as the user of Debian's package. */
export function userOfServer(): { uid: number; gid: number } | Record<string, never> {
  if (process.getuid?.() !== 0) return {};
  const id = (flag: string): number => Number(execFileSync('id', [flag, 'postgres'], { encoding: 'utf8' }));
  return { uid: id('-u'), gid: id('-g') };
}

export type PostgresOptions = {
  /** The parent directory of its data. Default: the directory for temporary files. */
  readonly below?: string;
  readonly sharedBuffers?: string;
  /** false: the server is faster, and may lose everything in an `immediate` stop. */
  readonly isDurable?: boolean;
};

export async function startPostgres({
  below,
  sharedBuffers = '32MB',
  isDurable = true,
}: PostgresOptions = {}): Promise<PostgresServer> {
  await using starting = new AsyncDisposableStack();
  const directory = starting.use(temporaryDirectory()).path;
  const user = userOfServer();
  chmodSync(directory, 0o755);
  if (user.uid !== undefined) chownSync(directory, user.uid, user.gid);
  const dataBelow = below === undefined ? directory : starting.use(temporaryDirectory(below)).path;
  if (user.uid !== undefined) chownSync(dataBelow, user.uid, user.gid);
  const data = join(dataBelow, 'data');
  starting.use(endWithThisProcess(data, [directory, dataBelow]));
  const secret = join(directory, 'password');
  writeFileSync(secret, 'secret', { mode: 0o644 });
  const call = (program: string, ...args: string[]) =>
    run(postgresProgram(program), args, {
      ...user,
      cwd: directory,
      env: { PATH: process.env['PATH'], LANG: 'C' },
    });
  await call(
    'initdb',
    '-D',
    data,
    '-U',
    'owner',
    '-A',
    'scram-sha-256',
    `--pwfile=${secret}`,
    '-E',
    'UTF8',
    '-N',
  );
  const port = await freePort();
  const listening = `-p ${port} -c listen_addresses=127.0.0.1 -c unix_socket_directories=${directory}`;
  const start = async (): Promise<void> => {
    const durability = isDurable ? '' : ' -c fsync=off -c full_page_writes=off';
    const options = `${listening} -c max_connections=150 -c shared_buffers=${sharedBuffers}${durability}`;
    await call('pg_ctl', '-D', data, '-o', options, '-l', join(directory, 'log'), '-w', '-s', 'start');
  };
  const stop = async (how = 'fast'): Promise<void> => {
    await call('pg_ctl', '-D', data, '-m', how, '-w', '-s', 'stop');
  };
  await start();
  starting.defer(() => stop('immediate').catch(() => undefined));
  const owned = starting.move();
  const address: DatabaseAddress = {
    host: directory,
    port,
    user: 'owner',
    password: 'secret',
    database: 'postgres',
    tls: null,
  };
  let made = 0;
  const settings = (changes: Partial<DatabaseSettings> = {}): DatabaseSettings => {
    made += 1;
    return { address, schema: `Latchkey "${made}"`, pool: 8, statementTimeoutMs: 5_000, ...changes };
  };
  return {
    address,
    pid: () => Number.parseInt(readFileSync(join(data, 'postmaster.pid'), 'utf8'), 10),
    settings,
    async store(changes) {
      const database = new Database(settings(changes));
      await migrate(database);
      return database;
    },
    stop,
    start,
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}
