import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished, test, vi } from 'vitest';
import { patience } from '../support/patience.ts';
import { startDaemonProcess } from '../support/process/daemon-process.ts';
import { httpClient } from '../support/network/raw-http.ts';
import { temporaryDirectory } from '../support/temporary.ts';

const launcher = fileURLToPath(new URL('../../src/cli/launcher.js', import.meta.url));

/** Makes the launcher believe that its own Node is too old, so that it starts the Node of the package. */
const onOldNode = [
  process.execPath,
  '--import',
  "data:text/javascript,Object.defineProperty(process,'versions',{value:{...process.versions,node:'20.0.0'}})",
  launcher,
] as const;

function childOf(pid: number): number {
  return Number(readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8'));
}

test.runIf(process.platform === 'linux')(
  'a daemon shuts down gracefully if the launcher that started it is killed',
  async () => {
    await using directory = temporaryDirectory();
    const configuration = { listen: { tcp: '127.0.0.1:0', socket: false } };
    await using daemon = await startDaemonProcess(directory.path, configuration, {}, onOldNode);
    const child = childOf(daemon.pid);
    expect(child).toBeGreaterThan(0);
    onTestFinished(() => {
      if (existsSync(`/proc/${child}`)) process.kill(child, 'SIGKILL');
    });
    await using http = httpClient({ tcp: daemon.tcp });
    expect((await http.get('/livez')).status).toBe(200);
    daemon.signal('SIGKILL');
    await daemon.said('stopped');
    await daemon.ended;
    await vi.waitFor(() => expect(() => process.kill(child, 0)).toThrow('ESRCH'), patience);
  },
);

test.runIf(process.platform === 'linux')('SIGUSR1 does not open a debugger in the launcher', async () => {
  await using directory = temporaryDirectory();
  const configuration = { listen: { tcp: '127.0.0.1:0', socket: false } };
  await using daemon = await startDaemonProcess(directory.path, configuration, {}, onOldNode);
  daemon.signal('SIGUSR1');
  process.kill(childOf(daemon.pid), 'SIGUSR1');
  daemon.signal('SIGTERM');
  expect([await daemon.ended, daemon.complaints]).toEqual([0, '']);
});
