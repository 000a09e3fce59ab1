import { describe, expect, it } from 'vitest';
import type { Outcome } from '../../src/domain/outbox/outcome.ts';
import { minute, second, startSyncStage } from '../support/stage/sync-stage.ts';

const notFound: Outcome<never> = {
  outcome: 'not_applied',
  reason: 'missing',
  status: 404,
  detail: 'HTTP 404: no route matched with those values',
  retryAfterMs: null,
};

describe('a gateway that has lost its routes, and answers 404 with a JSON object to everything', () => {
  it('costs no acknowledged change, however soon a key would be given up', async () => {
    const keys = Array.from({ length: 20 }, (_, index) => `KEY-${index}`);
    using stage = await startSyncStage(keys, { rate: 50 });
    for (const key of keys) await stage.verify(key);
    stage.vendor.instead = () => notFound;
    let taken = 0;
    for (const key of keys) {
      for (let use = 0; use < 5; use += 1) taken += (await stage.change(key, 'usage')).ok ? 1 : 0;
    }
    await stage.time.advance(5 * minute);
    stage.vendor.instead = () => null;
    await stage.time.advance(30 * minute);
    expect(taken).toBe(100);
    expect(stage.store.operations.depth()).toMatchObject({ dead: 0, pending: 0, delivered: 100 });
    expect(keys.filter((key) => stage.store.observations.get(key)?.gone)).toEqual([]);
  });
});

describe('a key that the upstream has deleted', () => {
  it('is gone once reads say so twice, since another known key is still answered', async () => {
    using stage = await startSyncStage(['KEY', 'OTHER']);
    await stage.verify('KEY');
    await stage.verify('OTHER');
    stage.vendor.licenses.delete('KEY');
    await stage.change('KEY', 'usage');
    await stage.time.advance(10 * minute);
    expect(stage.store.observations.get('KEY')).toMatchObject({ gone: true });
    expect(stage.vendor.asked).toContain('verify OTHER');
    expect(stage.store.operations.depth()).toMatchObject({ pending: 0, dead: 1 });
  });

  it('is gone also where no other key is known that could bear witness', async () => {
    using stage = await startSyncStage(['KEY']);
    await stage.verify('KEY');
    stage.vendor.licenses.delete('KEY');
    await stage.change('KEY', 'usage');
    await stage.time.advance(10 * minute);
    expect(stage.store.observations.get('KEY')).toMatchObject({ gone: true });
  });

  it('comes back with its uses when a caller asks for it and the upstream has it again', async () => {
    using stage = await startSyncStage(['KEY', 'OTHER']);
    await stage.verify('OTHER');
    await stage.verify('KEY');
    const license = stage.vendor.licenses.get('KEY');
    stage.vendor.licenses.delete('KEY');
    await stage.change('KEY', 'usage');
    await stage.time.advance(10 * minute);
    if (license !== undefined) stage.vendor.licenses.set('KEY', license);
    await stage.time.advance(2 * minute);
    expect(await stage.change('KEY', 'usage')).toMatchObject({ ok: true });
    await stage.time.advance(minute);
    expect(stage.vendor.licenses.get('KEY')?.uses).toBe(2);
    expect(stage.store.operations.depth()).toMatchObject({ dead: 0, pending: 0, delivered: 2 });
  });
});

describe('one key for which the upstream answers 403 with a JSON object', () => {
  it('does not hold up the uses of the other keys of its product', async () => {
    const keys = Array.from({ length: 40 }, (_, index) => `KEY-${index}`);
    using stage = await startSyncStage([...keys, 'REFUSED']);
    for (const key of ['REFUSED', ...keys]) await stage.verify(key);
    await stage.time.advance(minute);
    stage.vendor.instead = (what, key) =>
      key === 'REFUSED' && what === 'usage'
        ? { ...notFound, reason: 'unauthorized', status: 403, detail: 'HTTP 403: this license is disabled' }
        : null;
    for (const key of ['REFUSED', ...keys]) {
      for (let use = 0; use < 5; use += 1) await stage.change(key, 'usage');
    }
    await stage.time.advance(60 * minute);
    expect(stage.store.operations.depth()).toMatchObject({ pending: 5, delivered: 200 });
    expect(stage.sync.uplink.status().pausedProducts).toEqual([]);
  });
});

describe('an upstream to which the letter case of a key is all the same', () => {
  it('counts each use once, under whichever spelling it was recorded', async () => {
    using stage = await startSyncStage(['team-key']);
    stage.vendor.spells = (key) => key.toLowerCase();
    await stage.verify('team-key');
    await stage.verify('Team-Key');
    stage.vendor.instead = (what) =>
      what === 'usage' ? { outcome: 'ambiguous', status: 500, detail: 'HTTP 500', retryAfterMs: null } : null;
    await stage.change('team-key', 'usage');
    await stage.time.advance(2 * second);
    stage.vendor.instead = () => null;
    await stage.change('Team-Key', 'usage');
    await stage.time.advance(5 * minute);
    expect(stage.vendor.licenses.get('team-key')?.uses).toBe(2);
    expect(stage.store.operations.depth()).toMatchObject({ delivered: 2 });
  });
});

describe('a request that is repeated under its idempotency key', () => {
  it('has the same answer, also when it is willing to wait this time', async () => {
    using stage = await startSyncStage(['KEY']);
    await stage.verify('KEY');
    const first = await stage.change('KEY', 'usage', { idempotencyKey: 'k' });
    for (let more = 0; more < 3; more += 1) await stage.change('KEY', 'usage');
    await stage.time.advance(minute);
    const second_ = await stage.change('KEY', 'usage', { idempotencyKey: 'k', waitMs: second });
    const third = await stage.change('KEY', 'usage', { idempotencyKey: 'k' });
    const uses = [first, second_, third].map((answer) => answer.ok && answer.value.license.uses);
    expect(uses).toEqual([1, 1, 1]);
  });
});
