import { describe, expect, it } from 'vitest';
import { maxWatched } from '../../../../src/features/following/domain/change-feed.ts';
import type { SimulatedAgent } from '../../../property/simulation/simulated-agent.ts';
import { productKey } from '../../../property/simulation/latchkey/authority.ts';
import { LatchkeyWorld } from '../../../property/simulation/latchkey/world.ts';
import {
  minute,
  second,
  startLatchkeyHarness,
  type SyncHarness,
} from '../../../support/harness/sync-harness.ts';

/* Keys that are sold after an agent was asked for them. */

const key = 'SOLD-1';
const never = new AbortController().signal;

async function codeOf(harness: SyncHarness, licenseKey = key): Promise<string> {
  const answer = await harness.verify(licenseKey, 'till');
  return answer.ok ? 'ok' : answer.problem.code;
}

/** Asks in vain until the last 404 is kept for 8 s. */
async function askInVain(harness: SyncHarness): Promise<void> {
  for (const waitMs of [0, 2, 4]) {
    await harness.time.advance(waitMs * second);
    expect(await codeOf(harness)).toBe('license_not_found');
  }
}

describe('a key that is sold after an agent was asked for it', () => {
  it('is answered as soon as the authority has it, although the 404 would be kept longer', async () => {
    using harness = await startLatchkeyHarness(['KEY']);
    await askInVain(harness);
    await harness.time.advance(1.5 * second);
    harness.latchkey.sell(key);
    await harness.time.advance(0.1 * second);
    const { length } = harness.vendor.asked;
    expect(harness.vendor.asked.at(-1)).toBe(`verify ${key}`);
    expect(await codeOf(harness)).toBe('ok');
    expect(harness.vendor.asked).toHaveLength(length);
  });

  it('is no longer watched after it was answered', async () => {
    using harness = await startLatchkeyHarness(['KEY']);
    await askInVain(harness);
    await harness.time.advance(1.5 * second);
    expect(harness.latchkey.watched.at(-1)).toEqual([key]);
    harness.latchkey.sell(key);
    await harness.time.advance(2 * second);
    expect(harness.latchkey.watched.at(-1)).toEqual([]);
    const requests = harness.latchkey.watched.length;
    await harness.time.advance(10 * second);
    expect(harness.latchkey.watched.length - requests).toBeLessThanOrEqual(1);
  });

  it('costs the upstream one request a second, however many keys are guessed', async () => {
    using harness = await startLatchkeyHarness(['KEY']);
    const before = harness.latchkey.watched.length;
    for (let index = 0; index < 100; index += 1) {
      void harness.ask(`GUESS-${index}`, null);
      await harness.time.advance(100);
    }
    const watched = harness.latchkey.watched.slice(before);
    expect(watched.length).toBeGreaterThan(5);
    expect(watched.length).toBeLessThanOrEqual(11);
    expect(Math.max(...watched.map((keys) => keys.length))).toBeLessThanOrEqual(maxWatched);
  });

  it('is not watched if it is longer than any key of a Latchkey', async () => {
    using harness = await startLatchkeyHarness(['KEY']);
    expect(await codeOf(harness, 'x'.repeat(1_025))).toBe('license_not_found');
    await harness.time.advance(1.5 * second);
    expect(harness.latchkey.watched.flat()).toEqual([]);
  });

  it('is answered by the lowest agent of a chain within seconds', async () => {
    using world = new LatchkeyWorld({ seed: 1, troubles: ['chain'], sabotage: null });
    world.faults.crashes = 0;
    await world.begin();
    await world.pass(minute);
    const lowest = world.sites[1]?.agent;
    if (lowest === undefined) throw new Error('there is no chain');
    for (const waitMs of [0, 2, 4, 8]) {
      await world.pass(waitMs * second);
      expect(await answerOf(world, lowest)).toBe('license_not_found');
    }
    await world.pass(1.5 * second);
    const sale = { buyerEmail: 'b@example.com', soldAt: 0, enabled: true, uses: 0 };
    await world.authority.write('addPurchase', { ...sale, productKey, licenseKey: key });
    await world.pass(4 * second);
    expect(await answerOf(world, lowest)).toBe('ok');
  });
});

async function answerOf(world: LatchkeyWorld, agent: SimulatedAgent): Promise<string> {
  const tenant = { accountId: 'default', productKey: agent.products.idOf(productKey) };
  const answering = agent.licenseService.verify(tenant, key, never, null);
  await world.pass(2 * second);
  const answer = await answering;
  return answer.ok ? 'ok' : answer.problem.code;
}
