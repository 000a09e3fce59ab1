import { describe, expect, it } from 'vitest';
import { maxEndedActivations, type LeaseAnswer } from '../../../../src/features/leases/domain/lease.ts';
import type { Problem } from '../../../../src/domain/problem/problem.ts';
import { IssuingAuthority, saidIn, type Device } from '../support/lease-harness.ts';
import { day, hour, key, minute, second, valueOf } from '../../../support/harness/service-harness.ts';

/** The members of a refusal that is stored as an answer. */
async function refusalOf(asked: ReturnType<Device['ask']>): Promise<Problem> {
  const { answer }: { answer: LeaseAnswer } = valueOf(await asked);
  if (answer.kind !== 'refused') throw new Error(`not refused: ${answer.kind}`);
  return answer.problem;
}

async function leased(issuer: IssuingAuthority, name: string): Promise<Device> {
  const device = issuer.device(name);
  await device.lease();
  return device;
}

describe('a lease', () => {
  it('a lease has the license, its dates, the seats, the device and the nonce', async () => {
    await using issuer = await new IssuingAuthority().open({ seats: 3 });
    await leased(issuer, 'first');
    const device = issuer.device('a');
    const lease = await device.lease('take', { nonce: 'n'.repeat(16) });
    const { revision: _, ...license } = issuer.license;
    expect(lease).toEqual({
      activationId: issuer.activation(device).activationId,
      productKey: 'press',
      license: { ...license, buyerEmail: '' },
      issuedAt: issuer.now,
      expiresAt: issuer.now + 30 * day,
      refreshAt: issuer.now + day,
      rev: issuer.now,
      seats: { limit: 3, taken: 2 },
      device: device.thumbprint,
      nonce: 'n'.repeat(16),
    });
  });

  it('a lease has the e-mail address of the buyer only if the product says so', async () => {
    await using issuer = await new IssuingAuthority().open({ showsEmail: true });
    expect((await issuer.device('a').lease()).license.buyerEmail).toBe('a@example.com');
  });

  it('without a number of seats, each device gets a lease', async () => {
    await using issuer = await new IssuingAuthority().open({ seats: null });
    for (let count = 0; count < 5; count += 1) {
      expect((await issuer.device(`device-${count}`).lease()).seats).toBeNull();
    }
  });

  it('the name of a device stays until it sends another one', async () => {
    await using issuer = await new IssuingAuthority().open();
    const device = issuer.device('a');
    await device.lease('take', { deviceName: 'studio' });
    await device.lease('renew', { deviceName: null });
    expect(issuer.activation(device).deviceName).toBe('studio');
    await device.lease('renew', { deviceName: 'laptop' });
    expect(issuer.activation(device).deviceName).toBe('laptop');
  });

  it('documents of a device have rising numbers, also within one millisecond', async () => {
    await using issuer = await new IssuingAuthority().open();
    const device = issuer.device('a');
    const [first, second_] = [await device.lease(), await device.lease('renew')];
    expect(second_.rev).toBe(first.rev + 1);
    const ended = valueOf(await device.ask('end')).answer;
    expect(ended).toMatchObject({ kind: 'notice', notice: { rev: first.rev + 2, state: 'ended' } });
  });
});

describe('taking a seat', () => {
  it('a device gets no seat if all are taken, and hears which devices have them', async () => {
    await using issuer = await new IssuingAuthority().open({ seats: 2 });
    const one = await leased(issuer, 'one');
    const two = await leased(issuer, 'two');
    const { code, holders } = await refusalOf(issuer.device('late').ask('take'));
    expect(code).toBe('no_seat_left');
    const holder = (device: Device) => ({
      activationId: issuer.activation(device).activationId,
      deviceName: 'studio',
      lastSeenAt: issuer.now,
      freesAt: issuer.now + 120 * day,
    });
    expect(holders).toHaveLength(2);
    expect(holders).toEqual(expect.arrayContaining([holder(one), holder(two)]));
  });

  it('a refusal lists at most 10 devices', async () => {
    await using issuer = await new IssuingAuthority().open({ seats: 12 });
    for (let count = 0; count < 12; count += 1) await issuer.device(`device-${count}`).lease();
    expect((await refusalOf(issuer.device('late').ask('take'))).holders).toHaveLength(10);
  });

  it('a refused device takes no seat, and its uses are counted once it has a seat', async () => {
    await using issuer = await new IssuingAuthority().open({ seats: 1 });
    const owner = await leased(issuer, 'owner');
    const late = issuer.device('late');
    late.uses = { recorded: 4, returned: 0 };
    await late.ask('take');
    expect(issuer.license.uses).toBe(0);
    expect(issuer.activation(late)).toMatchObject({
      state: 'ended',
      seatUntil: 0,
      uses: { recorded: 0, returned: 0 },
    });
    await owner.ask('end');
    await late.lease('take');
    expect(issuer.license.uses).toBe(4);
    await late.lease('renew');
    expect(issuer.license.uses).toBe(4);
  });

  it('a device that has a seat may take one again', async () => {
    await using issuer = await new IssuingAuthority().open({ seats: 1 });
    const device = issuer.device('a');
    const first = await device.lease();
    const again = await device.lease();
    expect(again).toMatchObject({ activationId: first.activationId, seats: { limit: 1, taken: 1 } });
  });

  it('a device keeps its seat if the number of seats goes down', async () => {
    await using issuer = await new IssuingAuthority().open({ seats: 2 });
    const one = await leased(issuer, 'one');
    const two = await leased(issuer, 'two');
    issuer.setTerms({ seats: 1 });
    expect(await one.lease('renew')).toMatchObject({ seats: { limit: 1, taken: 2 } });
    expect(await two.lease('renew')).toMatchObject({ seats: { limit: 1, taken: 2 } });
  });

  it('a seat is taken until `hold` after the last lease', async () => {
    await using issuer = await new IssuingAuthority().open({ seats: 1, termMs: 30 * day, holdMs: 90 * day });
    const owner = await leased(issuer, 'owner');
    const late = issuer.device('late');
    issuer.pass(120 * day - second);
    expect(saidIn(await late.ask('take'))).toBe('no_seat_left');
    issuer.pass(second);
    expect(saidIn(await late.ask('take'))).toBe('lease');
    expect(saidIn(await owner.ask('renew'))).toBe('no_seat_left');
  });

  it('a floating seat is free as soon as the lease has expired', async () => {
    await using issuer = await new IssuingAuthority().open({ seats: 1, termMs: 5 * minute, holdMs: 0 });
    const crashed = await leased(issuer, 'crashed');
    issuer.pass(5 * minute);
    const next = issuer.device('next');
    await next.lease();
    expect(saidIn(await crashed.ask('renew'))).toBe('no_seat_left');
    issuer.pass(5 * minute);
    expect(saidIn(await crashed.ask('renew'))).toBe('lease');
  });

  it('a seat stays taken until the longest lease of its device has expired', async () => {
    await using issuer = await new IssuingAuthority().open({ seats: 1, holdMs: 0 });
    const owner = issuer.device('owner');
    await owner.lease('take', {}, { until: issuer.now + 300 * day });
    await owner.lease('renew');
    const late = issuer.device('late');
    issuer.pass(300 * day - second);
    expect(saidIn(await late.ask('take'))).toBe('no_seat_left');
    issuer.pass(second);
    expect(saidIn(await late.ask('take'))).toBe('lease');
  });
});

describe('giving a seat back', () => {
  it('a seat that is given back is free at once three times in 30 days', async () => {
    await using issuer = await new IssuingAuthority().open({ seats: 1, holdMs: 90 * day });
    for (let move = 0; move < 3; move += 1) {
      const device = issuer.device(`device-${move}`);
      await device.lease();
      expect(saidIn(await device.ask('end'))).toBe('ended');
      issuer.pass(day);
    }
    const fourth = issuer.device('fourth');
    await fourth.lease();
    const { expiresAt } = issuer.activation(fourth);
    expect(saidIn(await fourth.ask('end'))).toBe('ended');
    const fifth = issuer.device('fifth');
    expect((await refusalOf(fifth.ask('take'))).holders).toMatchObject([{ freesAt: expiresAt }]);
    issuer.pass(expiresAt - issuer.now);
    expect(saidIn(await fifth.ask('take'))).toBe('lease');
  });

  it('after 30 days, seats are free at once again', async () => {
    await using issuer = await new IssuingAuthority().open({ seats: 1 });
    for (let move = 0; move < 3; move += 1) {
      const device = issuer.device(`device-${move}`);
      await device.lease();
      await device.ask('end');
    }
    issuer.pass(30 * day);
    const device = await leased(issuer, 'later');
    await device.ask('end');
    expect(saidIn(await issuer.device('next').ask('take'))).toBe('lease');
  });

  it('a seat whose lease has expired is free at once, and this is no move', async () => {
    await using issuer = await new IssuingAuthority().open({ seats: 1, termMs: hour, holdMs: 90 * day });
    for (let count = 0; count < 6; count += 1) {
      const device = issuer.device(`device-${count}`);
      await device.lease();
      issuer.pass(hour);
      await device.ask('end');
    }
    expect(issuer.store.activations.movesSince(key, 0)).toBe(0);
  });

  it('moves are still known after many other devices were refused', async () => {
    await using issuer = await new IssuingAuthority().open({ seats: 1 });
    for (let move = 0; move < 3; move += 1) {
      const device = issuer.device(`device-${move}`);
      await device.lease();
      await device.ask('end');
    }
    const owner = issuer.device('owner');
    await owner.lease();
    for (let count = 0; count <= maxEndedActivations + 5; count += 1) {
      issuer.pass(1);
      await issuer.device(`guess-${count}`).ask('take');
    }
    expect(issuer.store.activations.count({ state: 'ended' })).toBeLessThanOrEqual(maxEndedActivations + 3);
    await owner.ask('end');
    expect(saidIn(await issuer.device('next').ask('take'))).toBe('no_seat_left');
  });

  it('of devices that crashed without giving their seat back, only the latest are remembered', async () => {
    await using issuer = await new IssuingAuthority().open({
      seats: 1,
      holdMs: 0,
      termMs: minute,
      refreshMs: 10 * second,
    });
    for (let count = 0; count <= maxEndedActivations + 5; count += 1) {
      await leased(issuer, `container-${count}`);
      issuer.pass(2 * minute);
    }
    expect(issuer.store.activations.count({})).toBe(maxEndedActivations + 1);
  });

  it('a device that has ended may take a seat again, and gets a notice if it renews', async () => {
    await using issuer = await new IssuingAuthority().open({ seats: 1 });
    const device = issuer.device('a');
    const { activationId } = await device.lease();
    await device.ask('end');
    expect(saidIn(await device.ask('end'))).toBe('ended');
    expect(saidIn(await device.ask('renew'))).toBe('ended');
    expect(await device.lease('take')).toMatchObject({ activationId });
    await device.lease('renew');
  });

  it('a device that was never active gets a notice if it renews or ends', async () => {
    await using issuer = await new IssuingAuthority().open();
    for (const act of ['renew', 'end'] as const) {
      const device = issuer.device(act);
      expect(saidIn(await device.ask(act))).toBe('ended');
      expect(issuer.activation(device)).toMatchObject({ state: 'ended', seatUntil: 0 });
    }
  });

  it('uses that an ended device has still recorded are counted', async () => {
    await using issuer = await new IssuingAuthority().open();
    const device = issuer.device('a');
    await device.lease();
    await issuer.endActivation(device);
    await device.ask('renew', { uses: { recorded: 2, returned: 0 } });
    expect(issuer.license.uses).toBe(2);
  });
});

describe('taking over the seat of another device', () => {
  it('a device takes over the seat of a device that has not renewed within `refresh`', async () => {
    await using issuer = await new IssuingAuthority().open({ seats: 1, refreshMs: day });
    const lost = await leased(issuer, 'lost');
    const { activationId } = issuer.activation(lost);
    issuer.pass(day);
    const device = issuer.device('new');
    expect(await device.lease('take', { replaces: activationId })).toMatchObject({
      seats: { limit: 1, taken: 1 },
    });
    expect(issuer.activation(lost)).toMatchObject({ state: 'replaced', movedAt: [issuer.now] });
    expect(saidIn(await lost.ask('renew'))).toBe('replaced');
    expect(saidIn(await lost.ask('end'))).toBe('replaced');
    expect(saidIn(await lost.ask('take'))).toBe('no_seat_left');
  });

  it('the seat of a device that has just renewed is not taken over until the time that the refusal names', async () => {
    await using issuer = await new IssuingAuthority().open({ seats: 2, refreshMs: day });
    const busy = await leased(issuer, 'busy');
    await leased(issuer, 'other');
    const { activationId } = issuer.activation(busy);
    issuer.pass(day - 1);
    const refusal = await refusalOf(issuer.device('new').ask('take', { replaces: activationId }));
    expect(refusal).toMatchObject({ code: 'no_seat_left', holders: [{ activationId: activationId }] });
    expect(issuer.activation(busy)).toMatchObject({ state: 'active', movedAt: [] });
    const from = Date.parse(/from (\S+) on/.exec(refusal.detail)?.[1] ?? '');
    issuer.pass(from - issuer.now);
    expect(await issuer.device('next').lease('take', { replaces: activationId })).toMatchObject({
      issuedAt: issuer.now,
    });
  });

  it('without a move that is left, a seat is not taken over, and the refusal says when it is free', async () => {
    await using issuer = await new IssuingAuthority().open({ seats: 1 });
    for (let move = 0; move < 3; move += 1) {
      const device = issuer.device(`device-${move}`);
      await device.lease();
      await device.ask('end');
    }
    const lost = await leased(issuer, 'lost');
    issuer.pass(2 * day);
    const { activationId, expiresAt } = issuer.activation(lost);
    const device = issuer.device('new');
    expect(await refusalOf(device.ask('take', { replaces: activationId }))).toMatchObject({
      code: 'no_move_left',
      freesAt: expiresAt,
    });
    expect(issuer.activation(lost)).toMatchObject({ state: 'active', seatUntil: expiresAt + 90 * day });
    issuer.pass(expiresAt - issuer.now);
    expect(saidIn(await device.ask('take', { replaces: activationId }))).toBe('lease');
  });

  it('a device that is replaced without a move keeps its seat until its lease expires, if another seat is free', async () => {
    await using issuer = await new IssuingAuthority().open({ seats: 2 });
    for (let move = 0; move < 3; move += 1) {
      const device = issuer.device(`device-${move}`);
      await device.lease();
      await device.ask('end');
    }
    const lost = await leased(issuer, 'lost');
    issuer.pass(2 * day);
    const { activationId, expiresAt } = issuer.activation(lost);
    expect(await issuer.device('new').lease('take', { replaces: activationId })).toMatchObject({
      seats: { limit: 2, taken: 2 },
    });
    expect(issuer.activation(lost)).toMatchObject({ state: 'replaced', seatUntil: expiresAt });
  });

  it('an activation of another license, without a seat or of the device itself is not replaced', async () => {
    await using issuer = await new IssuingAuthority().open({ seats: 2 });
    await issuer.sell('KEY-2');
    const foreign = issuer.device('foreign');
    const other = await foreign.lease('take', { licenseKey: 'KEY-2' });
    const gone = issuer.device('gone');
    const ended = await gone.lease();
    await gone.ask('end');
    issuer.pass(2 * day);
    const device = issuer.device('a');
    const own = await device.lease('take', { replaces: other.activationId });
    await device.lease('take', { replaces: ended.activationId });
    await device.lease('take', { replaces: own.activationId });
    await device.lease('take', { replaces: 'none' });
    const states = issuer.store.activations
      .list({}, { limit: 10, offset: 0 })
      .map(({ device: of, state }) => [of, state]);
    expect(Object.fromEntries(states)).toEqual({
      [foreign.thumbprint]: 'active',
      [gone.thumbprint]: 'ended',
      [device.thumbprint]: 'active',
    });
  });
});
