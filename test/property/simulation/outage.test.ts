import { expect, test } from 'vitest';
import { VirtualTime } from '../../support/virtual-clock.ts';
import { SeededRandom } from './seeded-random.ts';
import { Machine, SimulatedAgent, syncSettings, type AgentOptions } from './simulated-agent.ts';
import { SimulatedUpstream } from './simulated-upstream.ts';

const reach = { accountId: 'default', productKey: 'product' };
const never = new AbortController().signal;
const options: AgentOptions = { writers: 'single', onDoubt: 'infer', lanes: 4, mutation: null, crashes: 0 };
const { rate, breaker } = syncSettings(options);
const minuteMs = 60_000;
const keys = ['KEY-0', 'KEY-1', 'KEY-2', 'KEY-3'];
const uses = 400;

test('through a long outage only probes go up; after it the backlog drains at the rate, and a new key does not wait behind it', async () => {
  const time = new VirtualTime();
  const random = new SeededRandom(1);
  using machine = new Machine();
  const { operations } = machine.transaction;
  const upstream = new SimulatedUpstream(time.clock(), random, () => 0);
  for (const key of [...keys, 'NEW-KEY']) upstream.add(key, 0);
  const clock = time.clock();
  const agent = new SimulatedAgent({
    machine,
    upstream,
    clock,
    random,
    options,
    onObserved: () => undefined,
  });
  await agent.start();
  for (const key of keys) void agent.licensing.verify(reach, key, never);
  await time.advance(minuteMs);

  upstream.away = 'refused';
  for (let count = 0; count < uses; count += 1) {
    const licenseKey = keys[count % keys.length] ?? '';
    void agent.licensing.change({ reach, licenseKey, trigger: 'usage', idempotency: null, waitMs: 0 }, never);
  }
  await time.advance(minuteMs);
  const opened = upstream.asked.length;
  await time.advance(9 * minuteMs);
  const probes = upstream.asked.slice(opened);
  expect(new Set(probes.map(({ what }) => what))).toEqual(new Set(['verify']));
  expect(probes.length).toBeLessThanOrEqual((9 * minuteMs) / breaker.openMs);
  expect(probes.length).toBeGreaterThan(10);
  expect(operations.depth().pending).toBe(uses);

  upstream.away = null;
  const healedAt = clock.now();
  const healed = upstream.asked.length;
  await time.runUntil(() => operations.depth().pending < uses - 50, minuteMs);
  let answeredAfterMs = Infinity;
  const askedAt = clock.now();
  void agent.licensing.verify(reach, 'NEW-KEY', never).then(({ ok }) => {
    if (ok) answeredAfterMs = clock.now() - askedAt;
    return ok;
  });
  await time.advance(2_000);
  expect(answeredAfterMs).toBeLessThan(2_000);
  expect(operations.depth().pending).toBeGreaterThan(0);
  await time.runUntil(() => operations.depth().delivered === uses, 2 * minuteMs);
  const tookMs = clock.now() - healedAt;
  const sent = upstream.asked.length - healed;
  expect(sent).toBeLessThanOrEqual((tookMs / 1000) * rate + 2 * rate);
  for (const key of keys) expect(upstream.license(key).uses).toBe(uses / keys.length);
  agent.die();
});
