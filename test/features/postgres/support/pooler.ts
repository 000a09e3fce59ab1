import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, chownSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { DatabaseAddress } from '../../../../src/features/postgres/store/client.ts';
import { freePort } from '../../../support/network/free-port.ts';
import { hasProgram } from '../../../support/process/installed.ts';
import { userOfServer } from './postgres.ts';
import { temporaryDirectory } from '../../../support/temporary.ts';

/** Whether PgBouncer is installed; otherwise tests that need it are skipped. */
export const hasPooler: boolean = hasProgram('pgbouncer');

/** A PgBouncer in front of a server. */
export interface Pooler extends AsyncDisposable {
  readonly port: number;
}

export async function startPooler(
  address: DatabaseAddress,
  mode: 'session' | 'transaction',
): Promise<Pooler> {
  await using starting = new AsyncDisposableStack();
  const directory = starting.use(temporaryDirectory()).path;
  const user = userOfServer();
  const keep = (file: string, text: string): string => {
    const path = join(directory, file);
    writeFileSync(path, text);
    return path;
  };
  const port = await freePort();
  const users = keep('users', `"${address.user}" "${address.password}"\n`);
  const configuration = keep(
    'pgbouncer.ini',
    `[databases]
* = host=127.0.0.1 port=${address.port}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = scram-sha-256
auth_file = ${users}
pool_mode = ${mode}
ignore_startup_parameters = extra_float_digits
`,
  );
  if (user.uid !== undefined) {
    chmodSync(directory, 0o755);
    chownSync(directory, user.uid, user.gid);
  }
  const child = spawn('pgbouncer', ['-q', configuration], { ...user, stdio: 'ignore' });
  starting.defer(async () => {
    child.kill('SIGKILL');
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
  });
  while (!(await listens(port))) await sleep(20);
  const owned = starting.move();
  return { port, [Symbol.asyncDispose]: () => owned.disposeAsync() };
}

async function listens(port: number): Promise<boolean> {
  const socket = connect({ host: '127.0.0.1', port });
  try {
    await once(socket, 'connect');
    return true;
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
}
