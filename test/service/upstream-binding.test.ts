import { describe, expect, it } from 'vitest';
import { AgentProducts, storedProducts } from '../../src/service/agent/products.ts';
import {
  createAgent,
  lost,
  minute,
  no,
  valueOf,
  type AgentHarness,
} from '../support/harness/service-harness.ts';
import type { BoundUpstream } from '../../src/service/outbox/upstream/change.ts';
import { retryAfterUntil } from '../../src/service/outbox/upstream/waits.ts';

const store = 'https://store.example';
const other = 'https://other.example';
const product = { productKey: 'press', secretDigest: 'digest-of-press' };

async function bind(
  agent: AgentHarness,
  baseUrl: string,
  configured: readonly (typeof product)[] = [product],
): Promise<BoundUpstream> {
  const products = new AgentProducts(storedProducts(agent.store.settings), configured).list;
  const bound = valueOf(await agent.writer.write('bindUpstream', { baseUrl, products }));
  agent.check();
  return bound;
}

const firstStore = 'a'.repeat(32);
const otherStore = 'b'.repeat(32);

/** An agent that read its key with this count, from a Latchkey with this epoch. */
async function createRead(uses: number, epoch: string): Promise<AgentHarness> {
  const agent = await createAgent({ uses });
  await bind(agent, store);
  await agent.read({ ...agent.says(uses), epoch });
  return agent;
}

describe('an upstream that was replaced in the configuration', () => {
  it('a new upstream does not reconcile operations that are uncertain at the former one: a person must decide, and is told', async () => {
    await using agent = await createAgent({ uses: 5 });
    await bind(agent, store);
    const use = await agent.record('usage');
    await agent.answer(await agent.send('counter'), lost);
    await agent.restart();
    expect(await bind(agent, other)).toMatchObject({ heldOperations: 1 });
    expect(agent.stateOf(use)).toBe('held');
    expect(agent.operation(use).lastError).toContain(store);
    agent.pass(minute);
    await agent.read(agent.says(6));
    expect(agent.stateOf(use)).toBe('held');
    expect(await bind(agent, 'https://third.example')).toMatchObject({ heldOperations: 0 });
    expect(agent.operation(use).lastError).toContain(store);
  });

  it('a disable that is uncertain at the former upstream is sent to the new one, because it sets a value and a revocation wins', async () => {
    await using agent = await createAgent({ uses: 5 });
    await bind(agent, store);
    const disable = await agent.record('disable');
    await agent.answer(await agent.send('state'), lost);
    await agent.restart();
    expect(await bind(agent, other)).toMatchObject({ heldOperations: 0 });
    agent.pass(minute);
    await agent.answer(await agent.send('state'), agent.says(5, { enabled: false }));
    expect(agent.stateOf(disable)).toBe('delivered');
  });

  it('operations that were never sent go to the new upstream, whose count explains nothing earlier', async () => {
    await using agent = await createAgent({ uses: 5 }, { writers: 'single' });
    await bind(agent, store);
    const use = await agent.record('usage');
    await agent.restart();
    await bind(agent, other);
    const { unexpected } = await agent.read(agent.says(6));
    expect(unexpected).toBeNull();
    await agent.answer(await agent.send('counter'), agent.says(7));
    expect(agent.stateOf(use)).toBe('delivered');
    expect(agent.operation(use).upstream).toBe(other);
  });

  it('operations that the former upstream certainly did not apply go to the new upstream', async () => {
    await using agent = await createAgent({ uses: 5 });
    await bind(agent, store);
    const use = await agent.record('usage');
    await agent.answer(await agent.send('counter'), no('unreachable'));
    await agent.restart();
    expect(await bind(agent, other)).toMatchObject({ heldOperations: 0 });
    expect(agent.stateOf(use)).toBe('pending');
  });

  it('a new upstream reconciles responses that were lost on its own connection as usual', async () => {
    await using agent = await createAgent({ uses: 5 });
    await bind(agent, store);
    await agent.restart();
    await bind(agent, other);
    await agent.read(agent.says(6));
    const use = await agent.record('usage');
    await agent.answer(await agent.send('counter'), lost);
    agent.pass(minute);
    await agent.read(agent.says(7));
    expect(agent.stateOf(use)).toBe('delivered');
  });

  it('operations behind an uncertain operation are sent to the new upstream once no earlier request can arrive', async () => {
    await using agent = await createAgent({ uses: 5 });
    await bind(agent, store);
    await agent.record('usage');
    await agent.answer(await agent.send('counter'), lost);
    await agent.record('usage');
    await agent.restart();
    await bind(agent, other);
    expect(agent.dueIn('counter')).toBe(minute);
  });

  it('the Retry-After of the former upstream does not apply to the new one', async () => {
    await using agent = await createAgent();
    await bind(agent, store);
    await agent.writer.write('storeRetryAfter', { until: agent.monotonic + minute });
    await bind(agent, store);
    expect(retryAfterUntil(agent.store)).toBe(agent.monotonic + minute);
    await bind(agent, other);
    expect(retryAfterUntil(agent.store)).toBe(0);
  });

  it('an upstream is not new if the store has no stored upstream', async () => {
    await using agent = await createAgent({ uses: 5 });
    const use = await agent.record('usage');
    await agent.answer(await agent.send('counter'), lost);
    await agent.writer.write('storeRetryAfter', { until: agent.monotonic + minute });
    expect(await bind(agent, store)).toMatchObject({ heldOperations: 0 });
    expect(agent.stateOf(use)).toBe('uncertain');
    expect(retryAfterUntil(agent.store)).toBe(agent.monotonic + minute);
  });

  it('an upstream with the same address changes nothing', async () => {
    await using agent = await createAgent({ uses: 5 });
    await bind(agent, store);
    const use = await agent.record('usage');
    await agent.answer(await agent.send('counter'), lost);
    await agent.restart();
    expect(await bind(agent, store)).toEqual({ heldOperations: 0, renamed: [], removed: [] });
    agent.pass(minute);
    await agent.read(agent.says(6));
    expect(agent.stateOf(use)).toBe('delivered');
  });
});

describe('a Latchkey upstream whose responses name its store', () => {
  it('another store at the same address does not reconcile operations that were sent to the former one', async () => {
    await using agent = await createRead(5, firstStore);
    const use = await agent.record('usage');
    await agent.answer(await agent.send('counter'), lost);
    expect(agent.operation(use).upstream).toBe(`latchkey ${firstStore.slice(0, 16)}`);
    agent.pass(minute);
    await agent.read({ ...agent.says(6), epoch: otherStore });
    expect(agent.stateOf(use)).toBe('held');
    expect(agent.operation(use).lastError).toContain(firstStore.slice(0, 16));
  });

  it('a response to a change shows another store, too', async () => {
    await using agent = await createRead(5, firstStore);
    const use = await agent.record('usage');
    await agent.answer(await agent.send('counter'), lost);
    await agent.record('disable');
    const answer = agent.says(5, { enabled: false });
    await agent.answer(await agent.send('state'), { ...answer, epoch: otherStore });
    expect(agent.stateOf(use)).toBe('held');
  });

  it('the first count of another store is no sign of another writer', async () => {
    await using agent = await createRead(7, firstStore);
    const { value, ...said } = agent.says(1);
    const outcome = { ...said, value: { ...value, licenseKey: 'KEY-2' }, epoch: otherStore };
    const read = { licenseKey: 'KEY-2', productId: 'press', outcome, sentAt: agent.monotonic };
    valueOf(
      await agent.writer.write('recordRead', { ...read, isMissingConfirmed: true, policy: agent.policy }),
    );
    const use = await agent.record('usage');
    expect(await agent.read({ ...agent.says(3), epoch: otherStore })).toEqual({ unexpected: null });
    await agent.answer(await agent.send('counter'), { ...agent.says(4), epoch: otherStore });
    expect(agent.stateOf(use)).toBe('delivered');
  });

  it('another store that the response to a use shows is no other writer', async () => {
    await using agent = await createRead(7, firstStore);
    await agent.record('usage');
    const answer = { ...agent.says(3), epoch: otherStore };
    expect(await agent.answer(await agent.send('counter'), answer)).toMatchObject({ unexpected: null });
    expect(agent.local.uses).toBe(3);
  });

  it('a use that was in flight when the store changed is not reconciled by the new store if its response is lost', async () => {
    await using agent = await createRead(7, firstStore);
    const use = await agent.record('usage');
    const next = await agent.record('usage');
    await agent.record('disable');
    const [flying, disable] = [await agent.send('counter'), await agent.send('state')];
    const answer = agent.says(6, { enabled: false });
    await agent.answer(disable, { ...answer, epoch: otherStore }, { overlapped: true });
    await agent.answer(flying, lost, { overlapped: true });
    expect(agent.stateOf(use)).toBe('held');
    expect(agent.operation(use).lastError).toContain(firstStore.slice(0, 16));
    expect(agent.operation(next)).toMatchObject({ failures: 0, lastError: null });
  });

  it('a use that was in flight when the store changed is sent to the new store if it certainly did not arrive', async () => {
    await using agent = await createRead(7, firstStore);
    const use = await agent.record('usage');
    await agent.record('disable');
    const [flying, disable] = [await agent.send('counter'), await agent.send('state')];
    const answer = agent.says(7, { enabled: false });
    await agent.answer(disable, { ...answer, epoch: otherStore }, { overlapped: true });
    await agent.answer(flying, no('unreachable'), { overlapped: true });
    expect(agent.stateOf(use)).toBe('pending');
  });

  it('a store that names itself while a use is in flight is the store that the use was sent to', async () => {
    await using agent = await createAgent({ uses: 7 });
    await bind(agent, store);
    const use = await agent.record('usage');
    await agent.record('disable');
    const [flying, disable] = [await agent.send('counter'), await agent.send('state')];
    expect(agent.operation(use).upstream).toBe(store);
    const answer = agent.says(7, { enabled: false });
    await agent.answer(disable, { ...answer, epoch: firstStore }, { overlapped: true });
    await agent.answer(flying, lost, { overlapped: true });
    expect(agent.stateOf(use)).toBe('uncertain');
  });

  it('another store that the response to a repeated disable shows has applied the disable', async () => {
    await using agent = await createRead(7, firstStore);
    const disable = await agent.record('disable');
    await agent.answer(await agent.send('state'), lost);
    agent.pass(minute);
    const answer = agent.says(7, { enabled: false });
    await agent.answer(await agent.send('state'), { ...answer, epoch: otherStore });
    expect(agent.stateOf(disable)).toBe('delivered');
  });

  it.each([lost, no('unreachable')])(
    'an unanswered operation that is in flight again when the store changed is held ($detail)',
    async (outcome) => {
      await using agent = await createRead(7, firstStore);
      const use = await agent.record('usage');
      await agent.answer(await agent.send('counter'), lost);
      valueOf(await agent.writer.write('decideOperation', { operationId: use, decision: 'retry' }));
      agent.pass(minute);
      await agent.read({ ...agent.says(7), epoch: firstStore });
      await agent.record('disable');
      const [again, disable] = [await agent.send('counter'), await agent.send('state')];
      const answer = agent.says(7, { enabled: false });
      await agent.answer(disable, { ...answer, epoch: otherStore }, { overlapped: true });
      await agent.answer(again, outcome, { overlapped: true });
      expect(agent.stateOf(use)).toBe('held');
    },
  );

  it('another store is sent the disable that is uncertain at the former one', async () => {
    await using agent = await createRead(7, firstStore);
    const disable = await agent.record('disable');
    await agent.answer(await agent.send('state'), lost);
    agent.pass(minute);
    await agent.read({ ...agent.says(7), epoch: otherStore });
    expect(agent.stateOf(disable)).toBe('pending');
    expect(agent.local.enabled).toBe(false);
    const answer = agent.says(7, { enabled: false });
    await agent.answer(await agent.send('state'), { ...answer, epoch: otherStore });
    expect(agent.stateOf(disable)).toBe('delivered');
  });

  it.each([
    [lost, 'pending'],
    [no('unreachable'), 'pending'],
    [{ ...no('refused'), code: 'invalid_parameter' }, 'dead'],
    // A gateway sends no code.
    [no('refused'), 'pending'],
  ])(
    'a disable in flight when the store changed is sent to the new store until that applies or refuses it (%o)',
    async (outcome, state) => {
      await using agent = await createRead(7, firstStore);
      const disable = await agent.record('disable');
      await agent.answer(await agent.send('state'), lost);
      agent.pass(minute);
      await agent.record('usage');
      const [again, use] = [await agent.send('state'), await agent.send('counter')];
      await agent.answer(use, { ...agent.says(3), epoch: otherStore }, { overlapped: true });
      await agent.answer(again, outcome, { overlapped: true });
      expect(agent.stateOf(disable)).toBe(state);
      expect(agent.local.enabled).toBe(false);
    },
  );

  it('a store that names itself for the first time is not another store', async () => {
    await using agent = await createAgent({ uses: 5 });
    await bind(agent, store);
    const use = await agent.record('usage');
    await agent.answer(await agent.send('counter'), lost);
    agent.pass(minute);
    await agent.read({ ...agent.says(6), epoch: firstStore });
    expect(agent.stateOf(use)).toBe('delivered');
  });

  it('a cached response does not show the store', async () => {
    await using agent = await createRead(5, firstStore);
    const use = await agent.record('usage');
    await agent.answer(await agent.send('counter'), lost);
    agent.pass(minute);
    await agent.read({ ...agent.cacheSays(5, minute), epoch: otherStore });
    expect(agent.stateOf(use)).toBe('pending');
  });

  it('a restored store gets nothing before everything that it has lost is in the outbox again', async () => {
    await using agent = await createRead(5, firstStore);
    await agent.record('usage');
    await agent.answer(await agent.send('counter'), {
      ...agent.says(6),
      epoch: firstStore,
      appliedRevision: 9,
    });
    await agent.record('disable');
    await agent.read({ ...agent.says(5), epoch: `${firstStore.slice(0, 16)}${'e'.repeat(16)}` });
    expect(await agent.plan('state')).toEqual({ step: 'none' });
    await agent.writer.write('resumeDelivered', { limit: 100 });
    expect(await agent.plan('state')).toMatchObject({ step: 'send' });
  });

  it('the same store gets the operation again under its id, also after a restart', async () => {
    await using agent = await createRead(5, firstStore);
    const use = await agent.record('usage');
    await agent.answer(await agent.send('counter'), lost);
    await agent.restart();
    agent.pass(minute);
    await agent.read({ ...agent.says(6), epoch: firstStore });
    expect(await agent.send('counter')).toMatchObject({ id: use, progress: { unanswered: true } });
    await agent.answer(agent.operation(use), { ...agent.says(6), epoch: firstStore, appliedRevision: 9 });
    expect(agent.stateOf(use)).toBe('delivered');
    expect(agent.local.uses).toBe(6);
  });
});

describe('a product in the configuration', () => {
  it('a product with a new key and the same secret keeps its license keys and changes', async () => {
    await using agent = await createAgent({ uses: 5 });
    await bind(agent, store);
    const use = await agent.record('usage');
    const renamed = await bind(agent, store, [{ ...product, productKey: 'press-2' }]);
    expect(renamed).toEqual({ heldOperations: 0, renamed: [{ from: 'press', to: 'press-2' }], removed: [] });
    const [configured] = storedProducts(agent.store.settings).configured;
    expect([agent.snapshot.productId, agent.operation(use).productId]).toEqual([
      configured?.id,
      configured?.id,
    ]);
  });

  it('a product with a new key and a new secret is another product', async () => {
    await using agent = await createAgent({ uses: 5 });
    await bind(agent, store);
    const another = { productKey: 'brush', secretDigest: 'digest-of-brush' };
    expect(await bind(agent, store, [another])).toMatchObject({
      renamed: [],
      removed: [{ productKey: 'press', operations: 0 }],
    });
  });

  it('a product that takes the key of a removed product is recognized by its secret', async () => {
    await using agent = await createAgent({ uses: 5 });
    const brush = { productKey: 'brush', secretDigest: 'digest-of-brush' };
    await bind(agent, store, [product, brush]);
    const { secretDigest } = product;
    expect(await bind(agent, store, [{ ...brush, secretDigest }])).toMatchObject({
      renamed: [{ from: 'press', to: 'brush' }],
      removed: [{ productKey: 'brush' }],
    });
  });

  it('a removed product is reported with its waiting operations at every start until none is left', async () => {
    await using agent = await createAgent({ uses: 5 });
    await bind(agent, store);
    const use = await agent.record('usage');
    const removed = [{ productKey: 'press', operations: 1 }];
    expect(await bind(agent, store, [])).toMatchObject({ removed });
    expect(await bind(agent, store, [])).toMatchObject({ removed });
    valueOf(await agent.writer.write('decideOperation', { operationId: use, decision: 'drop' }));
    await bind(agent, store, []);
    expect(await bind(agent, store, [])).toMatchObject({ removed: [] });
  });

  it('a product that is configured again has its changes again', async () => {
    await using agent = await createAgent({ uses: 5 });
    await bind(agent, store);
    await agent.record('usage');
    await bind(agent, store, []);
    expect(await bind(agent, store)).toEqual({ heldOperations: 0, renamed: [], removed: [] });
  });

  it.each([
    ['that has another secret now', store, { ...product, secretDigest: 'another' }],
    ['whose upstream has another address now', other, product],
    ['that is read anew with other settings of any kind', store, product],
  ])('%s need not wait because of a refusal under the previous configuration', async (_, baseUrl, given) => {
    await using agent = await createAgent({ uses: 5 });
    await bind(agent, store);
    await agent.record('usage');
    await agent.answer(await agent.send('counter'), no('unauthorized'));
    expect(agent.dueIn('counter')).toBeGreaterThan(0);
    await bind(agent, baseUrl, [given]);
    expect(agent.dueIn('counter')).toBe(0);
  });

  it('a product with a new secret still waits for the reconcile delay of requests under the old secret', async () => {
    await using agent = await createAgent({ uses: 5 });
    await bind(agent, store);
    await agent.record('usage');
    await agent.answer(await agent.send('counter'), lost);
    await bind(agent, store, [{ ...product, secretDigest: 'another' }]);
    expect(agent.dueIn('counter')).toBe(minute);
  });
});
