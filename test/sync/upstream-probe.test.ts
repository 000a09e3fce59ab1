import { describe, expect, it } from 'vitest';
import { lost, minute, no, second } from '../support/harness/service-harness.ts';
import {
  createManualHarness,
  key,
  never,
  productKey,
  type ManualHarness,
} from '../support/harness/manual-harness.ts';

const notFound = { ...no('missing'), status: 404 };
const refused = { ...no('unauthorized'), status: 401 };
const probeKey = 'LATCHKEY-PROBE';

/** An agent that probes its upstream after a minute without a request. */
async function createRunning(
  productIds: readonly string[] = [productKey],
  keys: readonly string[] = [],
): Promise<ManualHarness> {
  const harness = await createManualHarness();
  harness.options = { ...harness.options, productIds };
  for (const licenseKey of keys) await harness.learn(licenseKey);
  harness.sync.run(harness.ending.signal).catch(() => undefined);
  await harness.time.settle();
  return harness;
}

/** The next probes, one a minute, each answered as usual. */
async function probes(harness: ManualHarness, count: number): Promise<string[]> {
  const asked: string[] = [];
  for (let each = 0; each < count; each += 1) {
    await harness.passes(minute);
    const request = await harness.request();
    const { licenseKey } = request;
    asked.push(`${request.productKey} ${licenseKey}`);
    await request.answer(licenseKey === probeKey ? notFound : harness.saysOf(licenseKey));
  }
  return asked;
}

describe('an upstream without requests for a while', () => {
  it('an idle upstream gets a read of a known key, whose response is stored', async () => {
    await using harness = await createRunning();
    await harness.passes(minute - 1);
    expect(await harness.requested()).toEqual([]);
    await harness.passes(1);
    await (await harness.request()).answer(harness.says(8));
    expect(harness.snapshot.license.uses).toBe(8);
  });

  it('an idle upstream gets reads of every product in turn, with one key of each after the other', async () => {
    await using harness = await createRunning([productKey, 'brush'], ['A']);
    const [first, second_, third, fourth] = await probes(harness, 4);
    expect(new Set([first, third])).toEqual(new Set([`${productKey} A`, `${productKey} ${key}`]));
    expect([second_, fourth]).toEqual([`brush ${probeKey}`, `brush ${probeKey}`]);
  });

  it('an idle upstream gets a read of a key that does not exist if only one key is known, so that one key alone decides nothing', async () => {
    await using harness = await createRunning();
    expect(await probes(harness, 2)).toEqual([`${productKey} ${key}`, `${productKey} ${probeKey}`]);
  });

  it('an idle upstream gets a request for coupons if no product is configured', async () => {
    await using harness = await createRunning([]);
    await harness.passes(minute);
    expect(harness.arrivedCoupons).toMatchObject([{ kind: 'list', offset: 0 }]);
    expect(await harness.requested()).toEqual([]);
  });

  it('an idle upstream gets no request during a pause, and one after it', async () => {
    await using harness = await createRunning();
    harness.sync.limiter.pause();
    await harness.passes(10 * minute);
    expect(await harness.requested()).toEqual([]);
    harness.sync.limiter.resume();
    await harness.passes(minute);
    expect(await harness.requested()).toEqual([`verify ${key}`]);
  });

  it('an idle upstream gets a request at once after the machine has slept', async () => {
    await using harness = await createRunning();
    harness.sync.limiter.probeNow();
    expect(await harness.requested()).toEqual([`verify ${key}`]);
  });

  it('an idle upstream gets no request once the process ends', async () => {
    await using harness = await createRunning();
    harness.ending.abort();
    await harness.passes(10 * minute);
    expect(await harness.requested()).toEqual([]);
  });
});

describe('a probe', () => {
  it.each(['counter', 'state'] as const)(
    'a probe lets nothing into the %s queue of its key meanwhile',
    async (queue) => {
      await using harness = await createRunning();
      await harness.passes(minute);
      const request = await harness.request();
      let isIn = false;
      void harness.mutex.enter(key, [queue], never).then(() => (isIn = true));
      await harness.time.settle();
      expect(isIn).toBe(false);
      await request.answer(harness.says(5));
      expect(isIn).toBe(true);
    },
  );

  it('a probe that waits for its key when the process ends leaves time for the operation in flight', async () => {
    await using harness = await createManualHarness();
    const use = await harness.record('usage');
    let end = 'none yet';
    harness.sync.run(harness.ending.signal).then(
      () => (end = 'in good order'),
      () => (end = 'a fault'),
    );
    const request = await harness.request();
    await harness.passes(minute);
    harness.ending.abort();
    await harness.time.settle();
    expect(end).toBe('none yet');
    await request.answer(harness.says(6));
    expect([end, harness.stateOf(use)]).toEqual(['in good order', 'delivered']);
  });

  it('an answered probe closes the breaker, whatever it asked for', async () => {
    await using harness = await createRunning();
    const { limiter } = harness.sync;
    for (let time = 0; time < 3; time += 1) limiter.observe(lost, { owner: productKey, subject: key });
    expect(limiter.admission().admitted).toBe(false);
    await harness.passes(10 * second);
    await (await harness.request()).answer(lost);
    await harness.passes(10 * second);
    const request = await harness.request();
    expect(request.licenseKey).toBe(probeKey);
    await request.answer(notFound);
    expect(limiter.admission().admitted).toBe(true);
  });
});

describe('a secret that the upstream rejects', () => {
  it('a rejected secret is retried by reads of its product, and other products by their own reads', async () => {
    await using harness = await createRunning([productKey, 'brush']);
    const { limiter } = harness.sync;
    limiter.observe(refused, { owner: productKey, subject: key });
    await harness.passes(second);
    const again = await harness.request();
    expect(again.productKey).toBe(productKey);
    await again.answer(refused);
    expect(await probes(harness, 3)).toEqual(Array(3).fill(`brush ${probeKey}`));
    expect(limiter.refusedCredentials()).toEqual([productKey]);
  });

  it('a rejected secret is retried after 15 minutes even if no other product is configured', async () => {
    await using harness = await createRunning();
    harness.sync.limiter.observe(refused, { owner: productKey, subject: key });
    await harness.passes(second);
    await (await harness.request()).answer(refused);
    await harness.passes(15 * minute - 1);
    expect(await harness.requested()).toEqual([]);
    await harness.passes(1);
    await (await harness.request()).answer(notFound);
    expect(harness.sync.limiter.refusedCredentials()).toEqual([]);
  });

  it('a rejected secret is still used to see whether an upstream that is down is back', async () => {
    await using harness = await createRunning();
    const { limiter } = harness.sync;
    limiter.observe(refused, { owner: productKey, subject: key });
    for (let time = 0; time < 3; time += 1) limiter.observe(lost, { owner: productKey, subject: key });
    await harness.passes(10 * second);
    expect(await harness.requested()).toEqual([`verify ${key}`]);
  });

  it('a rejected secret is not used to probe an upstream that answers', async () => {
    await using harness = await createRunning();
    const { limiter } = harness.sync;
    limiter.observe(refused, { owner: productKey, subject: key });
    await harness.passes(second);
    await (await harness.request()).answer(refused);
    await harness.passes(10 * minute);
    expect([await harness.requested(), harness.arrivedCoupons]).toEqual([[], []]);
  });
});

describe('an API key that the upstream rejects', () => {
  it('a rejected API key is retried by listing coupons, and used again once that is answered', async () => {
    await using harness = await createRunning();
    const { limiter } = harness.sync;
    limiter.observe(refused, { owner: null, subject: 'coupons' });
    await harness.passes(second);
    const [request] = harness.arrivedCoupons.splice(0);
    expect(request?.kind).toBe('list');
    if (request?.kind === 'list')
      await request.answer({
        outcome: 'applied',
        value: { coupons: [], unreadable: [] },
        confirmedAt: 0,
        isCached: false,
      });
    expect(limiter.refusedCredentials()).toEqual([]);
  });
});
