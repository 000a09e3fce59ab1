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
  it('a disable takes effect at once, and is sent without a read', async () => {
    await using agent = await createAgent();
    const disable = await agent.record('disable');
    expect(agent.local).toEqual({ uses: 5, enabled: false, pending: 1 });
    await agent.answer(await agent.send('state'), agent.says(5, off));
    expect(agent.stateOf(disable)).toBe('delivered');
    expect(agent.local).toEqual({ uses: 5, enabled: false, pending: 0 });
  });

  it('a disable is repeated after a lost response, and delivered by the first successful response', async () => {
    await using agent = await createAgent();
    const disable = await agent.record('disable');
    await agent.answer(await agent.send('state'), lost);
    expect(agent.operation(disable).progress).toEqual({
      state: 'pending',
      maybeApplied: true,
      unanswered: false,
    });
    expect(agent.dueIn('state')).toBe(500);
    agent.pass(500);
    const sent = await agent.send('state');
    expect(sent).toMatchObject({ id: disable, attempts: 2 });
    await agent.answer(sent, agent.says(5, off));
    expect(agent.stateOf(disable)).toBe('delivered');
  });

  /** An agent whose disable lost its response and was refused when it was sent again. */
  async function createHeld(): Promise<{ agent: AgentHarness; held: string }> {
    const agent = await createAgent();
    const held = await agent.record('disable');
    await agent.answer(await agent.send('state'), lost);
    agent.pass(minute);
    await agent.answer(await agent.send('state'), no('refused'));
    return { agent, held };
  }

  it('a disable that lost a response and is then refused is held, not dead, because it may have been applied', async () => {
    const { agent, held } = await createHeld();
    await using _ = agent;
    expect(agent.stateOf(held)).toBe('held');
    expect(agent.operation(held).lastError).toMatch(/may have been applied/);
    expect(agent.local).toMatchObject({ enabled: false });
  });

  it('a disable in flight at a restart that is refused later is held', async () => {
    await using agent = await createAgent();
    const disable = await agent.record('disable');
    await agent.send('state');
    await agent.restart();
    await agent.answer(await agent.send('state'), no('refused'));
    expect(agent.stateOf(disable)).toBe('held');
  });

  it('a held disable is queued again when a caller requests it again', async () => {
    const { agent, held } = await createHeld();
    await using _ = agent;
    const again = await agent.record('disable');
    expect(again).not.toBe(held);
    expect(await agent.send('state')).toMatchObject({ id: again });
  });

  it('a held disable ends inferred when a later enable is delivered, and no longer disables the key', async () => {
    const { agent, held } = await createHeld();
    await using _ = agent;
    await agent.record('enable');
    await agent.read(agent.says(5));
    expect(agent.stateOf(held)).toBe('inferred');
    expect(agent.local).toEqual({ uses: 5, enabled: true, pending: 0 });
  });

  it('a disable that is requested again while it is queued adds nothing', async () => {
    await using agent = await createAgent();
    const disable = await agent.record('disable');
    expect(await agent.record('disable')).toBe(disable);
    await agent.send('state');
    expect(await agent.record('disable')).toBe(disable);
    expect(agent.local.pending).toBe(1);
  });

  it('a disable that the upstream refuses still holds here', async () => {
    await using agent = await createAgent();
    const disable = await agent.record('disable');
    await agent.answer(await agent.send('state'), no('refused'));
    expect(agent.stateOf(disable)).toBe('dead');
    await agent.read(agent.says(5));
    expect(agent.local).toEqual({ uses: 5, enabled: false, pending: 0 });
  });

  it('a disable in flight at a restart is sent again at once', async () => {
    await using agent = await createAgent();
    const disable = await agent.record('disable');
    await agent.send('state');
    await agent.restart();
    expect(await agent.send('state')).toMatchObject({ id: disable, attempts: 2 });
    expect(agent.local.enabled).toBe(false);
  });

  it('a refused disable holds the key only until a later enable is delivered', async () => {
    await using agent = await createAgent();
    const disable = await agent.record('disable');
    await agent.answer(await agent.send('state'), no('refused'));
    expect(agent.local.enabled).toBe(false);
    await agent.record('enable');
    await agent.read(agent.says(5));
    expect(agent.stateOf(disable)).toBe('cancelled');
    expect(agent.local.enabled).toBe(true);
  });

  it('a disable does not wait for an uncertain count of the same key', async () => {
    await using agent = await createAgent();
    await agent.record('usage');
    await agent.answer(await agent.send('counter'), lost);
    const disable = await agent.record('disable');
    expect(await agent.send('state')).toMatchObject({ id: disable });
  });

  it('a disable and a use under way do not change what the other queue knows', async () => {
    await using agent = await createAgent({ uses: 5 });
    await agent.record('usage');
    await agent.record('disable');
    const use = await agent.send('counter');
    const disable = await agent.send('state');
    // The upstream disabled first, and the response to the use shows the key as disabled.
    await agent.answer(disable, agent.says(5, off), { overlapped: true });
    await agent.answer(use, agent.says(6, { enabled: true }), { overlapped: true });
    expect(agent.snapshot.license).toMatchObject({ uses: 6, enabled: false });
    expect(agent.local).toEqual({ uses: 6, enabled: false, pending: 0 });
  });

  it('a disable that the response to a use shows stays in force when a person drops it, until a read shows otherwise', async () => {
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

  it('a disable stays in force through any outage and restart, until the upstream says otherwise', async () => {
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
  it('an enable cancels itself and an earlier disable that was never sent', async () => {
    await using agent = await createAgent();
    const disable = await agent.record('disable');
    const { operationId, snapshot } = valueOf(await agent.change('enable'));
    expect(operationId).toBeNull();
    expect(snapshot.local).toEqual({ uses: 5, enabled: true, pending: 0 });
    expect(agent.stateOf(disable)).toBe('cancelled');
    expect(agent.store.operations.depth()).toMatchObject({ cancelled: 2, pending: 0 });
    expect(agent.store.operations.head('KEY-1', 'state')).toBeNull();
  });

  it('an enable is queued behind a disable that was sent, lost or not', async () => {
    for (const outcome of [lost, no('unreachable'), no('throttled')]) {
      await using agent = await createAgent();
      const disable = await agent.record('disable');
      await agent.answer(await agent.send('state'), outcome);
      const enable = await agent.record('enable');
      expect([agent.stateOf(disable), agent.stateOf(enable)]).toEqual(['pending', 'pending']);
      expect(agent.local).toEqual({ uses: 5, enabled: false, pending: 2 });
    }
  });

  it('an enable is queued behind a disable of a key that is disabled at the upstream', async () => {
    await using agent = await createAgent({ enabled: false });
    const disable = await agent.record('disable');
    const enable = await agent.record('enable');
    expect([agent.stateOf(disable), agent.stateOf(enable)]).toEqual(['pending', 'pending']);
  });

  it('an enable is never visible while it waits, is in flight or is uncertain', async () => {
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

  it('an enable reads the key first, and is sent only if the key is disabled', async () => {
    await using agent = await createAgent({ enabled: false });
    const enable = await agent.record('enable');
    expect(await agent.plan('state')).toEqual({ step: 'read' });
    await agent.read(agent.says(5, off));
    expect(await agent.send('state', { justRead: true })).toMatchObject({ id: enable });
  });

  it('an enable is delivered without sending if the key is already enabled', async () => {
    await using agent = await createAgent({ enabled: false });
    const enable = await agent.record('enable');
    await agent.read(agent.says(5));
    expect(agent.operation(enable)).toMatchObject({ attempts: 0, progress: { state: 'delivered' } });
    expect(agent.local).toEqual({ uses: 5, enabled: true, pending: 0 });
  });

  it('an uncertain enable is reconciled by a read after the reconcile delay, and does not override a disable that may be newer', async () => {
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

  it('an enable of a key that shows enabled sends nothing', async () => {
    await using agent = await createAgent();
    expect(valueOf(await agent.change('enable')).operationId).toBeNull();
    expect(agent.store.operations.oldestAt()).toBeNull();
  });

  it('an enable that is requested again while it waits adds nothing', async () => {
    await using agent = await createAgent({ enabled: false });
    const enable = await agent.record('enable');
    expect(await agent.record('enable')).toBe(enable);
  });

  it('an enable of a key that was seen disabled too long ago is refused', async () => {
    await using agent = await createAgent({ enabled: false });
    agent.pass(15 * 24 * hour);
    expect(refusalOf(await agent.change('enable'))).toBe('verdict_expired');
    expect(refusalOf(await agent.change('disable'))).toBeNull();
  });

  it('an enable is not reconciled by a read while an earlier disable may still arrive', async () => {
    await using agent = await createAgent();
    await agent.record('disable');
    await agent.answer(await agent.send('state'), lost);
    agent.pass(second);
    await agent.answer(await agent.send('state'), agent.says(5, off));
    const enable = await agent.record('enable');
    await agent.read(agent.says(5));
    expect(agent.stateOf(enable)).toBe('pending');
  });

  it('an enable is queued behind a restored disable that may have been sent', async () => {
    await using agent = await createAgent();
    const disable = await agent.record('disable');
    valueOf(await agent.writer.write('restore', {}));
    await agent.restart();
    const enable = await agent.record('enable');
    expect([agent.stateOf(disable), agent.stateOf(enable)]).toEqual(['uncertain', 'pending']);
  });

  it('a use does not cancel an enable that waits behind a disable', async () => {
    await using agent = await createAgent({ enabled: false });
    await agent.record('disable');
    await agent.record('enable');
    await agent.read(agent.says(5));
    const use = await agent.record('usage');
    expect(agent.stateOf(use)).toBe('pending');
  });

  it('an enable does not cancel the first of several changes that others follow', async () => {
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

  it('an enable waits until no attempt of an earlier disable can arrive', async () => {
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
