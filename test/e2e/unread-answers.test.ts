import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { startDaemonProcess } from '../support/process/daemon-process.ts';
import { httpClient } from '../support/network/raw-http.ts';
import { temporaryDirectory } from '../support/temporary.ts';

function residentMebibytes(pid: number): number {
  return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024;
}

test.runIf(process.platform === 'linux')(
  'callers that send many requests and read no responses do not fill the memory of the process',
  async () => {
    await using directory = temporaryDirectory();
    const configuration = { listen: { tcp: '127.0.0.1:0', socket: false } };
    await using daemon = await startDaemonProcess(directory.path, configuration);
    const secretIn = (name: string): string =>
      readFileSync(join(directory.path, 'state', name), 'utf8').trim();
    await using http = httpClient({ tcp: daemon.tcp });
    const headers = { authorization: `Bearer ${secretIn('admin.token')}` };
    const coupon = { coupon_type: 'multi', percent_off: 5, notes: 'é'.repeat(16_000) };
    const coupons = Array.from({ length: 100 }, (_, index) => ({ ...coupon, code: `CODE-${index}` }));
    expect((await http.post('/admin/v1/coupons/import', { headers, json: { coupons } })).status).toBe(200);
    const before = residentMebibytes(daemon.pid);
    const credential = `Host: localhost\r\nservice-api-key: ${secretIn('api.key')}\r\n\r\n`;
    const requests = [
      `GET /api/v2/coupons?limit=100 HTTP/1.1\r\n${credential}`,
      `GET /admin/v1/coupons/export HTTP/1.1\r\nHost: localhost\r\nAuthorization: ${headers.authorization}\r\n\r\n`,
    ];
    for (let count = 0; count < 6; count += 1) {
      const socket = connect(Number(new URL(daemon.tcp).port), '127.0.0.1');
      onTestFinished(() => void socket.destroy());
      socket.on('error', () => undefined);
      socket.once('data', () => socket.pause());
      socket.write((requests[count % 2] ?? '').repeat(99));
      await once(socket, 'data');
      expect((await http.get('/statusz', { headers })).status).toBe(200);
    }
    expect(residentMebibytes(daemon.pid) - before).toBeLessThan(400);
  },
);
