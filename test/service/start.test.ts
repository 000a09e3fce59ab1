import { describe, expect, it } from 'vitest';
import { mirroredSince } from '../../src/service/agent/mirror.ts';
import { storedTime } from '../../src/service/lifecycle/time-mark.ts';
import { isEssential } from '../../src/service/writer.ts';
import { logKey, type StartAgent, roleOf } from '../../src/service/lifecycle/start.ts';
import {
  day,
  createAgent,
  hour,
  minute,
  no,
  AgentHarness,
  Harness,
  valueOf,
} from '../support/harness/service-harness.ts';
import { buildCoupon } from '../support/builders/coupon-builders.ts';

function start(harness: Harness, changes: Partial<StartAgent> = {}) {
  const command = { adminTokenDigest: 'd', place: 'here', reconcileAfterMs: minute, ...changes };
  return harness.writer.write('startAgent', command);
}

/** Restarts the process with these changes. */
async function restart(harness: Harness, changes: Partial<StartAgent> = {}) {
  harness.reopen();
  return valueOf(await start(harness, changes));
}

/** An agent with a delivered use, one in flight, and one behind it. */
async function createBusyAgent(): Promise<{ agent: AgentHarness; ids: string[] }> {
  const agent = await createAgent({ uses: 5 });
  const delivered = await agent.record('usage');
  await agent.answer(await agent.send('counter'), agent.says(6));
  const flying = await agent.record('usage');
  await agent.send('counter');
  const waiting = await agent.record('usage');
  return { agent, ids: [delivered, flying, waiting] };
}

describe('a store that is started in the same place', () => {
  it('a store that is started in the same place keeps its instance and its unsent operations', async () => {
    const { agent, ids } = await createBusyAgent();
    await using _ = agent;
    const { instance } = await restart(agent);
    expect(instance).toBe(agent.store.settings.get('instance'));
    expect(await restart(agent)).toEqual({ instance });
    expect(ids.map((id) => agent.stateOf(id))).toEqual(['delivered', 'uncertain', 'pending']);
  });

  it('a store without a stored place, from the first versions, keeps its instance', async () => {
    await using harness = new Harness();
    harness.store.settings.set('instance', 'kept');
    expect(valueOf(await start(harness))).toEqual({ instance: 'kept' });
  });

  it('a store accepts the admin token of its file, and no earlier one', async () => {
    await using harness = new Harness();
    await start(harness);
    await restart(harness);
    expect(harness.store.tokens.byDigest('d')).toMatchObject({ scopes: ['admin'], createdAt: harness.now });
    harness.pass(hour);
    await restart(harness);
    expect(harness.store.tokens.byDigest('d')).toMatchObject({ createdAt: harness.now - hour });
    await restart(harness, { adminTokenDigest: 'e' });
    expect(harness.store.tokens.byDigest('e')).toMatchObject({ scopes: ['admin'] });
    expect(harness.store.tokens.byDigest('d')).toBeNull();
  });

  it('a store accepts only the API key of the first start', async () => {
    await using harness = new Harness();
    for (const apiKeyDigest of ['first', 'second']) {
      const command = { adminTokenDigest: 'd', place: 'here', apiKeyDigest };
      valueOf(await harness.writer.write('startAuthority', command));
    }
    expect(harness.store.accounts.byKeyDigest('first')).toMatchObject({ accountId: 'default' });
    expect(harness.store.accounts.byKeyDigest('second')).toBeNull();
  });

  it('a store hashes license keys in its log with its own secret, and keeps the secret', async () => {
    await using harness = new Harness();
    await expect(logKey(harness.store)).rejects.toThrow('was never started');
    await start(harness);
    const secret = await logKey(harness.store);
    expect(secret).toMatch(/^lk_log_[0-9a-f]{64}$/);
    await restart(harness);
    expect(await logKey(harness.store)).toBe(secret);
  });
});

describe('an authority that is started without an API key', () => {
  it('an authority that is started without an API key has no account, but is an authority', async () => {
    await using harness = new Harness();
    const command = { adminTokenDigest: 'd', place: 'here', apiKeyDigest: null };
    const { instance } = valueOf(await harness.writer.write('startAuthority', command));
    expect(harness.store.settings.get('instance')).toBe(instance);
    expect(harness.store.accounts.get('default')).toBeNull();
    expect(roleOf(harness.store)).toBe('authority');
  });
});

describe('a store that is started in another place', () => {
  it('a store that is started in another place is another instance, in which no unfinished operation is certain', async () => {
    const { agent, ids } = await createBusyAgent();
    await using _ = agent;
    const instance = agent.store.settings.get('instance');
    const copy = await restart(agent, { place: 'elsewhere' });
    expect(copy.instance).not.toBe(instance);
    expect(agent.store.settings.get('instance')).toBe(copy.instance);
    expect(ids.map((id) => agent.stateOf(id))).toEqual(['delivered', 'uncertain', 'uncertain']);
  });

  it('a store that is started in another place makes its operations uncertain only once', async () => {
    const { agent } = await createBusyAgent();
    await using _ = agent;
    const copy = await restart(agent, { place: 'elsewhere' });
    expect((await restart(agent, { place: 'elsewhere' })).instance).toBe(copy.instance);
  });
});

describe('a store that was restored', () => {
  it('a restored store is another instance, in which no unfinished operation is certain', async () => {
    const { agent, ids } = await createBusyAgent();
    await using _ = agent;
    const before = agent.store.settings.get('instance');
    const restored = valueOf(await agent.writer.write('restore', {}));
    expect(restored.instance).not.toBe(before);
    expect(restored.unfinished).toBe(2);
    expect(agent.store.audit.list({}, { limit: 10, offset: 0 })).toMatchObject([
      { actor: 'latchkey', act: 'store.restore', subject: restored.instance },
    ]);
    expect(ids.map((id) => agent.stateOf(id))).toEqual(['delivered', 'uncertain', 'uncertain']);
  });

  it('a store that was restored in place keeps the instance that the restore created', async () => {
    const { agent } = await createBusyAgent();
    await using _ = agent;
    const restored = valueOf(await agent.writer.write('restore', {}));
    expect((await restart(agent)).instance).toBe(restored.instance);
  });
});

describe('the stored time', () => {
  it('the stored time is the latest mark; a time from the upstream replaces an unconfirmed time', async () => {
    await using harness = new Harness();
    expect(await storedTime(harness.store)).toBeNull();
    const claimed = (at: number) => ({ at, isConfirmed: false });
    const confirmed = (at: number) => ({ at, isConfirmed: true });
    for (const [mark, expected] of [
      [claimed(5000), claimed(5000)],
      [claimed(4000), claimed(5000)],
      [confirmed(2000), confirmed(2000)],
      [confirmed(1000), confirmed(2000)],
      [confirmed(3000), confirmed(3000)],
      [claimed(2500), confirmed(3000)],
      [claimed(4000), claimed(4000)],
    ] as const) {
      await harness.writer.write('markTime', { mark });
      expect(await storedTime(harness.store)).toMatchObject(expected);
    }
  });

  it('the stored time is the date of the last response, to the minute, not the time of a clock that has jumped since', async () => {
    await using agent = await createAgent();
    const remembers = async (passed: number): Promise<boolean> => {
      agent.pass(passed);
      await agent.read(agent.says(5));
      const historyEntry = await storedTime(agent.store);
      expect(historyEntry?.isConfirmed).toBe(true);
      return historyEntry?.at === agent.now;
    };
    expect(await remembers(0)).toBe(true);
    expect(await remembers(minute)).toBe(false);
    expect(await remembers(1)).toBe(true);
    expect(await remembers(31 * day)).toBe(true);
    const dated = agent.says(5);
    agent.pass(day);
    await agent.read(dated);
    expect((await storedTime(agent.store))?.at).toBe(dated.confirmedAt);
  });

  it('a response confirms the stored time, and an older response does not set it back', async () => {
    await using agent = new AgentHarness();
    await agent.start();
    const at = agent.now;
    await agent.writer.write('markTime', { mark: { at, isConfirmed: false } });
    await agent.read({ ...agent.says(5), confirmedAt: at - day });
    expect(await storedTime(agent.store)).toMatchObject({ at, isConfirmed: true });
  });

  it('after the time went back, what was dated by it is dated earlier, and each age stays', async () => {
    await using agent = await createAgent({ uses: 5 });
    const { confirmedAt } = agent.snapshot;
    const coupon = buildCoupon();
    agent.pass(day);
    await agent.writer.write('mirrorCoupons', {
      coupons: [coupon],
      confirmedAt: agent.now,
      extent: 'list',
    });
    const mark = { at: confirmedAt, isConfirmed: true, claimedMs: 0, undatedMs: 0 };
    await agent.writer.write('correctDates', { mark, shifts: [{ after: confirmedAt, byMs: day }] });
    const dates = (): unknown[] => [
      agent.snapshot.confirmedAt,
      agent.store.mirror.byCode('SPRING')?.confirmedAt,
      mirroredSince(agent.store),
    ];
    expect(dates()).toEqual([confirmedAt, confirmedAt, confirmedAt]);
    expect(await storedTime(agent.store)).toEqual(mark);
    await agent.writer.write('correctDates', { mark, shifts: [{ after: null, byMs: day }] });
    expect(dates()).toEqual(Array.from({ length: 3 }, () => confirmedAt - day));
    // The time was behind: what is dated by the new time already stays.
    const shifts = [{ after: confirmedAt - day - 1, until: confirmedAt - day, byMs: -2 * day }];
    await agent.writer.write('correctDates', { mark, shifts });
    await agent.writer.write('correctDates', { mark, shifts });
    expect(dates()).toEqual(Array.from({ length: 3 }, () => confirmedAt + day));
  });

  it('an answer that is stored after the time went back is not dated in the future', async () => {
    await using agent = await createAgent({ uses: 5 });
    agent.pass(2 * hour);
    await agent.record('usage');
    const sent = await agent.send('counter');
    const [change, read, list] = [
      agent.says(6),
      agent.says(6),
      { coupons: [buildCoupon()], extent: 'list' as const },
    ];
    const before = agent.now;
    agent.now -= hour;
    await agent.answer(sent, change);
    expect(agent.snapshot.confirmedAt).toBe(agent.now);
    agent.now += minute;
    await agent.read(read);
    expect(agent.snapshot.confirmedAt).toBe(agent.now);
    await agent.writer.write('mirrorCoupons', { ...list, confirmedAt: before });
    expect([agent.store.mirror.byCode('SPRING')?.confirmedAt, mirroredSince(agent.store)]).toEqual([
      agent.now,
      agent.now,
    ]);
    expect((await storedTime(agent.store))?.at).toBeLessThanOrEqual(agent.now);
  });

  it.each([
    ['an hour after it was last marked', { up: 2 * hour, isMarked: true, byMs: hour }],
    ['an hour before it was last marked', { up: 2 * hour, isMarked: true, byMs: -hour }],
    ['a day before the last start', { up: 0, isMarked: false, byMs: -day }],
  ])('waits stay as they were if the next start is %s, by its clock', async (_, { up, isMarked, byMs }) => {
    await using agent = await createAgent();
    agent.pass(up);
    await agent.read(agent.says(5));
    await agent.record('usage');
    await agent.answer(await agent.send('counter'), no('throttled', 5 * hour));
    const { refreshAt } = agent.snapshot;
    const refreshIn = Number(refreshAt) - agent.monotonic;
    if (isMarked) await agent.writer.write('markTime', { mark: { at: agent.now, isConfirmed: true } });
    agent.monotonic += byMs;
    agent.now += byMs;
    await restart(agent);
    const passed = Math.max(0, byMs);
    expect(agent.dueIn('counter')).toBe(5 * hour - passed);
    expect(Number(agent.snapshot.refreshAt) - agent.monotonic).toBe(refreshIn - passed);
  });
});

describe('a full disk', () => {
  it('background loops can store their results while the disk is full', () => {
    const learnt = ['recordResponse', 'recordRead', 'recordCouponResponse', 'recordCouponListing'] as const;
    const kept = ['storeRetryAfter', 'storeFinalResponse', 'bindUpstream', 'markTime', 'planStep'] as const;
    const other = ['startAuthority', 'startAgent', 'pruneIdempotency', 'pruneOperations'] as const;
    const all = [...learnt, ...kept, ...other, 'postpone', 'endOutage'] as const;
    expect(all.filter((name) => !isEssential(name))).toEqual([]);
  });

  it('changes of callers are refused while the disk is full', () => {
    const asked = ['queueChange', 'queueCoupon', 'changeLicense', 'createCoupon', 'addPurchase'] as const;
    expect([...asked, 'issueToken' as const, 'touchSnapshot' as const].filter(isEssential)).toEqual([]);
  });
});
