import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import type { CleanRoot, Ran } from './clean-root.ts';
import { hasProgram } from './installed.ts';

/** What booting a clean root needs and is not here; null: one can be tried. */
export const missingForBoot: string | null = hasProgram('systemd-nspawn')
  ? null
  : 'systemd-nspawn (systemd-container)';

/** A Debian whose systemd runs: a machine as far as its services can tell, with a loopback network of its own. */
export interface BootedRoot extends AsyncDisposable {
  run(...command: string[]): Promise<Ran>;
}

/** How long systemd may take until it says that the machine is up. */
const longestMs = 120_000;
const everyMs = 200;

/** Boots a clean root with systemd. Gives the error message if this machine cannot do that. */
export async function boot(root: CleanRoot): Promise<BootedRoot | string> {
  const argv = ['--quiet', `--directory=${root.path}`, '--register=no', '--keep-unit', '--private-network'];
  const container = spawn('systemd-nspawn', [...argv, '--boot', '--console=pipe'], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let said = '';
  for (const stream of [container.stdout, container.stderr]) {
    stream.on('data', (piece: Buffer) => (said += piece.toString()));
  }
  const ended = once(container, 'exit');
  for (const until = Date.now() + longestMs; Date.now() < until && container.exitCode === null;) {
    const init = initOf(container);
    if (
      init !== null &&
      /^(running|degraded)$/m.test((await runIn(init, ['systemctl', 'is-system-running'])).said)
    ) {
      return {
        run: (...command) => runIn(init, command),
        // All of the machine ends with its first process.
        [Symbol.asyncDispose]: async () => {
          process.kill(init, 'SIGKILL');
          await ended;
        },
      };
    }
    await sleep(everyMs);
  }
  container.kill('SIGKILL');
  return said.slice(-1000);
}

/** The process of systemd in a container, by its id on this machine; null: it has not begun. */
function initOf({ pid }: ChildProcess): number | null {
  try {
    const [child = ''] = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ');
    const [program = ''] = readFileSync(`/proc/${child}/cmdline`, 'utf8').split('\0');
    return program.endsWith('/systemd') ? Number(child) : null;
  } catch {
    return null;
  }
}

function runIn(init: number, command: readonly string[]): Promise<Ran> {
  const namespaces = ['--mount', '--uts', '--ipc', '--pid', '--net', '--root', '--wd'];
  const { promise, resolve } = Promise.withResolvers<Ran>();
  const env = { PATH: '/usr/sbin:/usr/bin:/sbin:/bin', HOME: '/root', DEBIAN_FRONTEND: 'noninteractive' };
  const child = execFile(
    'nsenter',
    [`--target=${init}`, ...namespaces, ...command],
    { env },
    (_error, out, err) => {
      resolve({ code: child.exitCode, said: out + err });
    },
  );
  return promise;
}
