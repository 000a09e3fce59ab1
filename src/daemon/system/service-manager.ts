import { once } from 'node:events';
import type { Log } from '../../service/ports.ts';

/** Tells the service manager that started this process, if one did, how it stands (sd_notify(3)). */
export async function tellServiceManager(
  state: 'READY' | 'RELOADING' | 'STOPPING',
  log: Log,
  more: readonly string[] = [],
): Promise<void> {
  if (process.env['NOTIFY_SOCKET'] === undefined) return;
  try {
    const { spawn } = await import('node:child_process');
    // Node cannot send datagrams over Unix sockets.
    const [code] = await once(spawn('systemd-notify', [`${state}=1`, ...more], { stdio: 'ignore' }), 'exit');
    if (code !== 0) log.warn({ state, code: String(code) }, 'systemd-notify failed');
  } catch (error) {
    log.warn({ state, err: error }, 'systemd-notify cannot be run: the service manager is told nothing');
  }
}
