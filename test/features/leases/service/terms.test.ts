import { describe, expect, it } from 'vitest';
import type { License } from '../../../../src/domain/license.ts';
import { noTerms } from '../../../../src/domain/terms.ts';
import { day, hour, key } from '../../../support/harness/service-harness.ts';
import type { Lease } from '../../../../src/features/leases/domain/lease.ts';
import { type Device, IssuingAgent, IssuingAuthority, saidIn } from '../support/lease-harness.ts';

/* The terms of a license at both issuers: until when its leases are valid, and what they contain. */

type Terms = Pick<License, 'expiresAt' | 'graceUntil' | 'usesLimit' | 'terms'>;

/** An issuer that knows a license. */
interface IssuerOfLicense extends AsyncDisposable {
  now: number;
  pass(ms: number): void;
  device(name: string): Device;
  /** The license has these terms from now on. */
  give(terms: Terms): Promise<void>;
}

class Authority extends IssuingAuthority implements IssuerOfLicense {
  give(terms: Terms): Promise<void> {
    this.store.licenses.setTerms({ licenseKey: key, ...noTerms, ...terms });
    return Promise.resolve();
  }
}

/** An agent whose upstream has just said what is known. */
class Agent extends IssuingAgent implements IssuerOfLicense {
  async give(terms: Terms): Promise<void> {
    const answer = this.says(5);
    this.pass(1_000);
    await this.read({ ...answer, value: { ...answer.value, ...terms } });
  }
}

describe.each<[string, () => Promise<IssuerOfLicense>]>([
  ['an authority', async () => await new Authority().open()],
  ['an agent', async () => await new Agent().open()],
])('at %s that issues leases, a license', (_, start) => {
  it('that ends soon has leases until then, that are renewed ever earlier, and after it a notice', async () => {
    await using issuer = await start();
    const expiresAt = issuer.now + 2 * hour;
    await issuer.give({ expiresAt });
    const device = issuer.device('a');
    const first = await device.lease();
    expect(first).toMatchObject({ expiresAt, license: { expiresAt } });
    expect(first.refreshAt).toBeLessThanOrEqual(issuer.now + hour);
    issuer.pass(expiresAt - 1_000 - issuer.now);
    expect(await device.lease('renew')).toMatchObject({ expiresAt });
    issuer.pass(999);
    expect(await device.lease('renew')).toMatchObject({ expiresAt });
    issuer.pass(1);
    for (const act of ['renew', 'take'] as const)
      expect(await device.ask(act)).toMatchObject({
        value: { answer: { kind: 'notice', notice: { state: 'disabled', expiredAt: expiresAt } } },
      });
  });

  it('that ends later than a lease does not make the lease longer or shorter', async () => {
    await using issuer = await start();
    const lengthOf = ({ expiresAt, issuedAt }: Lease): number => expiresAt - issuedAt;
    await issuer.give({});
    const plain = await issuer.device('a').lease();
    await issuer.give({ expiresAt: issuer.now + 300 * day });
    expect(lengthOf(await issuer.device('b').lease())).toBe(lengthOf(plain));
  });

  it('has leases for the grace of its product after its end, and none after the grace', async () => {
    await using issuer = await start();
    const expiresAt = issuer.now + 2 * hour;
    const graceUntil = expiresAt + 3 * day;
    await issuer.give({ expiresAt, graceUntil });
    const device = issuer.device('a');
    expect(await device.lease()).toMatchObject({ expiresAt: graceUntil, license: { expiresAt } });
    issuer.pass(2 * hour + day);
    await issuer.give({ expiresAt, graceUntil });
    expect(await device.lease('renew')).toMatchObject({ expiresAt: graceUntil });
    issuer.pass(graceUntil - issuer.now);
    expect(saidIn(await device.ask('renew'))).toBe('disabled');
  });

  it('has leases again after a renewal, on the seat that its device has kept', async () => {
    await using issuer = await start();
    await issuer.give({ expiresAt: issuer.now + hour, terms: { seats: 1 } });
    const [device, other] = [issuer.device('a'), issuer.device('b')];
    const { activationId } = await device.lease();
    issuer.pass(3 * day);
    expect(saidIn(await device.ask('renew'))).toBe('disabled');
    // No seat is taken meanwhile.
    expect(saidIn(await other.ask('take'))).toBe('disabled');
    await issuer.give({ expiresAt: issuer.now + 7 * day, terms: { seats: 1 } });
    expect(saidIn(await other.ask('take'))).toBe('no_seat_left');
    expect(await device.lease('renew')).toMatchObject({ activationId, seats: { limit: 1, taken: 1 } });
  });

  it('whose end was moved to the past has a notice, although its device has a longer lease', async () => {
    await using issuer = await start();
    const device = issuer.device('a');
    await device.lease();
    const expiresAt = Math.floor(issuer.now / 1000) * 1000 - day;
    await issuer.give({ expiresAt });
    expect(await device.ask('renew')).toMatchObject({
      value: { answer: { notice: { expiredAt: expiresAt } } },
    });
  });

  it('that the seller has disabled as well has a notice that does not name the end', async () => {
    await using issuer = await start();
    await issuer.give({ expiresAt: issuer.now - day });
    const device = issuer.device('a');
    if (issuer instanceof IssuingAuthority) await issuer.setEnabled(false);
    else await (issuer as Agent).record('disable');
    const { answer } = await device.ask('take').then((said) => (said.ok ? said.value : Promise.reject(said)));
    expect(answer).toMatchObject({ notice: { state: 'disabled' } });
    expect(answer).not.toHaveProperty('notice.expiredAt');
  });

  it('has its own seats and lease settings in place of those of its product', async () => {
    await using issuer = await start();
    const terms = { seats: 2, leaseTermMs: hour, leaseRefreshMs: 60_000, leaseHoldMs: 0 };
    await issuer.give({ terms });
    const lease = await issuer.device('a').lease();
    const second = Math.floor(issuer.now / 1000) * 1000;
    expect(lease).toMatchObject({
      expiresAt: second + hour,
      refreshAt: second + 60_000,
      seats: { limit: 2, taken: 1 },
    });
    await issuer.device('b').lease();
    const third = issuer.device('c');
    expect(saidIn(await third.ask('take'))).toBe('no_seat_left');
    // Without a hold, the seats are free once the leases have ended.
    issuer.pass(hour + 1_000);
    expect(await third.lease()).toMatchObject({ seats: { limit: 2, taken: 1 } });
  });

  it('has its entitlements and its limit of uses in its leases, and nothing else of its terms', async () => {
    await using issuer = await start();
    const { license: plain } = await issuer.device('a').lease();
    const entitlements = ['export', 'pro'];
    await issuer.give({
      usesLimit: 9,
      terms: { entitlements, metadata: { note: 'late payer' }, seats: 7 },
    });
    const { license } = await issuer.device('b').lease();
    expect(license).toEqual({ ...plain, usesLimit: 9, terms: { entitlements } });
  });

  it('is not leased by a file for longer than it is valid', async () => {
    await using issuer = await start();
    const expiresAt = issuer.now - (issuer.now % 1000) + 300 * day;
    await issuer.give({ expiresAt });
    const device = issuer.device('a');
    const longer = { until: expiresAt + 1000, isFile: true };
    expect(await device.ask('take', {}, longer)).toMatchObject({
      problem: {
        errors: [{ parameter: 'until', code: 'out_of_range', detail: expect.stringContaining('ends') }],
      },
    });
    expect(await device.lease('take', {}, { ...longer, until: expiresAt })).toMatchObject({ expiresAt });
  });
});

describe('at an agent whose upstream is away, a license', () => {
  it('has leases for freshness.expiry_grace after its end, because it may have been renewed', async () => {
    await using agent = await new Agent().open();
    const expiresAt = agent.now + 2 * hour;
    await agent.give({ expiresAt });
    const device = agent.device('a');
    expect(await device.lease()).toMatchObject({ expiresAt });
    agent.pass(expiresAt + 1 - agent.now);
    expect(await device.lease('renew')).toMatchObject({ expiresAt: expiresAt + day });
    agent.pass(day);
    expect(await device.ask('renew')).toMatchObject({
      value: { answer: { notice: { expiredAt: expiresAt } } },
    });
  });
});
