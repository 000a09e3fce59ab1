import { spawn } from 'node:child_process';
import type { Socket } from 'node:net';

/** Waits until its input is closed, which means that the process that started it has ended. */
const script = `read -r _; kill -QUIT "$(head -n 1 "$1/postmaster.pid")"; shift; rm -rf "$@"`;

/** Stops a detached PostgreSQL and removes its directories when this process ends, even by a kill. */
export function endWithThisProcess(data: string, directories: readonly string[]): Disposable {
  const watcher = spawn('sh', ['-c', script, 'sh', data, ...directories], {
    stdio: ['pipe', 'ignore', 'ignore'],
    // A signal to the process group must not end the watcher first.
    detached: true,
  });
  watcher.unref();
  (watcher.stdin as Socket).unref();
  return { [Symbol.dispose]: () => void watcher.kill() };
}
