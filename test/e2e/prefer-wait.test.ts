import { expect, test } from 'vitest';
import { dataOf, setStage } from '../support/stage/agent-stage.ts';

test('who waits for the upstream is told that it has confirmed the use', async () => {
  await using stage = await setStage({ licenses: ['KEY'] });
  const agent = await stage.startAgent();
  await agent.learn(['KEY']);
  const startedAt = performance.now();
  const use = await agent.change('usage', 'KEY', { prefer: 'wait=30' });
  expect([use.status, dataOf(use)['uses'], use.headers['latchkey-pending']]).toEqual([200, 1, '0']);
  expect(performance.now() - startedAt).toBeLessThan(30_000);
  expect(stage.upstream.countsOf('KEY').net).toBe(1);
});

test('who waits in vain is answered after as long as was asked, and the use is kept', async () => {
  await using stage = await setStage({ licenses: ['KEY'] });
  const agent = await stage.startAgent();
  await agent.learn(['KEY']);
  await stage.proxy.become({ kind: 'refuse' });
  const startedAt = performance.now();
  const use = await agent.change('usage', 'KEY', { prefer: 'wait=1', 'idempotency-key': 'k' });
  const waitedMs = performance.now() - startedAt;
  expect([use.status, dataOf(use)['uses'], use.headers['latchkey-pending']]).toEqual([200, 1, '1']);
  expect(waitedMs).toBeGreaterThan(950);
  expect(waitedMs).toBeLessThan(30_000);
  await stage.proxy.become({ kind: 'pass' });
  const again = await agent.change('usage', 'KEY', { prefer: 'wait=30', 'idempotency-key': 'k' });
  expect([again.status, again.body]).toEqual([200, use.body]);
  await agent.atRest();
  expect(stage.upstream.countsOf('KEY').net).toBe(1);
});
