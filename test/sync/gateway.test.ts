import { describe, expect, it } from 'vitest';
import type { Outcome } from '../../src/domain/outbox/outcome.ts';
import { minute, second, startSyncHarness } from '../support/harness/sync-harness.ts';

const notFound: Outcome<never> = {
  outcome: 'not_applied',
  reason: 'missing',
  status: 404,
  detail: 'HTTP 404: no route matched with those values',
  retryAfterMs: null,
};

describe('a gateway that answers 404 with a JSON object to everything', () => {
  it('a gateway that answers 404 costs no accepted change, however short the limit for gone keys', async () => {
    const keys = Array.from({ length: 20 }, (_, index) => `KEY-${index}`);
    using harness = await startSyncHarness(keys, { rate: 50 });
    for (const key of keys) await harness.verify(key);
    harness.vendor.instead = () => notFound;
    let taken = 0;
    for (const key of keys) {
      for (let use = 0; use < 5; use += 1) taken += (await harness.change(key, 'usage')).ok ? 1 : 0;
    }
    await harness.time.advance(5 * minute);
    harness.vendor.instead = () => null;
    await harness.time.advance(30 * minute);
    expect(taken).toBe(100);
    expect(harness.store.operations.depth()).toMatchObject({ dead: 0, pending: 0, delivered: 100 });
    expect(keys.filter((key) => harness.store.snapshots.get(key)?.gone)).toEqual([]);
  });
});

describe('a key that the upstream has deleted', () => {
  it('a deleted key is gone after two 404s, because another known key is still answered', async () => {
    using harness = await startSyncHarness(['KEY', 'OTHER']);
    await harness.verify('KEY');
    await harness.verify('OTHER');
    harness.vendor.licenses.delete('KEY');
    await harness.change('KEY', 'usage');
    await harness.time.advance(10 * minute);
    expect(harness.store.snapshots.get('KEY')).toMatchObject({ gone: true });
    expect(harness.vendor.asked).toContain('verify OTHER');
    expect(harness.store.operations.depth()).toMatchObject({ pending: 0, dead: 1 });
  });

  it('a deleted key is gone even if no other key is known', async () => {
    using harness = await startSyncHarness(['KEY']);
    await harness.verify('KEY');
    harness.vendor.licenses.delete('KEY');
    await harness.change('KEY', 'usage');
    await harness.time.advance(10 * minute);
    expect(harness.store.snapshots.get('KEY')).toMatchObject({ gone: true });
  });

  it('a deleted key returns with its uses if a caller asks for it and the upstream has it again', async () => {
    using harness = await startSyncHarness(['KEY', 'OTHER']);
    await harness.verify('OTHER');
    await harness.verify('KEY');
    const license = harness.vendor.licenses.get('KEY');
    harness.vendor.licenses.delete('KEY');
    await harness.change('KEY', 'usage');
    await harness.time.advance(10 * minute);
    if (license !== undefined) harness.vendor.licenses.set('KEY', license);
    await harness.time.advance(2 * minute);
    expect(await harness.change('KEY', 'usage')).toMatchObject({ ok: true });
    await harness.time.advance(minute);
    expect(harness.vendor.licenses.get('KEY')?.uses).toBe(2);
    expect(harness.store.operations.depth()).toMatchObject({ dead: 0, pending: 0, delivered: 2 });
  });
});

describe('a key for which the upstream answers 403 with a JSON object', () => {
  it('a key with 403 does not delay uses of other keys of its product', async () => {
    const keys = Array.from({ length: 40 }, (_, index) => `KEY-${index}`);
    using harness = await startSyncHarness([...keys, 'REFUSED']);
    for (const key of ['REFUSED', ...keys]) await harness.verify(key);
    await harness.time.advance(minute);
    harness.vendor.instead = (what, key) =>
      key === 'REFUSED' && what === 'usage'
        ? { ...notFound, reason: 'unauthorized', status: 403, detail: 'HTTP 403: this license is disabled' }
        : null;
    for (const key of ['REFUSED', ...keys]) {
      for (let use = 0; use < 5; use += 1) await harness.change(key, 'usage');
    }
    await harness.time.advance(60 * minute);
    expect(harness.store.operations.depth()).toMatchObject({ pending: 5, delivered: 200 });
    expect(harness.sync.limiter.status().pausedProducts).toEqual([]);
  });
});

describe('an upstream that ignores the letter case of keys', () => {
  it('each use is counted once, under whichever spelling it was recorded', async () => {
    using harness = await startSyncHarness(['team-key']);
    harness.vendor.spells = (key) => key.toLowerCase();
    await harness.verify('team-key');
    await harness.verify('Team-Key');
    harness.vendor.instead = (what) =>
      what === 'usage' ? { outcome: 'ambiguous', status: 500, detail: 'HTTP 500', retryAfterMs: null } : null;
    await harness.change('team-key', 'usage');
    await harness.time.advance(2 * second);
    harness.vendor.instead = () => null;
    await harness.change('Team-Key', 'usage');
    await harness.time.advance(5 * minute);
    expect(harness.vendor.licenses.get('team-key')?.uses).toBe(2);
    expect(harness.store.operations.depth()).toMatchObject({ delivered: 2 });
  });
});

describe('a request that is repeated under its idempotency key', () => {
  it('a repeated request gets the same response, even if it waits this time', async () => {
    using harness = await startSyncHarness(['KEY']);
    await harness.verify('KEY');
    const first = await harness.change('KEY', 'usage', { idempotencyKey: 'k' });
    for (let more = 0; more < 3; more += 1) await harness.change('KEY', 'usage');
    await harness.time.advance(minute);
    const second_ = await harness.change('KEY', 'usage', { idempotencyKey: 'k', waitMs: second });
    const third = await harness.change('KEY', 'usage', { idempotencyKey: 'k' });
    const uses = [first, second_, third].map((answer) => answer.ok && answer.value.license.uses);
    expect(uses).toEqual([1, 1, 1]);
  });
});
