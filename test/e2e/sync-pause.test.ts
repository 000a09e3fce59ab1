import { expect, test } from 'vitest';
import { codeOf, eventually, startHarness } from '../support/harness/agent-harness.ts';
import { operate, recordIn } from '../support/app/people.ts';

test('a pause survives a restart and a reload, and the agent sends nothing meanwhile', async () => {
  await using harness = await startHarness({ licenses: ['KEY', 'OTHER'] });
  const latchkey = (...argv: string[]): ReturnType<typeof operate> => operate(harness.directory, ...argv);
  // Without a probe, which could be under way when the pause begins.
  let agent = await harness.startAgent({ upstream: { probe: '1h' } });
  await agent.learn(['KEY']);
  const paused = await latchkey('sync', 'pause');
  expect([paused.code, paused.out]).toEqual([0, expect.stringMatching(/^upstream +paused since /)]);
  const asked = harness.upstream.ledger.length;

  agent = await harness.startAgent({ upstream: { probe: '200ms' } });
  await harness.reconfigure({ sync: { concurrency: 4 } });
  const use = await agent.change('usage', 'KEY');
  expect([use.status, use.headers['latchkey-pending']]).toEqual([200, '1']);
  expect((await agent.createCoupon({ code: 'LATER' })).status).toBe(201);
  const unknown = await agent.verify('OTHER');
  expect([unknown.status, codeOf(unknown)]).toEqual([503, 'upstream_unreachable']);
  expect((await latchkey('sync', 'now')).out).toMatch(
    /nothing is sent to the store until: latchkey .* sync resume/,
  );
  // Several times as long as the longest idle interval of an agent.
  await eventually(async () => (await agent.status()).uptime_s >= 1);
  expect(harness.upstream.ledger.slice(asked)).toEqual([]);
  expect((await agent.status()).upstream.state).toBe('paused');
  expect((await latchkey('status')).out).toMatch(
    /^warn  sync has been paused since .*: no change is sent  →  resume it: latchkey .* sync resume$/m,
  );

  const resumed = await latchkey('sync', 'resume');
  expect([resumed.code, resumed.out]).toEqual([0, expect.not.stringContaining('paused')]);
  await agent.atRest();
  expect(harness.upstream.countsOf('KEY').net).toBe(1);
  expect(harness.upstream.coupons.map(({ code }) => code)).toEqual(['LATER']);
  expect((await agent.verify('OTHER')).status).toBe(200);

  agent = await harness.startAgent();
  await eventually(async () => (await agent.status()).upstream.state === 'up');
  expect(recordIn(harness.directory)).toEqual([
    'sync.pause upstream',
    'sync.now upstream',
    'sync.resume upstream',
  ]);
});

test('sync now sends what an outage delayed, without waiting for backoff or breaker', async () => {
  const configuration = {
    upstream: { probe: '1h' },
    sync: { backoff: { first: '1h', max: '1h' }, breaker: { failures: 1, open: '1h' } },
  };
  await using harness = await startHarness({ licenses: ['KEY'], configuration });
  const agent = await harness.startAgent();
  await agent.learn(['KEY']);
  await harness.proxy.become({ kind: 'refuse' });
  await agent.change('usage', 'KEY');
  await eventually(async () => (await agent.status()).upstream.breaker === 'open');
  await harness.proxy.become({ kind: 'pass' });
  expect((await operate(harness.directory, 'sync', 'now')).code).toBe(0);
  await agent.atRest();
  expect(harness.upstream.countsOf('KEY').net).toBe(1);
  expect((await agent.status()).upstream).toMatchObject({ state: 'up', breaker: 'closed' });
});
