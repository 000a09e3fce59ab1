import { describe, expect, it } from 'vitest';
import { lost, minute, no, second } from '../support/stage/service-stage.ts';
import { givenManual, key, never, productKey, type ManualStage } from '../support/stage/manual-stage.ts';

const notFound = { ...no('missing'), status: 404 };
const refused = { ...no('unauthorized'), status: 401 };
const probeKey = 'LATCHKEY-PROBE';

/** An agent that asks its upstream for something after a minute without a request. */
async function givenRunning(
  productIds: readonly string[] = [productKey],
  keys: readonly string[] = [],
): Promise<ManualStage> {
  const stage = await givenManual();
  stage.options = { ...stage.options, productIds };
  for (const licenseKey of keys) await stage.learn(licenseKey);
  stage.sync.run(stage.ending.signal).catch(() => undefined);
  await stage.time.settle();
  return stage;
}

/** What the next probes ask for, one a minute, each answered as the upstream would. */
async function probes(stage: ManualStage, count: number): Promise<string[]> {
  const asked: string[] = [];
  for (let each = 0; each < count; each += 1) {
    await stage.passes(minute);
    const request = await stage.request();
    const { licenseKey } = request;
    asked.push(`${request.productKey} ${licenseKey}`);
    await request.answer(licenseKey === probeKey ? notFound : stage.saysOf(licenseKey));
  }
  return asked;
}

describe('an upstream that nobody asked for anything for a while', () => {
  it('is asked for a known key, and what it says is in the store', async () => {
    await using stage = await givenRunning();
    await stage.passes(minute - 1);
    expect(await stage.requested()).toEqual([]);
    await stage.passes(1);
    await (await stage.request()).answer(stage.says(8));
    expect(stage.observation.license.uses).toBe(8);
  });

  it('is asked about every product in turn, and about one key of each after the other', async () => {
    await using stage = await givenRunning([productKey, 'brush'], ['A']);
    const [first, second_, third, fourth] = await probes(stage, 4);
    expect(new Set([first, third])).toEqual(new Set([`${productKey} A`, `${productKey} ${key}`]));
    expect([second_, fourth]).toEqual([`brush ${probeKey}`, `brush ${probeKey}`]);
  });

  it('is asked for a key that nobody has where only one is known, so that this one alone decides nothing', async () => {
    await using stage = await givenRunning();
    expect(await probes(stage, 2)).toEqual([`${productKey} ${key}`, `${productKey} ${probeKey}`]);
  });

  it('is asked for coupons where no product is configured', async () => {
    await using stage = await givenRunning([]);
    await stage.passes(minute);
    expect(stage.arrivedCoupons).toMatchObject([{ kind: 'list', offset: 0 }]);
    expect(await stage.requested()).toEqual([]);
  });

  it('is asked nothing while a person has paused everything, and again once it may go on', async () => {
    await using stage = await givenRunning();
    stage.sync.uplink.pause();
    await stage.passes(10 * minute);
    expect(await stage.requested()).toEqual([]);
    stage.sync.uplink.resume();
    await stage.passes(minute);
    expect(await stage.requested()).toEqual([`verify ${key}`]);
  });

  it('is asked at once when the machine has slept', async () => {
    await using stage = await givenRunning();
    stage.sync.uplink.probeNow();
    expect(await stage.requested()).toEqual([`verify ${key}`]);
  });

  it('is asked no more once the process ends', async () => {
    await using stage = await givenRunning();
    stage.ending.abort();
    await stage.passes(10 * minute);
    expect(await stage.requested()).toEqual([]);
  });
});

describe('a probe', () => {
  it.each(['counter', 'state'] as const)(
    'lets nothing into the %s lane of its key meanwhile',
    async (lane) => {
      await using stage = await givenRunning();
      await stage.passes(minute);
      const request = await stage.request();
      let isIn = false;
      void stage.lanes.enter(key, [lane], never).then(() => (isIn = true));
      await stage.time.settle();
      expect(isIn).toBe(false);
      await request.answer(stage.says(5));
      expect(isIn).toBe(true);
    },
  );

  it('that waits for its key as the process ends leaves time for the answer to what is in flight', async () => {
    await using stage = await givenManual();
    const use = await stage.record('usage');
    let end = 'none yet';
    stage.sync.run(stage.ending.signal).then(
      () => (end = 'in good order'),
      () => (end = 'a fault'),
    );
    const request = await stage.request();
    await stage.passes(minute);
    stage.ending.abort();
    await stage.time.settle();
    expect(end).toBe('none yet');
    await request.answer(stage.says(6));
    expect([end, stage.stateOf(use)]).toEqual(['in good order', 'delivered']);
  });

  it('that is answered opens the way again, whatever it asked for', async () => {
    await using stage = await givenRunning();
    const { uplink } = stage.sync;
    for (let time = 0; time < 3; time += 1) uplink.observe(lost, { owner: productKey, subject: key });
    expect(uplink.admission().admitted).toBe(false);
    await stage.passes(10 * second);
    await (await stage.request()).answer(lost);
    await stage.passes(10 * second);
    const request = await stage.request();
    expect(request.licenseKey).toBe(probeKey);
    await request.answer(notFound);
    expect(uplink.admission().admitted).toBe(true);
  });
});

describe('a secret that the upstream refuses', () => {
  it('is tried again by reads of that product, the others meanwhile by theirs', async () => {
    await using stage = await givenRunning([productKey, 'brush']);
    const { uplink } = stage.sync;
    uplink.observe(refused, { owner: productKey, subject: key });
    await stage.passes(second);
    const again = await stage.request();
    expect(again.productKey).toBe(productKey);
    await again.answer(refused);
    expect(await probes(stage, 3)).toEqual(Array(3).fill(`brush ${probeKey}`));
    expect(uplink.refusedCredentials()).toEqual([productKey]);
  });

  it('is tried again after a quarter of an hour also where there is no other product to ask about', async () => {
    await using stage = await givenRunning();
    stage.sync.uplink.observe(refused, { owner: productKey, subject: key });
    await stage.passes(second);
    await (await stage.request()).answer(refused);
    await stage.passes(15 * minute - 1);
    expect(await stage.requested()).toEqual([]);
    await stage.passes(1);
    await (await stage.request()).answer(notFound);
    expect(stage.sync.uplink.refusedCredentials()).toEqual([]);
  });

  it('is used all the same to see whether an upstream that is away is back', async () => {
    await using stage = await givenRunning();
    const { uplink } = stage.sync;
    uplink.observe(refused, { owner: productKey, subject: key });
    for (let time = 0; time < 3; time += 1) uplink.observe(lost, { owner: productKey, subject: key });
    await stage.passes(10 * second);
    expect(await stage.requested()).toEqual([`verify ${key}`]);
  });

  it('is not used to see whether an upstream is there that answers', async () => {
    await using stage = await givenRunning();
    const { uplink } = stage.sync;
    uplink.observe(refused, { owner: productKey, subject: key });
    await stage.passes(second);
    await (await stage.request()).answer(refused);
    await stage.passes(10 * minute);
    expect([await stage.requested(), stage.arrivedCoupons]).toEqual([[], []]);
  });
});

describe('an API key that the upstream refuses', () => {
  it('is tried again by listing coupons, and used again once that is answered', async () => {
    await using stage = await givenRunning();
    const { uplink } = stage.sync;
    uplink.observe(refused, { owner: null, subject: 'coupons' });
    await stage.passes(second);
    const [request] = stage.arrivedCoupons.splice(0);
    expect(request?.kind).toBe('list');
    if (request?.kind === 'list')
      await request.answer({
        outcome: 'applied',
        value: { coupons: [], unreadable: [] },
        confirmedAt: 0,
        isCached: false,
      });
    expect(uplink.refusedCredentials()).toEqual([]);
  });
});
