import { expect, test } from 'vitest';
import { Play } from './simulation.ts';

const minuteMs = 60_000;
const uses = 400;
/** What the simulated agent is configured with: requests a second, and ms between probes. */
const rate = 20;
const openMs = 5_000;

test('only probes are sent during a long outage; afterwards the backlog drains at the rate, and a new key does not wait behind it', async () => {
  using play = new Play({ seed: 5, troubles: [], sabotage: null });
  const { world, callers } = play;
  world.faults.crashes = 0;
  const { ledger, network, watch, agent } = world;
  await play.begin();
  ledger.add('NEW-KEY', 'product-0', 0);
  const before = world.keys.map((key) => ledger.license(key).uses);
  const { operations } = world.machine.transaction;
  await world.pass(minuteMs);

  network.faultProfile = { ...network.faultProfile, away: 'refused' };
  for (let count = 0; count < uses; count += 1) {
    callers.change(world.keys[count % world.keys.length] ?? '', 'usage');
  }
  await world.pass(minuteMs);
  const opened = watch.sent.length;
  await world.pass(9 * minuteMs);
  const probes = watch.sent.slice(opened);
  expect(new Set(probes.map(({ what }) => what))).toEqual(new Set(['verify']));
  expect(probes.length).toBeLessThanOrEqual((9 * minuteMs) / openMs);
  expect(probes.length).toBeGreaterThan(10);
  expect(operations.depth().pending).toBe(uses);

  network.faultProfile = { ...network.faultProfile, away: null };
  const healedAt = world.monotonic;
  const healed = watch.sent.length;
  await world.runUntil(() => operations.depth().pending < uses - 50, minuteMs);
  const answers: boolean[] = [];
  const tenant = { accountId: 'default', productKey: 'product-0' };
  const { signal } = new AbortController();
  void agent.licenseService.verify(tenant, 'NEW-KEY', signal).then(({ ok }) => answers.push(ok));
  await world.pass(2_000);
  expect(answers).toEqual([true]);
  expect(operations.depth().pending).toBeGreaterThan(0);
  await world.runUntil(() => operations.depth().delivered === uses, 2 * minuteMs);
  const tookMs = world.monotonic - healedAt;
  const sent = watch.sent.length - healed;
  expect(sent).toBeLessThanOrEqual((tookMs / 1000) * rate + 2 * rate);
  const counted = world.keys.map((key, index) => ledger.license(key).uses - (before[index] ?? 0));
  expect(counted.reduce((sum, one) => sum + one, 0)).toBe(uses);
});
