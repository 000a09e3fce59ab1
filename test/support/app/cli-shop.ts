import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { identityOf } from '../../../src/store/sqlite/files/private-file.ts';
import { latchkey, type Outcome } from '../process/command-line.ts';
import { adminToken, type TestApp } from './http-app.ts';
import { serveApp } from './http-served.ts';

/** An authority that commands find by its state directory. */
export interface CliShop extends AsyncDisposable, Pick<TestApp, 'write'> {
  readonly directory: string;
  /** Runs a command line on the authority. */
  run(...argv: string[]): Promise<Outcome>;
  /** The JSON that a command prints. Throws if the command fails. */
  read<Shape>(...argv: string[]): Promise<Shape>;
}

export async function openCliShop(changes: Parameters<typeof serveApp>[0] = {}): Promise<CliShop> {
  const served = await serveApp(changes);
  const { tcp, socket } = served.listeners;
  const announced = {
    instance: served.app.instance,
    directory: identityOf(served.directory),
    tcp: 'tcp' in tcp ? tcp.tcp : null,
    socket: 'socket' in socket ? socket.socket : null,
  };
  await writeFile(join(served.directory, 'listen.json'), JSON.stringify(announced), { mode: 0o600 });
  await writeFile(join(served.directory, 'admin.token'), `${adminToken}\n`, { mode: 0o600 });
  const run = (...argv: string[]): Promise<Outcome> => latchkey(...argv, '--state-dir', served.directory);
  return {
    write: (work) => served.write(work),
    directory: served.directory,
    run,
    async read(...argv) {
      const { code, out, err } = await run(...argv, '--json');
      if (code !== 0) throw new Error(`${argv.join(' ')}: ${err}`);
      return JSON.parse(out) as never;
    },
    [Symbol.asyncDispose]: () => served[Symbol.asyncDispose](),
  };
}
