import { describe, expect, it } from 'vitest';
import { buildRequest, thumbprint } from '../support/activation-builders.ts';
import { IssuingAuthority, saidIn, signed } from '../support/lease-harness.ts';
import { day, hour, key, refusalOf, valueOf } from '../../../support/harness/service-harness.ts';
import type { KnownSequence } from '../../../../src/features/leases/domain/lease.ts';
import type { Result } from '../../../../src/domain/problem/problem.ts';

/** What a refusal `out_of_sequence` says. */
function outOfSequence(result: Result<unknown>): KnownSequence {
  if (result.ok || result.problem.code !== 'out_of_sequence') throw new Error(JSON.stringify(result));
  return result.problem.known as KnownSequence;
}

describe('order and repetition of requests', () => {
  it('the first request has the number 1', async () => {
    await using issuer = await new IssuingAuthority().open();
    const device = issuer.device('a');
    const early = await device.ask('take', { seq: 2 });
    expect(outOfSequence(early)).toMatchObject({ last: 0, uses: { recorded: 0, returned: 0 } });
    expect(issuer.store.activations.list({}, { limit: 10, offset: 0 })).toEqual([]);
    expect(saidIn(await device.ask('take'))).toBe('lease');
  });

  it('a repeated request gets the stored answer, and nothing is counted again', async () => {
    await using issuer = await new IssuingAuthority().open();
    const device = issuer.device('a');
    const request = device.sign('take', { uses: { recorded: 3, returned: 0 } });
    const first = await issuer.answer(request);
    const contents = issuer.contents();
    issuer.pass(hour);
    const second = await issuer.answer(request);
    expect(valueOf(second).answer).toEqual(valueOf(first).answer);
    expect(second).toMatchObject({ unchanged: true, value: { uses: { recorded: 0, returned: 0 } } });
    expect(issuer.contents()).toEqual(contents);
    expect(issuer.license.uses).toBe(3);
  });

  it('a repeated request gets no lease that is longer than the key that signs it now', async () => {
    await using issuer = await new IssuingAuthority().open();
    const request = issuer.device('a').sign('take');
    await issuer.answer(request);
    const keyNotAfter = issuer.now + day;
    const { answer } = valueOf(await issuer.answer(request, { keyNotAfter }));
    expect(answer).toMatchObject({ kind: 'lease', lease: { expiresAt: keyNotAfter } });
  });

  it('a refusal is answered again as well, and the next request has the next number', async () => {
    await using issuer = await new IssuingAuthority().open({ seats: 1 });
    await issuer.device('a').lease();
    const late = issuer.device('b');
    const request = late.sign('take');
    expect(saidIn(await issuer.answer(request))).toBe('no_seat_left');
    await issuer.endActivation(issuer.device('a'));
    expect(saidIn(await issuer.answer(request))).toBe('no_seat_left');
    late.seq = 1;
    expect(saidIn(await late.ask('take'))).toBe('lease');
  });

  it('`end` does not start the numbers again', async () => {
    await using issuer = await new IssuingAuthority().open();
    const device = issuer.device('a');
    await device.lease();
    expect(saidIn(await device.ask('end'))).toBe('ended');
    const again = signed(device.thumbprint, buildRequest({ seq: 1, deviceName: 'renamed' }));
    expect(outOfSequence(await issuer.answer(again)).last).toBe(2);
    expect(saidIn(await device.ask('take'))).toBe('lease');
  });

  it('an earlier, a later or another request with the last number is refused, and changes nothing', async () => {
    await using issuer = await new IssuingAuthority().open();
    const device = issuer.device('a');
    const first = device.sign('take', { uses: { recorded: 2, returned: 1 } });
    await issuer.answer(first);
    device.seq = 1;
    device.uses = first.request.uses;
    await device.lease('renew');
    const contents = issuer.contents();
    const others = [
      first,
      device.sign('renew', { seq: 2, deviceName: 'other' }),
      device.sign('renew', { seq: 4 }),
      device.sign('renew', { seq: 3, challenge: 'guessed' }),
    ];
    for (const request of others) {
      const { last, uses } = outOfSequence(await issuer.answer(request));
      expect({ last, uses }).toEqual({ last: 2, uses: { recorded: 2, returned: 1 } });
    }
    expect(issuer.contents()).toEqual(contents);
  });

  it('a request with the challenge continues, and what was not sent is counted', async () => {
    await using issuer = await new IssuingAuthority().open();
    const device = issuer.device('a');
    await device.lease('take', { uses: { recorded: 5, returned: 0 } });
    await device.lease('renew', { uses: { recorded: 7, returned: 0 } });
    // The device was restored from a copy after its first request, and has counted 4 uses since.
    device.seq = 1;
    const { last, challenge, uses } = outOfSequence(
      await device.ask('renew', { uses: { recorded: 9, returned: 0 } }),
    );
    expect({ last, uses }).toEqual({ last: 2, uses: { recorded: 7, returned: 0 } });
    await device.lease('renew', { seq: 3, challenge, uses: { recorded: 11, returned: 0 } });
    expect(issuer.license.uses).toBe(11);
    expect(issuer.activation(device)).toMatchObject({ seq: 3, copiedAt: null, challengedAt: [issuer.now] });
  });

  it('a challenge is right for one device, one license and one number', async () => {
    await using issuer = await new IssuingAuthority().open();
    await issuer.sell('KEY-2');
    const [one, other] = [issuer.device('a'), issuer.device('b')];
    const asked = [
      outOfSequence(await one.ask('take', { seq: 9 })),
      outOfSequence(await other.ask('take', { seq: 9 })),
      outOfSequence(await one.ask('take', { seq: 9, licenseKey: 'KEY-2' })),
    ];
    await one.lease();
    asked.push(outOfSequence(await one.ask('renew', { seq: 9 })));
    expect(new Set(asked.map(({ challenge }) => challenge)).size).toBe(4);
    expect(outOfSequence(await one.ask('renew', { seq: 9 }))).toEqual(asked.at(-1));
  });

  it('two copies of a device that alternate are marked as copied, and both get leases', async () => {
    await using issuer = await new IssuingAuthority().open({ seats: 1 });
    const original = issuer.device('a');
    await original.lease();
    const copy = issuer.device('a');
    copy.seq = original.seq;
    const leases: string[] = [];
    const renew = async (device: typeof original): Promise<void> => {
      issuer.pass(day);
      const result = await device.ask('renew');
      if (result.ok) return void leases.push(saidIn(result));
      const { last, challenge } = outOfSequence(result);
      device.seq = last;
      leases.push(saidIn(await device.ask('renew', { challenge })));
    };
    await renew(original);
    await renew(copy);
    await renew(original);
    expect(issuer.activation(original).copiedAt).toBeNull();
    await renew(copy);
    expect(issuer.activation(original)).toMatchObject({ state: 'active', copiedAt: issuer.now });
    expect(leases).toEqual(['lease', 'lease', 'lease', 'lease']);
    const copied = issuer.store.activations.list({ copied: true }, { limit: 10, offset: 0 });
    expect(copied.map(({ device }) => device)).toEqual([thumbprint('a')]);
  });

  it('replayed old requests mark no device as copied', async () => {
    await using issuer = await new IssuingAuthority().open();
    const device = issuer.device('a');
    await device.lease();
    device.seq = 0;
    const { last, challenge } = outOfSequence(await device.ask('renew'));
    device.seq = last;
    const continued = device.sign('renew', { challenge });
    expect(saidIn(await issuer.answer(continued))).toBe('lease');
    device.seq += 1;
    await device.lease('renew');
    const contents = issuer.contents();
    for (let count = 0; count < 5; count += 1) {
      expect(refusalOf(await issuer.answer(continued))).toBe('out_of_sequence');
    }
    expect(issuer.contents()).toEqual(contents);
  });
});

describe('a restored issuer', () => {
  it('a device whose activation is not in the backup renews without a person, if a seat is free', async () => {
    await using issuer = await new IssuingAuthority().open({ seats: 1 });
    const device = issuer.device('a');
    device.seq = 7;
    const { last, challenge } = outOfSequence(await device.ask('renew'));
    expect(last).toBe(0);
    device.seq = 0;
    expect(saidIn(await device.ask('renew', { challenge }))).toBe('lease');
  });

  it('a device whose activation is not in the backup gets no seat if none is free, and asks again', async () => {
    await using issuer = await new IssuingAuthority().open({ seats: 1 });
    const owner = issuer.device('owner');
    await owner.lease();
    const device = issuer.device('a');
    device.seq = 7;
    const { challenge } = outOfSequence(await device.ask('renew'));
    device.seq = 0;
    expect(saidIn(await device.ask('renew', { challenge }))).toBe('no_seat_left');
    expect(saidIn(await device.ask('renew'))).toBe('no_seat_left');
    await owner.ask('end');
    expect(saidIn(await device.ask('renew'))).toBe('lease');
  });

  it('counts what a device reports whose activation is not in the backup, once', async () => {
    await using issuer = await new IssuingAuthority().open({ seats: 1 });
    valueOf(await issuer.writer.write('restore', {}));
    await issuer.device('owner').lease();
    const device = issuer.device('a');
    device.seq = 7;
    device.uses = { recorded: 5, returned: 0 };
    const report = async (): Promise<string> => {
      const { last, challenge } = outOfSequence(await device.ask('end', { seq: device.seq + 7 }));
      device.seq = last;
      return saidIn(await device.ask('end', { challenge }));
    };
    expect(await report()).toBe('ended');
    expect(issuer.license.uses).toBe(5);
    // A device without a lease is believed once.
    device.uses = { recorded: 9, returned: 0 };
    expect(await report()).toBe('ended');
    expect(issuer.license.uses).toBe(5);
  });

  it('a restored holder whose next number is right by chance continues from the totals of the issuer', async () => {
    await using issuer = await new IssuingAuthority().open();
    const device = issuer.device('a');
    await device.lease('take', { uses: { recorded: 4, returned: 0 } });
    // The holder was restored from a copy without these uses; the numbers of a restored issuer had started again.
    const { last, challenge, uses } = outOfSequence(await device.ask('renew'));
    expect({ last, uses }).toEqual({ last: 1, uses: { recorded: 4, returned: 0 } });
    await device.lease('renew', { challenge, uses: { recorded: 4, returned: 0 } });
    expect(issuer.license.uses).toBe(4);
  });

  it('the first document after a restore has a higher number than those before', async () => {
    await using issuer = await new IssuingAuthority().open();
    const device = issuer.device('a');
    const before = await device.lease();
    issuer.store.activations.put({ ...issuer.activation(device), rev: 1 });
    issuer.pass(1000);
    expect((await device.lease('renew')).rev).toBeGreaterThan(before.rev);
    expect(issuer.store.activations.ofDevice(key, device.thumbprint)?.rev).toBe(issuer.now);
  });
});
