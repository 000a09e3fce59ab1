import { describe, expect, it } from 'vitest';
import { rememberedTime } from '../../src/service/lifecycle/clock-mark.ts';
import { isEssential } from '../../src/service/lifecycle/full-disk.ts';
import { logKey, type StartAgent } from '../../src/service/lifecycle/start.ts';
import { roleOf } from '../../src/service/lifecycle/role.ts';
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

function start(harness: Harness, changes: Partial<StartAgent> = {}) {
  const command = { adminTokenDigest: 'd', place: 'here', reconcileAfterMs: minute, ...changes };
  return harness.writer.write('startAgent', command);
}

/** The process ends, and starts again with these changes. */
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

describe('a store that is started where it was left', () => {
  it('is the same one, and keeps what was not sent', async () => {
    const { agent, ids } = await createBusyAgent();
    await using _ = agent;
    const { instance } = await restart(agent);
    expect(instance).toBe(agent.store.settings.get('instance'));
    expect(await restart(agent)).toEqual({ instance });
    expect(ids.map((id) => agent.stateOf(id))).toEqual(['delivered', 'uncertain', 'pending']);
  });

  it('is the same one where it does not remember its place, as stores of the first versions', async () => {
    await using harness = new Harness();
    harness.store.settings.set('instance', 'kept');
    expect(valueOf(await start(harness))).toEqual({ instance: 'kept' });
  });

  it('takes the admin token of its file, and no earlier one', async () => {
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

  it('takes the API key of the first start alone', async () => {
    await using harness = new Harness();
    for (const apiKeyDigest of ['first', 'second']) {
      const command = { adminTokenDigest: 'd', place: 'here', apiKeyDigest };
      valueOf(await harness.writer.write('startAuthority', command));
    }
    expect(harness.store.accounts.byKeyDigest('first')).toMatchObject({ accountId: 'default' });
    expect(harness.store.accounts.byKeyDigest('second')).toBeNull();
  });

  it('names license keys in its log under a secret of its own, which it keeps', async () => {
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
  it('has no account, and is an authority all the same', async () => {
    await using harness = new Harness();
    const command = { adminTokenDigest: 'd', place: 'here', apiKeyDigest: null };
    const { instance } = valueOf(await harness.writer.write('startAuthority', command));
    expect(harness.store.settings.get('instance')).toBe(instance);
    expect(harness.store.accounts.get('default')).toBeNull();
    expect(roleOf(harness.store)).toBe('authority');
  });
});

describe('a store that is found elsewhere than it was left', () => {
  it('is another one, in which nothing unfinished is certain', async () => {
    const { agent, ids } = await createBusyAgent();
    await using _ = agent;
    const instance = agent.store.settings.get('instance');
    const copy = await restart(agent, { place: 'elsewhere' });
    expect(copy.instance).not.toBe(instance);
    expect(agent.store.settings.get('instance')).toBe(copy.instance);
    expect(ids.map((id) => agent.stateOf(id))).toEqual(['delivered', 'uncertain', 'uncertain']);
  });

  it('doubts once: it is at home there from then on', async () => {
    const { agent } = await createBusyAgent();
    await using _ = agent;
    const copy = await restart(agent, { place: 'elsewhere' });
    expect((await restart(agent, { place: 'elsewhere' })).instance).toBe(copy.instance);
  });
});

describe('a store that was restored', () => {
  it('is another one, in which nothing unfinished is certain', async () => {
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

  it('in place stays the one that the restoring made', async () => {
    const { agent } = await createBusyAgent();
    await using _ = agent;
    const restored = valueOf(await agent.writer.write('restore', {}));
    expect((await restart(agent)).instance).toBe(restored.instance);
  });
});

describe('the time that a store remembers', () => {
  it('is the latest that was marked; one that the upstream confirms goes before what the machine claimed', async () => {
    await using harness = new Harness();
    expect(await rememberedTime(harness.store)).toBeNull();
    const claimed = (at: number) => ({ at, isConfirmed: false });
    const confirmed = (at: number) => ({ at, isConfirmed: true });
    for (const [mark, remembered] of [
      [claimed(5000), claimed(5000)],
      [claimed(4000), claimed(5000)],
      [confirmed(2000), confirmed(2000)],
      [confirmed(1000), confirmed(2000)],
      [confirmed(3000), confirmed(3000)],
      [claimed(2500), confirmed(3000)],
      [claimed(4000), claimed(4000)],
    ] as const) {
      await harness.writer.write('markTime', { mark });
      expect(await rememberedTime(harness.store)).toEqual(remembered);
    }
  });

  it('is the date of the last answer, to the minute, and not the time of a clock that has jumped since', async () => {
    await using agent = await createAgent();
    const remembers = async (passed: number): Promise<boolean> => {
      agent.pass(passed);
      await agent.read(agent.says(5));
      const remembered = await rememberedTime(agent.store);
      expect(remembered?.isConfirmed).toBe(true);
      return remembered?.at === agent.now;
    };
    expect(await remembers(0)).toBe(true);
    expect(await remembers(minute)).toBe(false);
    expect(await remembers(1)).toBe(true);
    expect(await remembers(31 * day)).toBe(true);
    const dated = agent.says(5);
    agent.pass(day);
    await agent.read(dated);
    expect((await rememberedTime(agent.store))?.at).toBe(dated.confirmedAt);
  });

  it('is taken back by an answer where the machine alone had claimed it', async () => {
    await using agent = new AgentHarness();
    await agent.start();
    await agent.writer.write('markTime', { mark: { at: agent.now + day, isConfirmed: false } });
    await agent.read(agent.says(5));
    expect(await rememberedTime(agent.store)).toEqual({ at: agent.now, isConfirmed: true });
  });

  it.each([
    ['an hour after it was last marked', { up: 2 * hour, isMarked: true, byMs: hour }],
    ['an hour before it was last marked', { up: 2 * hour, isMarked: true, byMs: -hour }],
    ['a day before the last start', { up: 0, isMarked: false, byMs: -day }],
  ])(
    'keeps waits as they were when the next start is %s, by its clock',
    async (_, { up, isMarked, byMs }) => {
      await using agent = await createAgent();
      agent.pass(up);
      await agent.read(agent.says(5));
      await agent.record('usage');
      await agent.answer(await agent.send('counter'), no('throttled', 5 * hour));
      const { refreshAt } = agent.snapshot;
      const refreshIn = Number(refreshAt) - agent.elapsed;
      if (isMarked) await agent.writer.write('markTime', { mark: { at: agent.now, isConfirmed: true } });
      agent.elapsed += byMs;
      agent.now += byMs;
      await restart(agent);
      const passed = Math.max(0, byMs);
      expect(agent.dueIn('counter')).toBe(5 * hour - passed);
      expect(Number(agent.snapshot.refreshAt) - agent.elapsed).toBe(refreshIn - passed);
    },
  );
});

describe('while the disk is full', () => {
  it('what the loops have learnt is written down', () => {
    const learnt = ['recordResponse', 'recordRead', 'recordCouponResponse', 'recordCouponListing'] as const;
    const kept = ['keepRetryAfter', 'keepResponse', 'bindUpstream', 'markTime', 'planStep'] as const;
    const other = ['startAuthority', 'startAgent', 'pruneIdempotency', 'pruneOperations'] as const;
    const all = [...learnt, ...kept, ...other, 'postpone', 'endOutage'] as const;
    expect(all.filter((name) => !isEssential(name))).toEqual([]);
  });

  it('no change that a caller asks for is taken', () => {
    const asked = ['queueChange', 'queueCoupon', 'changeLicense', 'createCoupon', 'addPurchase'] as const;
    expect([...asked, 'issueToken' as const, 'touchSnapshot' as const].filter(isEssential)).toEqual([]);
  });
});
