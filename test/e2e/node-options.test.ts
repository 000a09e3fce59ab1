import { mkdtempSync, readdirSync } from 'node:fs';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { certificate, privateKey } from '../support/network/certificate.ts';
import { startDaemonProcess, type DaemonProcess } from '../support/process/daemon-process.ts';
import { httpClient } from '../support/network/raw-http.ts';
import { temporaryDirectory } from '../support/temporary.ts';

const configuration = { listen: { tcp: '127.0.0.1:0', socket: false } };

/** Whether a daemon answers; it handles earlier signals first. */
async function isAlive(daemon: DaemonProcess): Promise<boolean> {
  await using http = httpClient({ tcp: daemon.tcp });
  for (let count = 0; count < 20; count += 1) {
    if ((await http.get('/livez')).status !== 200) return false;
  }
  return true;
}

test('SIGUSR1 does not open a debugger in a daemon', async () => {
  await using directory = temporaryDirectory();
  await using daemon = await startDaemonProcess(directory.path, configuration);
  daemon.signal('SIGUSR1');
  expect(await isAlive(daemon)).toBe(true);
  daemon.signal('SIGTERM');
  expect(await daemon.ended).toBe(0);
  expect(daemon.complaints).not.toContain('Debugger');
});

test('a daemon closes a debugger that NODE_OPTIONS opened, and its log warns about the other options', async () => {
  await using directory = temporaryDirectory();
  const environment = { NODE_OPTIONS: '--inspect=127.0.0.1:0 --require=node:fs', NODE_DEBUG: 'nothing' };
  await using daemon = await startDaemonProcess(directory.path, configuration, environment);
  const [, port] = /ws:\/\/127\.0\.0\.1:(\d+)/.exec(daemon.complaints) ?? [];
  expect(port).toBeDefined();
  await using http = httpClient({ tcp: `http://127.0.0.1:${port}` });
  await expect(http.get('/json/list')).rejects.toMatchObject({ code: 'ECONNREFUSED' });
  const warning = await daemon.said('the environment lets Node reveal secrets of this process');
  expect(warning['warnings']).toEqual(['NODE_OPTIONS --require', 'NODE_DEBUG']);
});

test.each(['SIGUSR1', 'SIGWINCH'] as const)(
  'the signal %s does not make a daemon write a report or a heap snapshot, which would contain secrets',
  async (signal) => {
    await using directory = temporaryDirectory();
    const written = mkdtempSync(join(directory.path, 'written-'));
    const options = [
      `--report-directory=${written}`,
      `--report-signal=${signal}`,
      `--heapsnapshot-signal=${signal}`,
    ];
    const NODE_OPTIONS = ['--report-on-signal', `--diagnostic-dir=${written}`, ...options].join(' ');
    await using daemon = await startDaemonProcess(directory.path, configuration, { NODE_OPTIONS });
    daemon.signal(signal);
    expect(await isAlive(daemon)).toBe(true);
    expect(readdirSync(written)).toEqual([]);
  },
);

test('an agent does not trust an unknown certificate because of NODE_TLS_REJECT_UNAUTHORIZED', async () => {
  let asked = 0;
  const upstream = createServer({ cert: certificate, key: privateKey }, (_, response) => {
    asked += 1;
    response.writeHead(404, { 'content-type': 'application/json' }).end('{"error":"not found"}');
  });
  onTestFinished(() => void upstream.close());
  await new Promise<void>((resolve) => upstream.listen(0, '127.0.0.1', resolve));
  const { port } = upstream.address() as AddressInfo;
  const agent = {
    ...configuration,
    upstream: { base_url: `https://localhost:${port}` },
    products: [{ key: 'product', secret: 'secret-of-the-product' }],
  };
  await using directory = temporaryDirectory();
  const environment = { NODE_TLS_REJECT_UNAUTHORIZED: '0' };
  await using daemon = await startDaemonProcess(directory.path, agent, environment);
  await using http = httpClient({ tcp: daemon.tcp });
  const headers = { 'product-secret-key': 'secret-of-the-product' };
  const { status } = await http.get('/api/v2/license/verify?license_key=KEY', { headers });
  expect([status, asked]).toEqual([503, 0]);
});
