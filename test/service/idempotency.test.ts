import { describe, expect, it, vi } from 'vitest';
import { maxUnchangedResponses } from '../../src/service/idempotency.ts';
import type { Idempotency } from '../../src/service/ports.ts';
import {
  day,
  createAgent,
  productKey,
  refusalOf,
  valueOf,
  type AgentHarness,
} from '../support/harness/service-harness.ts';

const once: Idempotency = { credential: 'product:press', key: 'k', fingerprint: 'usage of KEY-1' };

async function use(agent: AgentHarness, idempotency: Idempotency): ReturnType<AgentHarness['change']> {
  return agent.change('usage', { idempotency });
}

describe('a write with an idempotency key', () => {
  it('a write with an idempotency key is done once, and a repeated request gets the same response, even in another process', async () => {
    await using agent = await createAgent({ uses: 5 });
    const first = await use(agent, once);
    expect(await use(agent, once)).toEqual(first);
    await agent.restart();
    expect(await use(agent, once)).toEqual(first);
    expect(agent.local).toEqual({ uses: 6, enabled: true, pending: 1 });
  });

  it('a repeated request gets the stored response even if the record has changed since', async () => {
    await using agent = await createAgent({ uses: 5 });
    const first = await use(agent, once);
    await agent.answer(await agent.send('counter'), agent.says(6));
    expect(await use(agent, once)).toEqual(first);
    expect(valueOf(first).snapshot.local).toEqual({ uses: 6, enabled: true, pending: 1 });
  });

  it('another request with the same idempotency key is refused and changes nothing', async () => {
    await using agent = await createAgent();
    await use(agent, once);
    const other = await agent.change('decrease', { idempotency: { ...once, fingerprint: 'decrease' } });
    expect(refusalOf(other)).toBe('idempotency_key_reused');
    expect(agent.local.pending).toBe(1);
  });

  it('idempotency keys are separate for each credential', async () => {
    await using agent = await createAgent();
    await use(agent, once);
    const other = { ...once, credential: 'token:1', fingerprint: 'other' };
    expect(refusalOf(await use(agent, other))).toBeNull();
    expect(agent.local.pending).toBe(2);
  });

  it('a refusal is not stored under an idempotency key, so that the same request can succeed later', async () => {
    await using agent = await createAgent();
    agent.maxPending = 0;
    expect(refusalOf(await use(agent, once))).toBe('storage_full');
    agent.maxPending = 10;
    expect(refusalOf(await use(agent, once))).toBeNull();
  });

  it('a repeated request gets the response that the caller got after waiting', async () => {
    await using agent = await createAgent({ uses: 5 });
    await use(agent, once);
    const value = { snapshot: agent.snapshot, operationId: null };
    await agent.writer.write('storeFinalResponse', { idempotency: once, value });
    expect(agent.store.idempotency.unchangedCount(once.credential)).toBe(0);
    await agent.restart();
    expect(valueOf(await use(agent, once))).toEqual(value);
  });

  it('a stored response is kept for at least 7 days, but not for ever', async () => {
    await using agent = await createAgent();
    const first = await use(agent, once);
    agent.pass(7 * day);
    await agent.writer.write('pruneIdempotency', { removalTime: agent.now, limit: 10 });
    expect(await use(agent, once)).toEqual(first);
    agent.pass(2 * day);
    await agent.writer.write('pruneIdempotency', { removalTime: agent.now, limit: 10 });
    expect(agent.store.idempotency.get(once.credential, once.key)).toBeNull();
  });
});

describe('finished operations', () => {
  it('finished operations stay listed for 7 days; unfinished operations stay for ever', async () => {
    await using agent = await createAgent({ uses: 5 });
    const done = await agent.record('usage');
    await agent.answer(await agent.send('counter'), agent.says(6));
    const waiting = await agent.record('usage');
    agent.pass(7 * day);
    await agent.writer.write('pruneOperations', { removalTime: agent.now, limit: 10 });
    expect(agent.store.operations.get(done)).not.toBeNull();
    agent.pass(1);
    await agent.writer.write('pruneOperations', { removalTime: agent.now, limit: 10 });
    expect(agent.store.operations.get(done)).toBeNull();
    expect(agent.stateOf(waiting)).toBe('pending');
  });
});

describe('dates from a clock that jumped ahead', () => {
  it('rows that were dated in the future are kept for 8 and 30 days after the clock was set back', async () => {
    await using agent = await createAgent({ uses: 5 });
    agent.now += 1000 * day;
    const first = await use(agent, once);
    const operation = await agent.send('counter');
    await agent.answer(operation, agent.says(6));
    agent.now -= 1000 * day;
    const prune = async (): Promise<void> => {
      for (const name of ['pruneIdempotency', 'pruneOperations'] as const) {
        valueOf(await agent.writer.write(name, { removalTime: agent.now, limit: 10 }));
      }
    };
    await prune();
    agent.pass(7 * day);
    await prune();
    expect(await use(agent, once)).toEqual(first);
    expect(agent.stateOf(operation.id)).toBe('delivered');
    agent.pass(day + 1);
    await prune();
    expect(agent.store.operations.get(operation.id)).toBeNull();
    agent.pass(22 * day);
    await prune();
    expect(agent.store.idempotency.get(once.credential, once.key)).toBeNull();
  });
});

describe('a start', () => {
  it('a start keeps the instance and counts itself', async () => {
    await using agent = await createAgent();
    const instance = agent.store.settings.get('instance');
    await agent.restart();
    expect(agent.store.settings.get('instance')).toBe(instance);
    expect(agent.snapshot).toMatchObject({ productId: productKey, run: 1 });
    await agent.read(agent.says(5));
    expect(agent.snapshot.run).toBe(2);
  });
});

describe('requests that change nothing', () => {
  it('responses to requests that change nothing are stored only up to a limit, because no queue limits them', async () => {
    await using agent = await createAgent();
    const { idempotency } = agent.store;
    vi.spyOn(idempotency, 'unchangedCount').mockReturnValue(maxUnchangedResponses);
    const another = { credential: 'c', key: 'another', fingerprint: 'f' };
    expect(refusalOf(await agent.change('enable', { idempotency: another }))).toBe('storage_full');
    expect(idempotency.get('c', 'another')).toBeNull();
    expect(refusalOf(await agent.change('usage', { idempotency: another }))).toBeNull();
  });

  it('requests that change nothing are counted separately for each credential', async () => {
    await using agent = await createAgent();
    const under = (credential: string, name: string): { idempotency: Idempotency } => ({
      idempotency: { credential, key: name, fingerprint: 'f' },
    });
    for (const name of ['a', 'b']) await agent.change('enable', under('product:press', name));
    await agent.change('enable', under('token:1', 'a'));
    const { idempotency } = agent.store;
    expect(idempotency.unchangedCount('product:press')).toBe(2);
    expect(idempotency.unchangedCount('token:1')).toBe(1);
  });

  it('a request that changes nothing still counts after its response was replaced by the response after a wait', async () => {
    await using agent = await createAgent();
    await agent.change('enable', { idempotency: once });
    const value = { snapshot: agent.snapshot, operationId: null };
    await agent.writer.write('storeFinalResponse', { idempotency: once, value });
    expect(agent.store.idempotency.unchangedCount(once.credential)).toBe(1);
    expect(agent.store.idempotency.get(once.credential, once.key)?.value).toEqual({ ok: true, value });
  });

  it('a request counts as unchanged only if nothing was queued', async () => {
    await using agent = await createAgent();
    const key = (name: string) => ({ idempotency: { credential: 'c', key: name, fingerprint: 'f' } });
    await agent.change('enable', key('nothing'));
    await agent.change('disable', key('something'));
    expect(agent.store.idempotency.unchangedCount('c')).toBe(1);
  });
});

describe('a wall clock that is far ahead for an hour', () => {
  it('a wall clock that is far ahead for an hour removes no stored response, so that a repeated request counts once', async () => {
    await using agent = await createAgent();
    await use(agent, once);
    const removalTime = agent.now;
    agent.now += 60 * day;
    await agent.writer.write('pruneIdempotency', { removalTime, limit: 10 });
    agent.now -= 60 * day;
    await use(agent, once);
    expect(agent.store.operations.depth().pending).toBe(1);
  });
});
