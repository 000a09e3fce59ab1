import { expect, test } from 'vitest';
import { done } from '../../../src/domain/problem/problem.ts';
import type { LicenseService } from '../../../src/service/services.ts';
import { StorageError } from '../../../src/service/ports.ts';
import { httpClient } from '../../support/network/raw-http.ts';
import { adminToken } from '../../support/app/http-app.ts';
import { serveApp } from '../../support/app/http-served.ts';
import { buildLicense } from '../../support/builders/store-builders.ts';

const license = buildLicense({ licenseKey: 'KEY', productKey: 'P' });
const request = { headers: { authorization: `Bearer ${adminToken}` }, form: { license_key: 'KEY' } };

/** Licensing whose changes wait for `go`, and the signals that the changes got. */
function waitingLicenseService(go: Promise<void>): {
  licenseService: LicenseService;
  signals: AbortSignal[];
} {
  const signals: AbortSignal[] = [];
  const answer = done({ license, productKey: 'P', provenance: { freshness: 'authoritative' as const } });
  const licenseService: LicenseService = {
    verify: () => Promise.resolve(answer),
    async change(_, signal) {
      signals.push(signal);
      await go;
      return answer;
    },
    history: () => Promise.resolve(done({ changes: [], total: 0 })),
  };
  return { licenseService, signals };
}

test('a waiting caller does not count as disconnected after its body was read', async () => {
  const { promise, resolve } = Promise.withResolvers<void>();
  const { licenseService, signals } = waitingLicenseService(promise);
  await using served = await serveApp({ licenseService });
  await using http = httpClient(served.listeners.tcp);
  const answer = http.put('/api/v2/license/usage', request);
  await expect.poll(() => signals.length).toBe(1);
  await http.get('/livez');
  expect(signals[0]?.aborted).toBe(false);
  resolve();
  expect((await answer).status).toBe(200);
  await http.get('/livez');
  expect(signals[0]?.aborted).toBe(false);
});

test('the work for a caller that disconnected is aborted', async () => {
  const { promise, resolve } = Promise.withResolvers<void>();
  const { licenseService, signals } = waitingLicenseService(promise);
  await using served = await serveApp({ licenseService });
  await using http = httpClient(served.listeners.socket);
  const leaving = new AbortController();
  const answer = http.put('/api/v2/license/usage', { ...request, signal: leaving.signal });
  await expect.poll(() => signals.length).toBe(1);
  leaving.abort();
  await expect(answer).rejects.toMatchObject({ name: 'AbortError' });
  await expect.poll(() => signals[0]?.aborted).toBe(true);
  resolve();
});

test.each([
  [
    'an error caused by the abort is not an error of this process',
    new Error('given up'),
    'malformed_request',
  ],
  [
    'a failed store is an error of this process',
    new StorageError('failed', new Error('disk')),
    'storage_failed',
  ],
])('after the caller disconnected, %s', async (_, error, code) => {
  const { promise, reject } = Promise.withResolvers<void>();
  const { licenseService, signals } = waitingLicenseService(promise);
  await using served = await serveApp({ licenseService });
  await using http = httpClient(served.listeners.socket);
  const leaving = new AbortController();
  const answer = http.put('/api/v2/license/usage', { ...request, signal: leaving.signal });
  await expect.poll(() => signals.length).toBe(1);
  leaving.abort();
  await expect(answer).rejects.toMatchObject({ name: 'AbortError' });
  await expect.poll(() => signals[0]?.aborted).toBe(true);
  reject(error);
  await expect.poll(() => served.lines).toContainEqual(expect.objectContaining({ code }));
  expect(served.lines.filter(({ message }) => message.includes('unexpectedly'))).toEqual([]);
});
