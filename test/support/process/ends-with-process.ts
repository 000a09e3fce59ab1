import { spawn } from 'node:child_process';
import type { Socket } from 'node:net';

/** Waits until its input is closed: the process that started it has ended. */
const script = `read -r _; kill -QUIT "$(head -n 1 "$1/postmaster.pid")"; shift; rm -rf "$@"`;

/**
 * Has a PostgreSQL, which is a child of nobody, end with this process, also one that is killed, and removes its
 * directories then.
 */
export function endWithThisProcess(data: string, directories: readonly string[]): Disposable {
  const watcher = spawn('sh', ['-c', script, 'sh', data, ...directories], {
    stdio: ['pipe', 'ignore', 'ignore'],
    // What interrupts a group of processes must not end it first.
    detached: true,
  });
  watcher.unref();
  (watcher.stdin as Socket).unref();
  return { [Symbol.dispose]: () => void watcher.kill() };
}
