import { describe, expect, it } from 'vitest';
import { maxAliases, type License } from '../../src/domain/license.ts';
import type { Applied } from '../../src/domain/outbox/outcome.ts';
import {
  createAgent,
  lost,
  minute,
  productKey,
  valueOf,
  type AgentHarness,
} from '../support/harness/service-harness.ts';

/** Reads a key under another spelling; the response has the upstream's spelling. */
async function readResult(agent: AgentHarness, asked: string, answer: Applied<License>): Promise<void> {
  const { policy, monotonic } = agent;
  const command = {
    licenseKey: asked,
    productId: productKey,
    outcome: answer,
    sentAt: monotonic,
    isMissingConfirmed: true,
    policy,
  };
  valueOf(await agent.writer.write('recordRead', command));
  agent.check();
}

describe('aliases of a license key', () => {
  it('a known key is found under another spelling', async () => {
    await using agent = await createAgent({ uses: 5 });
    await readResult(agent, 'key-1', agent.says(5));
    expect(agent.store.snapshots.get('key-1')?.license.licenseKey).toBe('KEY-1');
  });

  it('a key that was never seen is stored under the upstream’s spelling', async () => {
    await using agent = await createAgent();
    const own = agent.says(3);
    await readResult(agent, 'new', { ...own, value: { ...own.value, licenseKey: 'NEW' } });
    expect(agent.store.snapshots.get('new')?.license).toMatchObject({ licenseKey: 'NEW', uses: 3 });
    valueOf(await agent.change('usage', { licenseKey: 'new' }));
    expect(agent.store.operations.head('NEW', 'counter')).toMatchObject({ kind: 'usage' });
  });

  it('a key that was known under two spellings keeps the snapshot of the upstream’s spelling and the changes of both', async () => {
    await using agent = await createAgent({ uses: 5 });
    const own = agent.says(3);
    const answer = { ...own, value: { ...own.value, licenseKey: 'Key-1' } };
    await readResult(agent, 'Key-1', answer);
    const { operationId } = valueOf(await agent.change('usage', { licenseKey: 'Key-1' }));
    const other = await agent.record('usage');
    await agent.record('disable');
    await readResult(agent, 'KEY-1', answer);
    const { operations, snapshots } = agent.store;
    for (const queue of ['counter', 'state'] as const) {
      expect(operations.head('Key-1', queue)?.nextAt).toBe(agent.monotonic);
    }
    expect(operations.queue('Key-1', 'counter').map(({ id }) => id)).toEqual([operationId, other]);
    expect(snapshots.get('KEY-1')).toMatchObject({
      license: { licenseKey: 'Key-1', uses: 3 },
      local: { uses: 5, pending: 3, enabled: false },
    });
  });

  it('a key that was known under two spellings is read before the next use is sent', async () => {
    await using agent = await createAgent({ uses: 5 });
    const own = agent.says(5);
    const answer = { ...own, value: { ...own.value, licenseKey: 'Key-1' } };
    await readResult(agent, 'Key-1', answer);
    await agent.record('usage');
    await agent.answer(await agent.send('counter'), agent.says(6));
    // The upstream has one key for both spellings, whose count contains that use.
    await readResult(agent, 'KEY-1', { ...answer, value: { ...answer.value, uses: 6 } });
    valueOf(await agent.change('usage', { licenseKey: 'Key-1' }));
    const planned = { subject: 'Key-1', queue: 'counter', justRead: false } as const;
    expect(valueOf(await agent.writer.write('planStep', planned))).toEqual({ step: 'read' });
    await readResult(agent, 'Key-1', { ...answer, value: { ...answer.value, uses: 6 } });
    expect(agent.store.snapshots.get('Key-1')).toMatchObject({ manyWriters: false, license: { uses: 6 } });
  });

  it('a key that is disabled under one spelling is disabled under the other', async () => {
    await using agent = await createAgent({ uses: 5 });
    await readResult(agent, 'key-1', agent.says(5));
    valueOf(await agent.change('disable', { licenseKey: 'key-1' }));
    expect(agent.local.enabled).toBe(false);
    expect(await agent.send('state')).toMatchObject({ subject: 'KEY-1', kind: 'disable' });
  });

  it('uses under both spellings of a key are sent one after the other', async () => {
    await using agent = await createAgent({ uses: 5 });
    await readResult(agent, 'key-1', agent.says(5));
    const first = await agent.record('usage');
    await agent.answer(await agent.send('counter'), lost);
    const { operationId: second } = valueOf(await agent.change('usage', { licenseKey: 'key-1' }));
    expect(await agent.plan('counter')).toEqual({ step: 'none' });
    agent.pass(minute);
    await agent.read(agent.says(5));
    expect(agent.stateOf(first)).toBe('pending');
    await agent.answer(await agent.send('counter'), agent.says(6));
    await agent.answer(await agent.send('counter'), agent.says(7));
    expect([agent.stateOf(first), agent.stateOf(String(second))]).toEqual(['delivered', 'delivered']);
  });

  it('a read under another spelling that does not hold the queues of the key reconciles nothing', async () => {
    await using agent = await createAgent({ uses: 5 });
    const use = await agent.record('usage');
    const sent = await agent.send('counter');
    await readResult(agent, 'key-1', agent.says(6));
    expect(agent.snapshot.license.uses).toBe(5);
    await agent.answer(sent, agent.says(6));
    expect(agent.stateOf(use)).toBe('delivered');
  });

  it('changes under a spelling that the upstream no longer uses move to the new spelling in their order', async () => {
    await using agent = await createAgent({ uses: 5 });
    const uses = [await agent.record('usage'), await agent.record('usage')];
    const own = agent.says(5);
    await readResult(agent, 'KEY-1', { ...own, value: { ...own.value, licenseKey: 'Key-1' } });
    const { operations, snapshots } = agent.store;
    expect(operations.queue('Key-1', 'counter').map(({ id }) => id)).toEqual(uses);
    expect(operations.head('Key-1', 'counter')?.nextAt).toBe(agent.monotonic);
    expect(snapshots.get('KEY-1')?.license.licenseKey).toBe('Key-1');
    expect(snapshots.get('Key-1')?.local).toMatchObject({ uses: 7, pending: 2 });
  });

  it('a key keeps a limited number of aliases, and a new alias replaces the oldest', async () => {
    await using agent = await createAgent({ uses: 5 });
    const spellings = Array.from({ length: maxAliases + 2 }, (_, index) => `key-1-${index}`);
    for (const spelling of spellings) {
      agent.pass(1);
      await readResult(agent, spelling, agent.says(5));
    }
    const known = spellings.filter((spelling) => agent.store.snapshots.get(spelling) !== null);
    expect(known).toEqual(spellings.slice(2));
    expect(agent.store.snapshots.aliasCount('KEY-1')).toBe(maxAliases);
  });

  it('the aliases of a key move along when the upstream changes its own spelling', async () => {
    await using agent = await createAgent({ uses: 5 });
    await readResult(agent, 'key-1', agent.says(5));
    const own = agent.says(5);
    await readResult(agent, 'KEY-1', { ...own, value: { ...own.value, licenseKey: 'Key-1' } });
    expect(agent.store.snapshots.get('key-1')?.license.licenseKey).toBe('Key-1');
    expect(agent.store.snapshots.aliasCount('Key-1')).toBe(2);
  });

  it.each(['the asked spelling', 'its own spelling'])(
    'a key with many writers keeps that flag when it turns out to be another key, even if only %s showed it',
    async (which) => {
      await using agent = await createAgent({ uses: 5 });
      const answer = (licenseKey: string, uses: number): Applied<License> => {
        const said = agent.says(uses);
        return { ...said, value: { ...said.value, licenseKey } };
      };
      await readResult(agent, 'Key-1', answer('Key-1', 5));
      const moved = which === 'the asked spelling' ? 'KEY-1' : 'Key-1';
      await readResult(agent, moved, answer(moved, 9));
      expect(agent.store.snapshots.get(moved)?.manyWriters).toBe(true);
      await readResult(agent, 'KEY-1', answer('Key-1', 9));
      expect(agent.store.snapshots.get('KEY-1')).toMatchObject({
        license: { licenseKey: 'Key-1' },
        manyWriters: true,
      });
    },
  );
});
