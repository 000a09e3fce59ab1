import { describe, expect, it, vi } from 'vitest';
import { syncControl } from '../../src/daemon/role/agent.ts';
import { adminToken, openApp, serverOf } from '../support/app/http-app.ts';
import { minute, second, startSyncHarness, type SyncHarness } from '../support/harness/sync-harness.ts';
import { patienceMs } from '../support/patience.ts';
import { buildLicense } from '../support/builders/store-builders.ts';

/* Keys that the store has sold, and does not show yet. */

const key = 'SOLD-1';
const soldLicense = buildLicense({ licenseKey: key, productKey: 'link' });

async function codeOf(
  harness: SyncHarness,
  licenseKey = key,
  requester: string | null = 'till',
): Promise<string> {
  const answer = await harness.verify(licenseKey, requester);
  return answer.ok ? 'ok' : answer.problem.code;
}

/** Asks every 100 ms for a key that the store never shows. Returns the seconds at which the upstream was asked. */
async function askedAt(harness: SyncHarness, untilMs: number): Promise<number[]> {
  const seconds: number[] = [];
  const startedAt = harness.time.monotonic;
  while (harness.time.monotonic - startedAt < untilMs) {
    const before = harness.vendor.asked.length;
    const at = harness.time.monotonic - startedAt;
    expect(await codeOf(harness)).toBe('license_not_found');
    if (harness.vendor.asked.length > before) seconds.push(Math.round(at / second));
    await harness.time.advance(100);
  }
  return seconds;
}

describe('a key that the store shows late', () => {
  it('the upstream is asked again after 2, 4, 8, 16, 32 and 60 s, and then every 60 s', async () => {
    using harness = await startSyncHarness([]);
    expect(await askedAt(harness, 5 * minute)).toEqual([0, 2, 6, 14, 30, 62, 122, 182, 242]);
  });

  it('a key is found within the time that its buyer waited for it before', async () => {
    using harness = await startSyncHarness([]);
    expect(await codeOf(harness)).toBe('license_not_found');
    await harness.time.advance(2 * second);
    harness.vendor.licenses.set(key, soldLicense);
    expect(await codeOf(harness)).toBe('ok');
  });

  it('a key that was asked for in vain for five minutes is not asked for every few seconds again', async () => {
    using harness = await startSyncHarness([]);
    expect(await codeOf(harness)).toBe('license_not_found');
    await harness.time.advance(5 * minute);
    expect(await askedAt(harness, 2 * minute)).toEqual([0, 60]);
  });

  it('no 404 is kept for longer than freshness.unknown', async () => {
    using harness = await startSyncHarness([], { unknownMs: 5 * second });
    expect(await askedAt(harness, 20 * second)).toEqual([0, 2, 6, 11, 16]);
  });

  it('guesses are limited by limits.misses as before', async () => {
    using harness = await startSyncHarness([]);
    await askedAt(harness, minute);
    const before = harness.vendor.asked.length;
    for (let index = 0; index < 40; index += 1) void harness.ask(`GUESS-${index}`, 'till');
    await harness.time.advance(5 * second);
    expect(harness.vendor.asked.length - before).toBeLessThanOrEqual(30);
  });

  it('`sync now` ends all 404s', async () => {
    using harness = await startSyncHarness([]);
    expect(await codeOf(harness)).toBe('license_not_found');
    harness.vendor.licenses.set(key, soldLicense);
    expect(await codeOf(harness)).toBe('license_not_found');
    const control = syncControl({ reader: harness.store, writer: harness.writer }, harness.sync);
    await control.now({ actor: null, requestId: null, idempotency: null });
    expect(await codeOf(harness)).toBe('ok');
  });

  it('a command of the operator always asks, also for a pasted key', async () => {
    using harness = await startSyncHarness([]);
    await using opened = await openApp({ role: 'agent' });
    const server = serverOf({ ...opened.app, licenseService: harness.licenseService });
    const pasted = `${key}\u200b`;
    const verify = async (): Promise<number> => {
      let isDone = false;
      const url = `/api/v2/license/verify?${new URLSearchParams({ license_key: pasted }).toString()}`;
      const headers = { authorization: `Bearer ${adminToken}` };
      const answer = server.inject({ url, headers }).finally(() => (isDone = true));
      await vi.waitUntil(
        async () => {
          await harness.time.advance(20);
          return isDone;
        },
        { timeout: patienceMs, interval: 1 },
      );
      return (await answer).statusCode;
    };
    expect(await codeOf(harness, pasted)).toBe('license_not_found');
    expect(await verify()).toBe(404);
    harness.vendor.licenses.set(key, soldLicense);
    expect(await verify()).toBe(200);
  });
});
