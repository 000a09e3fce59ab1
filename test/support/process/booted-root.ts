import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import type { CleanRoot, Ran } from './clean-root.ts';
import { hasProgram } from './installed.ts';

/** What this machine lacks to boot a clean root; null: nothing. */
export const missingForBoot: string | null = hasProgram('systemd-nspawn')
  ? null
  : 'systemd-nspawn (systemd-container)';

/** A Debian container with a running systemd and its own loopback network. */
export interface BootedRoot extends AsyncDisposable {
  run(...command: string[]): Promise<Ran>;
}

/** The longest time in which systemd must report that the machine is up. */
const longestMs = 120_000;
const everyMs = 200;

/** Boots a clean root with systemd. Returns the error message if this machine cannot boot it. */
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
        // Killing its first process ends the whole container.
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

/** The process id of the container's systemd on this machine; null: it has not started. */
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
