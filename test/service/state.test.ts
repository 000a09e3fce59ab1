import { describe, expect, it } from 'vitest';
import {
  createAgent,
  hour,
  lost,
  minute,
  no,
  refusalOf,
  second,
  valueOf,
  type AgentHarness,
} from '../support/harness/service-harness.ts';

const off = { enabled: false };

describe('a disable on an agent', () => {
  it('takes effect at once, and is sent without a read', async () => {
    await using agent = await createAgent();
    const disable = await agent.record('disable');
    expect(agent.local).toEqual({ uses: 5, enabled: false, pending: 1 });
    await agent.answer(await agent.send('state'), agent.says(5, off));
    expect(agent.stateOf(disable)).toBe('delivered');
    expect(agent.local).toEqual({ uses: 5, enabled: false, pending: 0 });
  });

  it('is repeated freely after a lost answer, and delivered by the first clean one', async () => {
    await using agent = await createAgent();
    const disable = await agent.record('disable');
    await agent.answer(await agent.send('state'), lost);
    expect(agent.operation(disable).progress).toEqual({ state: 'pending', maybeApplied: true });
    expect(agent.dueIn('state')).toBe(500);
    agent.pass(500);
    const sent = await agent.send('state');
    expect(sent).toMatchObject({ id: disable, attempts: 2 });
    await agent.answer(sent, agent.says(5, off));
    expect(agent.stateOf(disable)).toBe('delivered');
  });

  /** An agent whose disable lost its answer, and was refused when it was sent again. */
  async function createHeld(): Promise<{ agent: AgentHarness; held: string }> {
    const agent = await createAgent();
    const held = await agent.record('disable');
    await agent.answer(await agent.send('state'), lost);
    agent.pass(minute);
    await agent.answer(await agent.send('state'), no('refused'));
    return { agent, held };
  }

  it('that lost an answer and is refused then is held, not dead: it may have been applied', async () => {
    const { agent, held } = await createHeld();
    await using _ = agent;
    expect(agent.stateOf(held)).toBe('held');
    expect(agent.operation(held).lastError).toMatch(/may have been applied/);
    expect(agent.local).toMatchObject({ enabled: false });
  });

  it('in flight when the process ended and refused after the start is held', async () => {
    await using agent = await createAgent();
    const disable = await agent.record('disable');
    await agent.send('state');
    await agent.restart();
    await agent.answer(await agent.send('state'), no('refused'));
    expect(agent.stateOf(disable)).toBe('held');
  });

  it('that is held is asked for anew when a caller wants it again', async () => {
    const { agent, held } = await createHeld();
    await using _ = agent;
    const again = await agent.record('disable');
    expect(again).not.toBe(held);
    expect(await agent.send('state')).toMatchObject({ id: again });
  });

  it('that is held ends inferred when a later enable is delivered, and holds the key no longer', async () => {
    const { agent, held } = await createHeld();
    await using _ = agent;
    await agent.record('enable');
    await agent.read(agent.says(5));
    expect(agent.stateOf(held)).toBe('inferred');
    expect(agent.local).toEqual({ uses: 5, enabled: true, pending: 0 });
  });

  it('asked for again while it is on its way adds nothing', async () => {
    await using agent = await createAgent();
    const disable = await agent.record('disable');
    expect(await agent.record('disable')).toBe(disable);
    await agent.send('state');
    expect(await agent.record('disable')).toBe(disable);
    expect(agent.local.pending).toBe(1);
  });

  it('that the upstream refuses still holds here', async () => {
    await using agent = await createAgent();
    const disable = await agent.record('disable');
    await agent.answer(await agent.send('state'), no('refused'));
    expect(agent.stateOf(disable)).toBe('dead');
    await agent.read(agent.says(5));
    expect(agent.local).toEqual({ uses: 5, enabled: false, pending: 0 });
  });

  it('in flight when the process ended is sent again at once', async () => {
    await using agent = await createAgent();
    const disable = await agent.record('disable');
    await agent.send('state');
    await agent.restart();
    expect(await agent.send('state')).toMatchObject({ id: disable, attempts: 2 });
    expect(agent.local.enabled).toBe(false);
  });

  it('that was refused holds the key no longer than until a later enable is delivered', async () => {
    await using agent = await createAgent();
    const disable = await agent.record('disable');
    await agent.answer(await agent.send('state'), no('refused'));
    expect(agent.local.enabled).toBe(false);
    await agent.record('enable');
    await agent.read(agent.says(5));
    expect(agent.stateOf(disable)).toBe('cancelled');
    expect(agent.local.enabled).toBe(true);
  });

  it('does not wait for a uncertain count of the same key', async () => {
    await using agent = await createAgent();
    await agent.record('usage');
    await agent.answer(await agent.send('counter'), lost);
    const disable = await agent.record('disable');
    expect(await agent.send('state')).toMatchObject({ id: disable });
  });

  it('beside a use under way leaves what each queue knows to itself', async () => {
    await using agent = await createAgent({ uses: 5 });
    await agent.record('usage');
    await agent.record('disable');
    const use = await agent.send('counter');
    const disable = await agent.send('state');
    // The upstream disabled first: the answer to the use knows of it, and may have been made before it.
    await agent.answer(disable, agent.says(5, off), { overlapped: true });
    await agent.answer(use, agent.says(6, { enabled: true }), { overlapped: true });
    expect(agent.snapshot.license).toMatchObject({ uses: 6, enabled: false });
    expect(agent.local).toEqual({ uses: 6, enabled: false, pending: 0 });
  });

  it('that the answer to a use beside it shows holds also when a person gives it up, until a read says otherwise', async () => {
    await using agent = await createAgent({ uses: 5 });
    await agent.record('usage');
    const operationId = await agent.record('disable');
    const use = await agent.send('counter');
    const disable = await agent.send('state');
    await agent.answer(use, agent.says(6, off), { overlapped: true });
    await agent.answer(disable, lost, { overlapped: true });
    await agent.writer.write('decideOperation', { operationId, decision: 'drop' });
    expect(agent.local.enabled).toBe(false);
    expect(agent.snapshot.refreshAt).toBeLessThanOrEqual(agent.now);
    await agent.read(agent.says(6));
    expect(agent.local.enabled).toBe(true);
  });

  it('sticks through any outage and restart, until the upstream says otherwise', async () => {
    await using agent = await createAgent({ enabled: false });
    agent.pass(20 * 24 * hour);
    await agent.read(no('unreachable'));
    await agent.restart();
    await agent.read(lost);
    expect(agent.local.enabled).toBe(false);
    await agent.read(agent.says(5));
    expect(agent.local.enabled).toBe(true);
  });
});

describe('an enable on an agent', () => {
  it('that undoes a disable of which no attempt was made cancels both', async () => {
    await using agent = await createAgent();
    const disable = await agent.record('disable');
    const { operationId, snapshot } = valueOf(await agent.change('enable'));
    expect(operationId).toBeNull();
    expect(snapshot.local).toEqual({ uses: 5, enabled: true, pending: 0 });
    expect(agent.stateOf(disable)).toBe('cancelled');
    expect(agent.store.operations.depth()).toMatchObject({ cancelled: 2, pending: 0 });
    expect(agent.store.operations.head('KEY-1', 'state')).toBeNull();
  });

  it('goes behind a disable that was attempted, lost or not', async () => {
    for (const outcome of [lost, no('unreachable'), no('throttled')]) {
      await using agent = await createAgent();
      const disable = await agent.record('disable');
      await agent.answer(await agent.send('state'), outcome);
      const enable = await agent.record('enable');
      expect([agent.stateOf(disable), agent.stateOf(enable)]).toEqual(['pending', 'pending']);
      expect(agent.local).toEqual({ uses: 5, enabled: false, pending: 2 });
    }
  });

  it('goes behind a disable of a key that the upstream says is disabled', async () => {
    await using agent = await createAgent({ enabled: false });
    const disable = await agent.record('disable');
    const enable = await agent.record('enable');
    expect([agent.stateOf(disable), agent.stateOf(enable)]).toEqual(['pending', 'pending']);
  });

  it('never shows while it waits, is under way, or is uncertain', async () => {
    await using agent = await createAgent({ enabled: false });
    const enable = await agent.record('enable');
    expect(agent.local).toEqual({ uses: 5, enabled: false, pending: 1 });
    await agent.read(agent.says(5, off));
    const flying = await agent.send('state', { justRead: true });
    expect(agent.local.enabled).toBe(false);
    await agent.answer(flying, lost);
    expect(agent.stateOf(enable)).toBe('uncertain');
    expect(agent.local).toEqual({ uses: 5, enabled: false, pending: 1 });
  });

  it('is read before it is sent, and sent only when the key is disabled', async () => {
    await using agent = await createAgent({ enabled: false });
    const enable = await agent.record('enable');
    expect(await agent.plan('state')).toEqual({ step: 'read' });
    await agent.read(agent.says(5, off));
    expect(await agent.send('state', { justRead: true })).toMatchObject({ id: enable });
  });

  it('is delivered without sending when the key is enabled already', async () => {
    await using agent = await createAgent({ enabled: false });
    const enable = await agent.record('enable');
    await agent.read(agent.says(5));
    expect(agent.operation(enable)).toMatchObject({ attempts: 0, progress: { state: 'delivered' } });
    expect(agent.local).toEqual({ uses: 5, enabled: true, pending: 0 });
  });

  it('uncertain is reconciled by a read after the reconcile delay; it is not repeated over a disable that may be newer', async () => {
    for (const enabled of [false, true]) {
      await using agent = await createAgent({ enabled: false });
      const enable = await agent.record('enable');
      await agent.answer(await agent.send('state', { justRead: true }), lost);
      agent.pass(minute - 1);
      await agent.read(agent.says(5, { enabled }));
      expect(agent.stateOf(enable)).toBe('uncertain');
      agent.pass(1);
      await agent.read(agent.says(5, { enabled }));
      expect(agent.stateOf(enable)).toBe(enabled ? 'delivered' : 'held');
      expect(await agent.plan('state')).toEqual({ step: 'none' });
    }
  });

  it('of a key that shows enabled needs nothing', async () => {
    await using agent = await createAgent();
    expect(valueOf(await agent.change('enable')).operationId).toBeNull();
    expect(agent.store.operations.oldestAt()).toBeNull();
  });

  it('asked for again while it waits adds nothing', async () => {
    await using agent = await createAgent({ enabled: false });
    const enable = await agent.record('enable');
    expect(await agent.record('enable')).toBe(enable);
  });

  it('of a key that was disabled when last seen, too long ago, is refused', async () => {
    await using agent = await createAgent({ enabled: false });
    agent.pass(15 * 24 * hour);
    expect(refusalOf(await agent.change('enable'))).toBe('verdict_expired');
    expect(refusalOf(await agent.change('disable'))).toBeNull();
  });

  it('is not reconciled by a read as long as an attempt of a disable before it can be on its way', async () => {
    await using agent = await createAgent();
    await agent.record('disable');
    await agent.answer(await agent.send('state'), lost);
    agent.pass(second);
    await agent.answer(await agent.send('state'), agent.says(5, off));
    const enable = await agent.record('enable');
    await agent.read(agent.says(5));
    expect(agent.stateOf(enable)).toBe('pending');
  });

  it('goes behind a disable that was restored, and may have been sent', async () => {
    await using agent = await createAgent();
    const disable = await agent.record('disable');
    valueOf(await agent.writer.write('restore', {}));
    await agent.restart();
    const enable = await agent.record('enable');
    expect([agent.stateOf(disable), agent.stateOf(enable)]).toEqual(['uncertain', 'pending']);
  });

  it('that waits behind a disable is not undone by a use', async () => {
    await using agent = await createAgent({ enabled: false });
    await agent.record('disable');
    await agent.record('enable');
    await agent.read(agent.says(5));
    const use = await agent.record('usage');
    expect(agent.stateOf(use)).toBe('pending');
  });

  it('does not undo the first of several changes, which the others follow', async () => {
    await using agent = await createAgent({ enabled: false });
    for (const trigger of ['disable', 'enable'] as const) await agent.record(trigger);
    await agent.read(agent.says(5));
    for (const trigger of ['disable', 'enable'] as const) await agent.record(trigger);
    expect(agent.store.operations.queue('KEY-1', 'state').map(({ kind }) => kind)).toEqual([
      'disable',
      'enable',
      'disable',
      'enable',
    ]);
  });

  it('waits until no attempt of a disable before it can be on its way', async () => {
    await using agent = await createAgent();
    await agent.record('disable');
    await agent.answer(await agent.send('state'), lost);
    agent.pass(second);
    await agent.answer(await agent.send('state'), agent.says(5, off));
    await agent.record('enable');
    expect(await agent.plan('state')).toEqual({ step: 'none' });
    expect(agent.dueIn('state')).toBe(minute - second);
    agent.pass(minute - second);
    expect(await agent.plan('state')).toEqual({ step: 'read' });
  });
});
