import { array, assert, asyncProperty, constant, nat, oneof, record } from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { FileAnswer } from '../../../../src/features/leases/service/ports.ts';
import { FakeIssuer, HeldDevice } from '../support/holder-harness.ts';
import { hour, key, refusalOf, valueOf } from '../../../support/harness/service-harness.ts';
import { VirtualTime } from '../../../support/harness/virtual-clock.ts';

const asked = { licenseKey: key, productKey: null, act: 'take', replaces: null, isRefused: false } as const;

/** A machine without a network, and its vendor. */
async function offline(): Promise<{ issuer: FakeIssuer; device: HeldDevice } & AsyncDisposable> {
  const issuer = await FakeIssuer.start(new VirtualTime());
  issuer.network = 'away';
  const device = await HeldDevice.start(issuer, { activate: 'explicit' });
  return {
    issuer,
    device,
    async [Symbol.asyncDispose]() {
      await device[Symbol.asyncDispose]();
      await issuer[Symbol.asyncDispose]();
    },
  };
}

async function request(device: HeldDevice, isRefused = false): Promise<string> {
  return valueOf(await device.holder.requestFile({ ...asked, isRefused }));
}

async function install(device: HeldDevice, answer: FileAnswer): Promise<void> {
  valueOf(await device.holder.install(answer));
}

describe('files in any order', () => {
  it('an old answer that is installed again ends no later request, and its uses are counted', async () => {
    await using shop = await offline();
    const { device, issuer } = shop;
    const first = await issuer.answerFile(await request(device));
    await install(device, first);
    for (let use = 0; use < 5; use += 1) await device.change('usage');
    const second = await request(device);
    await install(device, first);
    expect(await request(device)).toBe(second);
    await install(device, await issuer.answerFile(second));
    expect(issuer.authority.license.uses).toBe(5);
    expect(device.held.confirmedUses).toEqual(device.held.uses);
  });

  it('the answer to an earlier request is taken over, and the later request stays unanswered', async () => {
    await using shop = await offline();
    const { device, issuer } = shop;
    await install(device, await issuer.answerFile(await request(device)));
    const second = await request(device);
    await issuer.time.advance(hour);
    const late = await issuer.answerFile(second);
    await device.change('usage');
    const third = await request(device, true);
    await install(device, late);
    expect(device.held.document).toMatchObject({ text: 'lease' in late ? late.lease : '' });
    expect(await request(device)).toBe(third);
    await install(device, await issuer.answerFile(third));
    expect(issuer.authority.license.uses).toBe(1);
  });

  it('a machine that was set back to an earlier state is in step again after one more file', async () => {
    await using shop = await offline();
    const { device, issuer } = shop;
    await install(device, await issuer.answerFile(await request(device)));
    await device.change('usage');
    const earlier = device.held;
    for (let round = 0; round < 3; round += 1) {
      await device.change('usage');
      await install(device, await issuer.answerFile(await request(device)));
    }
    device.store.heldLeases.put(earlier);
    const answer = await issuer.answerFile(await request(device));
    expect(answer).toHaveProperty('sequence');
    await install(device, answer);
    await install(device, await issuer.answerFile(await request(device)));
    expect(device.held.confirmedUses).toEqual(device.held.uses);
    expect(await device.verify()).toBe(`enabled ${issuer.authority.license.uses} fresh`);
  });

  it('a file about the order of other requests changes nothing', async () => {
    await using shop = await offline();
    const { device, issuer } = shop;
    await install(device, await issuer.answerFile(await request(device)));
    const earlier = device.held;
    await install(device, await issuer.answerFile(await request(device)));
    device.store.heldLeases.put(earlier);
    const sequence = await issuer.answerFile(await request(device));
    await install(device, sequence);
    const before = device.held;
    expect(refusalOf(await device.holder.install(sequence))).toBe('lease_invalid');
    expect(device.held).toEqual(before);
  });

  it('whatever file is signed and installed in whatever order, the next requests heal, and no use is lost', async () => {
    const action = oneof(
      constant({ do: 'use' } as const),
      record({ do: constant('request' as const), isRefused: nat(3).map((one) => one === 0) }),
      record({ do: constant('sign' as const), index: nat() }),
      record({ do: constant('install' as const), index: nat() }),
    );
    await assert(
      asyncProperty(array(action, { maxLength: 30, size: 'max' }), async (actions) => {
        await using shop = await offline();
        const { device, issuer } = shop;
        const answers = [await issuer.answerFile(await request(device))];
        await install(device, answers[0] as FileAnswer);
        const requests: string[] = [];
        for (const each of actions) {
          await issuer.time.advance(1_000);
          if (each.do === 'use') await device.change('usage');
          if (each.do === 'request') requests.push(await request(device, each.isRefused));
          if (each.do === 'sign' && requests.length > 0)
            answers.push(await issuer.answerFile(requests[each.index % requests.length] as string));
          if (each.do === 'install')
            await device.holder.install(answers[each.index % answers.length] as FileAnswer);
        }
        for (let round = 0; round < 4; round += 1)
          await install(device, await issuer.answerFile(await request(device)));
        expect(device.held.confirmedUses).toEqual(device.held.uses);
        expect(issuer.authority.license.uses).toBe(device.held.uses.recorded);
      }),
      { numRuns: 12 },
    );
  });
});
