import { describe, expect, it } from 'vitest';
import { verifyLease } from '../../../../src/client/index.ts';
import { asAnswered } from '../../../../src/domain/terms.ts';
import {
  day,
  hour,
  key,
  minute,
  productKey,
  refusalOf,
  second,
  valueOf,
} from '../../../support/harness/service-harness.ts';
import { give, openDevice as open, said, tenant } from '../support/device-of-license.ts';
import { leaseIssuer } from '../support/lease-builders.ts';

/* What a holder answers for a license with terms. */

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

  it('says when a license has ended to a device that has never had a lease', async () => {
    await using shop = await open((now) => ({ expiresAt: now - hour }));
    expect(await said(shop.device)).toEqual(answer(false, 'expired', shop.start - hour));
  });

  it('passes on why the issuer refuses another lease, although the license of the last one has ended', async () => {
    await using shop = await open((now) => ({ expiresAt: now + hour }));
    const { device, issuer } = shop;
    await said(device);
    await issuer.time.advance(hour);
    // It was renewed, and another device has taken the seat.
    issuer.refuse = 'no_seat_left';
    expect(await said(device)).toBe('no_seat_left');
  });

  it('counts no use once the lease has ended, although the use has begun before', async () => {
    await using shop = await open((now) => ({ expiresAt: now + hour }));
    const { device, issuer } = shop;
    await said(device);
    const use = { licenseKey: key, productKeys: [productKey], trigger: 'usage' } as const;
    device.now = device.clock.now() + hour - 1;
    expect(valueOf(await device.writer.write('countHeldUse', use)).uses.recorded).toBe(1);
    device.now += 1;
    expect(refusalOf(await device.writer.write('countHeldUse', use))).toBe('verdict_expired');
    expect(issuer.authority.license.uses).toBe(0);
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
