import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { verifyLease } from '../../../../src/client/index.ts';
import type { License } from '../../../../src/domain/license.ts';
import { endOf } from '../../../../src/features/leases/domain/lease-rules.ts';
import { asAnswered, noTerms } from '../../../../src/domain/terms.ts';
import {
  day,
  hour,
  key,
  minute,
  productKey,
  refusalOf,
  valueOf,
} from '../../../support/harness/service-harness.ts';
import { VirtualTime } from '../../../support/harness/virtual-clock.ts';
import { FakeIssuer, HeldDevice } from '../support/holder-harness.ts';
import { leaseIssuer } from '../support/lease-builders.ts';

/* What a holder answers for a license with terms. */

type Terms = Pick<License, 'expiresAt' | 'graceUntil' | 'usesLimit' | 'terms'>;
const tenant = { accountId: 'default', productKey: null };
const second = 1_000;

async function open(termsAt: (now: number) => Terms) {
  const issuer = await FakeIssuer.start(new VirtualTime());
  give(issuer, termsAt(issuer.authority.now));
  const device = await HeldDevice.start(issuer);
  return {
    issuer,
    device,
    start: issuer.authority.now,
    async [Symbol.asyncDispose]() {
      await device[Symbol.asyncDispose]();
      await issuer[Symbol.asyncDispose]();
    },
  };
}

function give(issuer: FakeIssuer, terms: Terms): void {
  issuer.authority.store.licenses.setTerms({ licenseKey: key, ...noTerms, ...terms });
}

/** What a verify says: the members that a program reads, or the code of the problem. */
async function said(device: HeldDevice) {
  const verified = await device.service.verify(tenant, key, device.signal);
  if (!verified.ok) return verified.problem.code;
  const { enabled, status = null, expiresAt = null, terms } = verified.value.license;
  return { enabled, status, expiresAt, entitlements: terms?.entitlements ?? [] };
}

const answer = (enabled: boolean, status: string | null, expiresAt: number | null = null) => ({
  enabled,
  status,
  expiresAt,
  entitlements: [],
});

describe('a holder of a license that ends', () => {
  it('answers with its entitlements, its end and its status, as an authority does', async () => {
    const terms = { entitlements: ['export', 'pro'] };
    await using shop = await open((now) => ({ expiresAt: now + 90 * day, usesLimit: 3, terms }));
    const verified = valueOf(await shop.device.service.verify(tenant, key, shop.device.signal)).license;
    const { license } = shop.issuer.authority;
    const { revision: _, ...ofAuthority } = asAnswered(license, shop.start);
    expect(verified).toEqual({ ...ofAuthority, buyerEmail: '', graceUntil: undefined });
  });

  it('ends at the last instant of the license without a network, and says so', async () => {
    await using shop = await open((now) => ({ expiresAt: now + hour }));
    const { device, issuer, start } = shop;
    const end = start + hour;
    expect(await said(device)).toEqual(answer(true, 'active', end));
    issuer.network = 'away';
    await issuer.time.advance(hour - 1);
    expect(await said(device)).toEqual(answer(true, 'active', end));
    await issuer.time.advance(1);
    expect(await said(device)).toEqual(answer(false, 'expired', end));
    expect(device.service.verifyNow?.(tenant, key)).toBeNull();
    expect(await device.change('usage')).toBe('license_expired');
    const asked = { licenseKey: key, productKey, nonce: 'A'.repeat(22), waitMs: 0 };
    expect(refusalOf(await device.holder.show(asked, device.signal))).toBe('license_expired');
    expect(device.holder.list()).toMatchObject([{ lease: { expiresAt: end } }]);
  });

  it('is in grace after the end, if the product has a grace, and ends after the grace', async () => {
    await using shop = await open((now) => ({ expiresAt: now + hour, graceUntil: now + 3 * hour }));
    const { device, issuer, start } = shop;
    const end = start + hour;
    expect(await said(device)).toEqual(answer(true, 'active', end));
    issuer.network = 'away';
    await issuer.time.advance(hour);
    const atEnd = device.service.verifyNow?.(tenant, key);
    // No cached answer says `active` for longer.
    expect(atEnd).toMatchObject({ license: { status: 'active' }, cacheable: { until: end } });
    await issuer.time.advance(1);
    expect(await said(device)).toEqual(answer(true, 'grace', end));
    await issuer.time.advance(2 * hour - 2);
    expect(await said(device)).toEqual(answer(true, 'grace', end));
    await issuer.time.advance(1);
    expect(await said(device)).toEqual(answer(false, 'expired', end));
  });

  it('does not know whether a license that is not over is still valid, once its lease has expired', async () => {
    await using shop = await open((now) => ({ expiresAt: now + 90 * day }));
    const { device, issuer, start } = shop;
    await said(device);
    issuer.network = 'away';
    await issuer.time.advance(31 * day);
    expect(await said(device)).toBe('verdict_expired');
    await issuer.time.advance(60 * day);
    expect(await said(device)).toEqual(answer(false, 'expired', start + 90 * day));
  });

  it('shows a program the signed end, which a clock that is set back does not undo', async () => {
    await using shop = await open((now) => ({ expiresAt: now + hour }));
    const { device, issuer, start } = shop;
    await said(device);
    await issuer.time.advance(hour);
    expect(await said(device)).toEqual(answer(false, 'expired', start + hour));
    const nonce = 'A'.repeat(22);
    const asked = { licenseKey: key, productKey, nonce, waitMs: 0 };
    const shown = valueOf(await device.holder.show(asked, device.signal));
    const trust = { issuer: leaseIssuer, product: productKey, roots: [issuer.root.jwk] };
    const check = { ...trust, ...shown, licenseKey: key, nonce, now: start };
    expect(verifyLease(check)).toMatchObject({ verdict: 'refused', reason: 'expired', isSigned: true });
    device.clock.jumpWall(-2 * hour);
    await device.crash();
    device.clock = device.clock.restarted(device.clock.mark());
    await device.run();
    issuer.network = 'away';
    expect(await said(device)).toEqual(answer(false, 'expired', start + hour));
  });

  it('has a lease again within seconds after a renewal', async () => {
    await using shop = await open((now) => ({ expiresAt: now + hour }));
    const { device, issuer, start } = shop;
    await said(device);
    await device.crash();
    await device.run({ loop: true });
    await device.until(() => device.held.document?.kind === 'notice', minute);
    expect(await said(device)).toEqual(answer(false, 'expired', start + hour));
    const end = start + 90 * day;
    give(issuer, { expiresAt: end, terms: { entitlements: ['pro'] } });
    const before = issuer.time.monotonic;
    await device.until(() => device.held.document?.kind === 'lease');
    expect(issuer.time.monotonic - before).toBeLessThan(30 * second);
    expect(await said(device)).toEqual({ ...answer(true, 'active', end), entitlements: ['pro'] });
  });

  it('counts no use beyond the limit that it knows', async () => {
    await using shop = await open(() => ({ usesLimit: 2 }));
    const { device, issuer } = shop;
    await said(device);
    issuer.network = 'away';
    const uses = [];
    for (let use = 0; use < 3; use += 1) uses.push(await device.change('usage'));
    expect(uses).toEqual(['1', '2', 'uses_limit_reached']);
    expect(await device.change('decrease')).toBe('1');
    issuer.network = 'up';
    await device.renew();
    expect(issuer.authority.license.uses).toBe(1);
  });

  it('answers a license without terms with no member for them', async () => {
    await using shop = await open(() => ({}));
    await said(shop.device);
    const { license } = valueOf(await shop.device.service.verify(tenant, key, shop.device.signal));
    expect(Object.keys(license).sort()).toEqual(
      ['buyerEmail', 'createdAt', 'enabled', 'licenseKey', 'productKey', 'uses'].sort(),
    );
  });
});

/** Whether a program is let in, and the status; or the code of the problem. */
function inWords(found: Awaited<ReturnType<typeof said>>): string {
  return typeof found === 'string' ? found : `${found.enabled ? 'in' : 'out'}, ${String(found.status)}`;
}

describe('for each date, state, network and clock', () => {
  const clocks = { right: 0, back: -2 * day, ahead: 2 * day, suspect: 60 * day };
  type Scenario = {
    /** When the license ends, from the start on; null: never. */
    endsAfter: number | null;
    graceMs: number;
    isDisabled: boolean;
    /** The seller renews the license after the device has last asked. */
    isRenewed: boolean;
    network: 'up' | 'away';
    clock: keyof typeof clocks;
    isRestarted: boolean;
    passes: number;
  };
  const scenarios: fc.Arbitrary<Scenario> = fc.record({
    endsAfter: fc.constantFrom(null, -hour, hour, 90 * day),
    graceMs: fc.constantFrom(0, hour + 1_000),
    isDisabled: fc.boolean(),
    isRenewed: fc.boolean(),
    network: fc.constantFrom('up', 'away'),
    clock: fc.constantFrom('right', 'back', 'ahead', 'suspect'),
    isRestarted: fc.boolean(),
    passes: fc.oneof(
      fc
        .constantFrom(hour - 1, hour, hour + 1, 2 * hour - 1, 2 * hour, 2 * hour + 1)
        .map((ms) => ms - minute),
      fc.nat(4 * hour),
    ),
  });

  /** What the holder may say. `known`: the license when it last asked; `license`: the license now. */
  function allowed({ network, clock }: Scenario, known: License, license: License, now: number): string[] {
    if (network === 'up') {
      const { enabled, status } = asAnswered(license, now);
      const as = `${enabled ? 'in' : 'out'}, ${String(status ?? null)}`;
      // The notice of a disabled license says nothing of its terms.
      if (!license.enabled) return ['out, disabled', 'out, null'];
      // A clock that runs ahead never goes back. Such a holder knows nothing, and refuses nobody.
      return clock === 'ahead' && enabled ? [as, 'verdict_expired'] : [as];
    }
    if (now >= endOf(known)) return ['out, expired'];
    const as = `in, ${String(asAnswered(known, now).status ?? null)}`;
    // The lease of a clock that is right, or was set back, is as long as it was.
    return clock === 'right' || clock === 'back'
      ? [as]
      : [as, 'in, grace', 'out, expired', 'verdict_expired'];
  }

  async function play(scenario: Scenario): Promise<{ found: string; may: string[] } | null> {
    const { endsAfter, graceMs, isDisabled, isRenewed, network, clock, isRestarted, passes } = scenario;
    await using shop = await open((now) => {
      if (endsAfter === null) return {};
      const expiresAt = now + endsAfter;
      return { expiresAt, graceUntil: graceMs > 0 ? expiresAt + graceMs : null };
    });
    const { device, issuer, start } = shop;
    const known = issuer.authority.license;
    await said(device);
    await issuer.time.advance(minute);
    issuer.network = network;
    if (isDisabled) await issuer.authority.setEnabled(false);
    if (isRenewed) give(issuer, { expiresAt: start + 300 * day });
    device.clock.jumpWall(clocks[clock]);
    if (isRestarted) {
      await device.crash();
      device.clock = device.clock.restarted(device.clock.mark());
      await device.run();
    }
    await issuer.time.advance(passes);
    if (network === 'up') await device.renew();
    const now = start + minute + passes;
    const { license } = issuer.authority;
    // A lease ends at the last instant of its license.
    if (network === 'up' && now === endOf(license)) return null;
    return { found: inWords(await said(device)), may: allowed(scenario, known, license, now) };
  }

  it('a holder lets nobody in beyond end and grace, and refuses nobody whose license is valid', async () => {
    await fc.assert(
      fc.asyncProperty(scenarios, async (scenario) => {
        const played = await play(scenario);
        fc.pre(played !== null);
        expect(played?.may).toContain(played?.found);
      }),
      { numRuns: 60 },
    );
  });
});
