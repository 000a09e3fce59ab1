import { describe, expect, it } from 'vitest';
import { HolderModel } from '../property/holder-model.ts';
import { IssuingAuthority, saidIn } from '../support/lease-harness.ts';
import { day, key } from '../../../support/harness/service-harness.ts';

describe('uses that devices report', () => {
  it('a device that never had a seat changes no count, whatever it asks for', async () => {
    await using issuer = await new IssuingAuthority().open({ seats: 1 });
    const owner = issuer.device('owner');
    await owner.lease();
    owner.uses = { recorded: 50, returned: 0 };
    await owner.lease('renew');
    const stranger = issuer.device('stranger');
    for (const act of ['take', 'renew', 'end'] as const) {
      stranger.uses = { recorded: 0, returned: stranger.uses.returned + 20 };
      await stranger.ask(act);
    }
    await issuer.setEnabled(false);
    expect(saidIn(await stranger.ask('take'))).toBe('disabled');
    expect(issuer.license.uses).toBe(50);
  });

  it('a blocked device changes no count, although it had a lease', async () => {
    await using issuer = await new IssuingAuthority().open();
    const device = issuer.device('blocked');
    await device.lease();
    device.uses = { recorded: 2, returned: 0 };
    await device.lease('renew');
    await issuer.blockActivation(device);
    for (const [act, said] of [
      ['renew', 'blocked'],
      ['take', 'activation_blocked'],
      ['end', 'blocked'],
    ] as const) {
      device.uses = { recorded: device.uses.recorded + 1_000, returned: 0 };
      expect(saidIn(await device.ask(act))).toBe(said);
    }
    expect(issuer.license.uses).toBe(2);
  });

  it('a device that has lost its seat reports its uses, although no seat is free', async () => {
    await using issuer = await new IssuingAuthority().open({ seats: 1, termMs: day, holdMs: 0 });
    const device = issuer.device('away');
    await device.lease();
    issuer.pass(day);
    await issuer.device('next').lease();
    device.uses = { recorded: 3, returned: 0 };
    expect(saidIn(await device.ask('renew'))).toBe('no_seat_left');
    expect(issuer.license.uses).toBe(3);
    issuer.pass(day);
    await device.lease('renew');
    expect(issuer.license.uses).toBe(3);
  });

  it('more than 10,000 uses of a refused device arrive in steps once it has a seat', async () => {
    await using issuer = await new IssuingAuthority().open({ seats: 1 });
    const owner = issuer.device('owner');
    await owner.lease();
    const holder = new HolderModel('late', key);
    holder.use({ recorded: 25_000, returned: 0 });
    const exchange = async (): Promise<string> => {
      const request = holder.request({ isAsked: true, replaces: null, now: issuer.now });
      if (request === null) return 'nothing';
      const result = await issuer.answer(request);
      holder.receive(request, result);
      return saidIn(result);
    };
    expect([await exchange(), await exchange()]).toEqual(['no_seat_left', 'no_seat_left']);
    expect(issuer.license.uses).toBe(0);
    await owner.ask('end');
    expect([await exchange(), await exchange(), await exchange()]).toEqual(['lease', 'lease', 'lease']);
    expect(issuer.license.uses).toBe(25_000);
    expect(holder.hasSomethingToSay).toBe(false);
  });
});
