import { describe, expect, it } from 'vitest';
import { IssuingAuthority, saidIn } from '../support/lease-harness.ts';
import { day, hour, key, refusalOf, valueOf } from '../../../support/harness/service-harness.ts';
import { mayWait } from '../../../../src/features/leases/service/services.ts';

describe('the license of a request', () => {
  it('an unknown license, a license of another product and a foreign product are not found, and nothing changes', async () => {
    await using issuer = await new IssuingAuthority().open();
    await issuer.addProduct('brush');
    await issuer.sell('OF-BRUSH', 'brush');
    const device = issuer.device('a');
    const contents = issuer.contents();
    const asked = [
      device.ask('take', { licenseKey: 'NONE' }),
      device.ask('take', { licenseKey: ' ' }),
      device.ask('take', { licenseKey: 'OF-BRUSH' }),
      device.ask('take', { productKey: 'brush' }),
      device.ask('take', { productKey: 'none' }),
      device.ask('take', {}, { accountId: 'other' } as object),
    ];
    for (const result of await Promise.all(asked)) expect(refusalOf(result)).toBe('license_not_found');
    expect(issuer.contents()).toEqual(contents);
    expect(saidIn(await device.ask('take', {}, { accountId: 'default' } as object))).toBe('lease');
  });

  it('spellings of a license key share one set of activations', async () => {
    await using issuer = await new IssuingAuthority().open({ seats: 2 });
    await issuer.sell('ABCDE-FGHJK-LMNPQ-RSTUV');
    const spellings = [
      'ABCDE-FGHJK-LMNPQ-RSTUV',
      ' abcde-fghjk-lmnpq-rstuv ',
      'ABCDE\u2011FGHJK-LMNPQ-RSTUV',
    ];
    const results = [];
    for (const [index, licenseKey] of spellings.entries()) {
      results.push(saidIn(await issuer.device(`device-${index}`).ask('take', { licenseKey })));
    }
    expect(results).toEqual(['lease', 'lease', 'no_seat_left']);
  });

  it('a disabled license gets a notice, and no seat is taken', async () => {
    await using issuer = await new IssuingAuthority().open({ seats: 1 });
    const device = issuer.device('a');
    await device.lease();
    const { seatUntil } = issuer.activation(device);
    await issuer.setEnabled(false);
    issuer.pass(day);
    const { answer } = valueOf(await device.ask('renew', { uses: { recorded: 1, returned: 0 } }));
    expect(answer).toEqual({
      kind: 'notice',
      notice: {
        activationId: issuer.activation(device).activationId,
        licenseKey: key,
        state: 'disabled',
        rev: issuer.now,
        issuedAt: issuer.now,
        device: device.thumbprint,
      },
    });
    expect(issuer.license.uses).toBe(1);
    expect(issuer.activation(device)).toMatchObject({ state: 'active', seatUntil });
    const late = issuer.device('late');
    expect(saidIn(await late.ask('take'))).toBe('disabled');
    expect(issuer.activation(late)).toMatchObject({ state: 'ended', seatUntil: 0 });
  });

  it('a license that is enabled again gets a lease again', async () => {
    await using issuer = await new IssuingAuthority().open({ seats: 1 });
    const device = issuer.device('a');
    await device.lease();
    await issuer.setEnabled(false);
    await device.ask('renew');
    await issuer.setEnabled(true);
    expect(saidIn(await device.ask('renew'))).toBe('lease');
  });

  it('a device of a disabled license replaces no other device, and may give its seat back', async () => {
    await using issuer = await new IssuingAuthority().open({ seats: 2 });
    const [one, two] = [issuer.device('one'), issuer.device('two')];
    const { activationId } = await one.lease();
    await two.lease();
    await issuer.setEnabled(false);
    issuer.pass(2 * day);
    expect(saidIn(await two.ask('take', { replaces: activationId }))).toBe('disabled');
    expect(issuer.activation(one).state).toBe('active');
    expect(saidIn(await one.ask('end'))).toBe('ended');
    expect(issuer.activation(one).seatUntil).toBe(issuer.now);
  });
});

describe('uses in requests', () => {
  it('totals are counted once, recorded before returned, with one entry of the history for each', async () => {
    await using issuer = await new IssuingAuthority().open();
    const device = issuer.device('a');
    await device.lease('take', { uses: { recorded: 3, returned: 0 } });
    const lease = await device.lease('renew', { uses: { recorded: 5, returned: 6 } });
    expect(lease.license.uses).toBe(0);
    await device.lease('renew', { uses: { recorded: 6, returned: 6 } });
    expect(issuer.license.uses).toBe(1);
    const history = issuer.store.history.list(key, { limit: 10, offset: 0 });
    expect(history.map(({ change, before, after }) => [change, before.uses, after.uses])).toEqual([
      ['usage', 0, 1],
      ['decrease', 5, 0],
      ['usage', 3, 5],
      ['usage', 0, 3],
    ]);
    expect(history.every(({ credential }) => credential === 'device')).toBe(true);
  });

  it('totals that go back or grow too much are refused, and nothing changes', async () => {
    await using issuer = await new IssuingAuthority().open();
    const device = issuer.device('a');
    await device.lease('take', { uses: { recorded: 5, returned: 2 } });
    const contents = issuer.contents();
    for (const uses of [
      { recorded: 4, returned: 2 },
      { recorded: 5, returned: 1 },
      { recorded: 10_006, returned: 2 },
      { recorded: 5, returned: 10_003 },
    ]) {
      const refused = await device.ask('renew', { uses });
      const known = { last: 1, uses: { recorded: 5, returned: 2 } };
      expect(refused).toMatchObject({ problem: { code: 'out_of_sequence', known } });
      const challenge = String(refused.ok ? null : refused.problem.known?.challenge);
      expect(refusalOf(await device.ask('renew', { uses, challenge }))).toBe('lease_request_invalid');
    }
    expect(issuer.contents()).toEqual(contents);
    await device.lease('renew', { uses: { recorded: 10_005, returned: 2 } });
    expect(issuer.license.uses).toBe(10_003);
  });

  it('devices of a license count together', async () => {
    await using issuer = await new IssuingAuthority().open();
    await issuer.device('one').lease('take', { uses: { recorded: 2, returned: 0 } });
    await issuer.device('two').lease('take', { uses: { recorded: 3, returned: 0 } });
    expect(issuer.license.uses).toBe(5);
  });
});

describe('the end of a lease', () => {
  it('a lease is not longer than the key that signs it', async () => {
    await using issuer = await new IssuingAuthority().open();
    issuer.keyNotAfter = issuer.now + 10 * day;
    const device = issuer.device('a');
    expect((await device.lease()).expiresAt).toBe(issuer.keyNotAfter);
    issuer.pass(10 * day);
    const contents = issuer.contents();
    expect(refusalOf(await device.ask('renew'))).toBe('leases_not_set_up');
    expect(issuer.contents()).toEqual(contents);
  });

  it('a person chooses the end of a lease, and the audit has it', async () => {
    await using issuer = await new IssuingAuthority().open();
    const device = issuer.device('a');
    const until = issuer.now + 300 * day;
    const lease = await device.lease('take', {}, { until, isFile: true });
    expect(lease).toMatchObject({ expiresAt: until, refreshAt: issuer.now + day });
    const [entry] = issuer.store.audit.list({ act: 'lease.sign' }, { limit: 10, offset: 0 });
    expect(entry).toMatchObject({ actor: 'device', subject: lease.activationId });
    expect(entry?.detail).toBe('a lease until 2026-10-28T00:00:00+00:00');
  });

  it('an end in the past, or after the key, is refused, and nothing changes', async () => {
    await using issuer = await new IssuingAuthority().open();
    const device = issuer.device('a');
    const contents = issuer.contents();
    for (const [until, code] of [
      [issuer.now, 'past'],
      [issuer.keyNotAfter + 1, 'out_of_range'],
    ] as const) {
      const refused = await device.ask('take', {}, { until, isFile: true });
      expect(refused).toMatchObject({
        ok: false,
        problem: { code: 'parameters_invalid', errors: [{ parameter: 'until', code }] },
      });
    }
    expect(issuer.contents()).toEqual(contents);
  });

  it('a file that was refused is signed once a seat is free, and its uses are counted once', async () => {
    await using issuer = await new IssuingAuthority().open({ seats: 1 });
    const owner = issuer.device('owner');
    await owner.lease();
    const file = issuer.device('late').sign('take', { uses: { recorded: 3, returned: 0 } });
    expect(saidIn(await issuer.answer(file, { isFile: true }))).toBe('no_seat_left');
    expect(saidIn(await issuer.answer(file, { isFile: true }))).toBe('no_seat_left');
    await issuer.endActivation(owner);
    const { answer } = valueOf(await issuer.answer(file, { isFile: true }));
    expect(answer.kind).toBe('lease');
    expect(valueOf(await issuer.answer(file, { isFile: true })).answer).toEqual(answer);
    expect(issuer.license.uses).toBe(3);
  });

  it('a signed file gets no other end, and the error names the end that it has', async () => {
    await using issuer = await new IssuingAuthority().open();
    const file = issuer.device('a').sign('take');
    const until = issuer.now + 300 * day;
    const { answer } = valueOf(await issuer.answer(file, { isFile: true, until: until + 1 }));
    expect(await issuer.answer(file, { isFile: true, until: until + day })).toMatchObject({
      ok: false,
      problem: {
        code: 'parameters_invalid',
        errors: [{ parameter: 'until', detail: expect.stringContaining('until 2026-10-28T00:00:00+00:00') }],
      },
    });
    for (const same of [until + 1, until, null]) {
      expect(valueOf(await issuer.answer(file, { isFile: true, until: same })).answer).toEqual(answer);
    }
  });

  it('notices for files are audited, refusals, repetitions and renewals of devices are not', async () => {
    await using issuer = await new IssuingAuthority().open({ seats: 1 });
    const device = issuer.device('a');
    await device.lease();
    const end = device.sign('end');
    await issuer.answer(end, { isFile: true });
    await issuer.answer(end, { isFile: true });
    await issuer.device('b').lease();
    await issuer.device('c').ask('take', {}, { isFile: true });
    const entries = issuer.store.audit.list({ act: 'lease.sign' }, { limit: 10, offset: 0 });
    expect(entries.map(({ detail }) => detail)).toEqual(['a notice: ended']);
  });
});

describe('endActivation and blockActivation', () => {
  it('an operator ends an activation, whose device may take a seat again', async () => {
    await using issuer = await new IssuingAuthority().open({ seats: 1 });
    const device = issuer.device('a');
    await device.lease();
    expect(await issuer.endActivation(device)).toMatchObject({
      state: 'ended',
      seatUntil: issuer.now,
      movedAt: [issuer.now],
    });
    expect(saidIn(await device.ask('renew'))).toBe('ended');
    expect(saidIn(await device.ask('take'))).toBe('lease');
  });

  it('a blocked device gets a notice if it renews or ends, and no seat', async () => {
    await using issuer = await new IssuingAuthority().open({ seats: 1 });
    const device = issuer.device('a');
    await device.lease();
    expect(await issuer.blockActivation(device)).toMatchObject({ state: 'blocked', seatUntil: issuer.now });
    expect(saidIn(await device.ask('renew'))).toBe('blocked');
    expect(saidIn(await device.ask('end'))).toBe('blocked');
    expect(saidIn(await device.ask('take'))).toBe('activation_blocked');
    expect(saidIn(await issuer.device('next').ask('take'))).toBe('lease');
  });

  it('a device that has ended can be blocked, and `end` does not lift a block', async () => {
    await using issuer = await new IssuingAuthority().open();
    const device = issuer.device('a');
    await device.lease();
    await device.ask('end');
    await issuer.blockActivation(device);
    expect(await issuer.endActivation(device)).toMatchObject({ state: 'blocked' });
    expect(saidIn(await device.ask('take'))).toBe('activation_blocked');
  });

  it('what changes is audited once, and a second time changes nothing', async () => {
    await using issuer = await new IssuingAuthority().open();
    const device = issuer.device('a');
    await device.lease();
    const { activationId } = issuer.activation(device);
    await issuer.endActivation(device);
    await issuer.endActivation(device);
    await issuer.blockActivation(device);
    await issuer.blockActivation(device);
    const entries = issuer.store.audit.list({ subject: activationId }, { limit: 10, offset: 0 });
    expect(entries.map(({ act, detail }) => [act, detail])).toEqual([
      ['activation.block', 'product press'],
      ['activation.end', 'product press'],
    ]);
  });

  it('an operator can free a seat later that was not free at once', async () => {
    await using issuer = await new IssuingAuthority().open({ seats: 1 });
    for (let move = 0; move < 3; move += 1) {
      const device = issuer.device(`device-${move}`);
      await device.lease();
      await device.ask('end');
    }
    const device = issuer.device('a');
    await device.lease('take', {}, { until: issuer.now + 300 * day });
    expect((await issuer.endActivation(device)).seatUntil).toBe(issuer.now + 300 * day);
    issuer.pass(31 * day);
    expect((await issuer.endActivation(device)).seatUntil).toBe(issuer.now);
  });

  it('an activation that does not exist, or of another account, is not found', async () => {
    await using issuer = await new IssuingAuthority().open();
    const device = issuer.device('a');
    await device.lease();
    const { activationId } = issuer.activation(device);
    const contents = issuer.contents();
    for (const command of [
      { activationId: 'none', accountId: null },
      { activationId, accountId: 'other' },
    ]) {
      for (const name of ['endActivation', 'blockActivation'] as const) {
        expect(refusalOf(await issuer.writer.write(name, command))).toBe('activation_not_found');
      }
    }
    expect(issuer.contents()).toEqual(contents);
    const own = await issuer.writer.write('endActivation', { activationId, accountId: 'default' });
    expect(valueOf(own).state).toBe('ended');
  });
});

describe('mayWait', () => {
  it('a renewal before one is due waits, until its license or activation changes', async () => {
    await using issuer = await new IssuingAuthority().open({ seats: 1 });
    const device = issuer.device('a');
    const { refreshAt } = await device.lease();
    const renewal = device.sign('renew', { licenseKey: ' KEY-1' });
    const wait = () => mayWait(issuer.store, renewal, issuer.now);
    expect(await wait()).toEqual({ licenseKey: key, until: refreshAt });
    await issuer.setEnabled(false);
    expect(await wait()).toBeNull();
    await issuer.setEnabled(true);
    expect(await wait()).not.toBeNull();
    await issuer.endActivation(device);
    expect(await wait()).toBeNull();
    expect(await mayWait(issuer.store, issuer.device('b').sign('renew'), issuer.now)).toBeNull();
    const unknown = device.sign('renew', { licenseKey: 'NONE' });
    expect(await mayWait(issuer.store, unknown, issuer.now)).toBeNull();
  });

  it('a renewal that is due does not wait', async () => {
    await using issuer = await new IssuingAuthority().open();
    const device = issuer.device('a');
    await device.lease();
    issuer.pass(day - hour);
    expect(await mayWait(issuer.store, device.sign('renew'), issuer.now)).not.toBeNull();
    issuer.pass(hour);
    expect(await mayWait(issuer.store, device.sign('renew'), issuer.now)).toBeNull();
  });
});
