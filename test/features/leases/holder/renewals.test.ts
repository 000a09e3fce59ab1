import { setImmediate as nextTurn } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { maxExchanges, maxWaits } from '../../../../src/features/leases/holder/renewals.ts';
import { signerOf } from '../../../../src/features/leases/holder/device-documents.ts';
import { keyPair } from '../support/lease-builders.ts';
import { FakeIssuer, HeldDevice } from '../support/holder-harness.ts';
import { day, hour, key, minute } from '../../../support/harness/service-harness.ts';
import { VirtualTime } from '../../../support/harness/virtual-clock.ts';

test('a disable and an enable at the issuer reach a holder that waits there', async () => {
  await using issuer = await FakeIssuer.start(new VirtualTime());
  await using device = await HeldDevice.start(issuer);
  await device.verify();
  await device.crash();
  await device.run({ loop: true });
  await device.until(() => issuer.received.some(({ waitS }) => waitS > 0));
  await issuer.authority.setEnabled(false);
  await device.until(async () => (await device.verify()) === 'disabled 0 fresh');
  await issuer.authority.setEnabled(true);
  await device.until(async () => (await device.verify()) === 'enabled 0 fresh');
  expect(device.held.document?.kind).toBe('lease');
});

test('leases of a key that a newer statement no longer lists are renewed at once, also while they wait at the issuer', async () => {
  await using issuer = await FakeIssuer.start(new VirtualTime(), { refreshMs: day });
  await using device = await HeldDevice.start(issuer);
  const keys = Array.from({ length: maxWaits + 4 }, (_, index) => `MANY-${index}`);
  for (const each of keys) {
    await issuer.authority.sell(each);
    await device.verify(each);
  }
  await device.crash();
  await device.run({ loop: true });
  await device.until(() => issuer.open >= maxWaits);
  const retired = issuer.signing.kid;
  issuer.signing = await keyPair();
  issuer.version += 1;
  const began = issuer.time.monotonic;
  await device.change('usage', keys[0]);
  const isRenewed = (): boolean =>
    device.store.heldLeases.all().every(({ document }) => signerOf(document?.text ?? '') !== retired);
  await device.until(isRenewed, 100);
  expect(issuer.time.monotonic - began).toBeLessThan(5_000);
  // Then it is quiet again.
  const sent = issuer.attempts;
  await device.until(() => issuer.time.monotonic - began > 15_000);
  expect(issuer.attempts - sent).toBeLessThanOrEqual(maxWaits);
});

test('a lease of a key that is no longer listed is renewed after a start, and a seat that was given back is not', async () => {
  await using issuer = await FakeIssuer.start(new VirtualTime(), { refreshMs: day });
  await using device = await HeldDevice.start(issuer);
  for (const each of ['ONE', 'TWO', 'OVER']) {
    await issuer.authority.sell(each);
    await device.verify(each);
  }
  await device.holder.deactivate('OVER', device.signal);
  const retired = issuer.signing.kid;
  issuer.signing = await keyPair();
  issuer.version += 1;
  await device.holder.renewals.exchange('ONE', () => ({ act: 'renew' }));
  const signer = (licenseKey: string): string =>
    signerOf(device.store.heldLeases.get(licenseKey)?.document?.text ?? '');
  expect([signer('ONE'), signer('TWO')]).toEqual([issuer.signing.kid, retired]);
  await device.crash();
  await device.run({ loop: true });
  await device.until(() => signer('TWO') === issuer.signing.kid, 100);
  expect(signer('OVER')).toBe(retired);
});

test('a use ends the wait: the same document is sent again without a wait, and then the next one', async () => {
  await using issuer = await FakeIssuer.start(new VirtualTime());
  await using device = await HeldDevice.start(issuer);
  await device.verify();
  await device.crash();
  await device.run({ loop: true });
  await device.until(() => issuer.received.some(({ waitS }) => waitS > 0));
  const waiting = issuer.received.at(-1)?.document;
  const before = issuer.received.length;
  await device.change('usage');
  await device.until(() => issuer.authority.license.uses === 1, 10);
  const later = issuer.received.slice(before).filter(({ waitS }) => waitS === 0);
  expect(later[0]?.document).toBe(waiting);
  expect(later).toHaveLength(2);
});

test('many license keys are renewed with few requests at once, and wait at the issuer in turns', async () => {
  await using issuer = await FakeIssuer.start(new VirtualTime(), { refreshMs: day });
  await using device = await HeldDevice.start(issuer);
  const keys = Array.from({ length: 60 }, (_, index) => `MANY-${index}`);
  for (const each of keys) {
    await issuer.authority.sell(each);
    expect(await device.verify(each)).toBe('enabled 0 fresh');
  }
  await device.crash();
  issuer.mostOpen = 0;
  await issuer.time.advance(day + minute);
  await device.run({ loop: true });
  const refreshed = (): boolean =>
    device.store.heldLeases
      .all()
      .every(({ document }) => document?.kind === 'lease' && document.refreshAt > device.clock.now());
  await device.until(refreshed, 50);
  const waited = new Set<string>();
  await device.until(() => {
    for (const { document, waitS } of issuer.received) if (waitS > 0) waited.add(document);
    return waited.size >= 3 * maxWaits;
  }, 5_000);
  expect(issuer.mostOpen).toBeLessThanOrEqual(maxExchanges + maxWaits);
});

test('an issuer that does not answer is asked less and less often, and again at once when it is wanted', async () => {
  await using issuer = await FakeIssuer.start(new VirtualTime(), { refreshMs: hour });
  await using device = await HeldDevice.start(issuer);
  await device.verify();
  await device.crash();
  issuer.network = 'away';
  await issuer.time.advance(2 * hour);
  await device.run({ loop: true });
  await device.until(() => issuer.attempts > 3, 1_000);
  issuer.attempts = 0;
  const end = device.clock.now() + 6 * hour;
  await device.until(() => device.clock.now() > end, minute);
  expect(issuer.attempts).toBeGreaterThan(5);
  expect(issuer.attempts).toBeLessThan(60);
  issuer.network = 'up';
  device.holder.renewals.retryNow();
  await device.until(
    () => device.held.document?.kind === 'lease' && device.held.document.refreshAt > end,
    10,
  );
  expect(
    device.lines.filter(({ message }) => message === 'the issuer of leases does not answer'),
  ).toHaveLength(1);
});

test('a lease that cannot be renewed is warned of 14, 7 and 1 days before it ends, once each', async () => {
  await using issuer = await FakeIssuer.start(new VirtualTime(), { refreshMs: day, termMs: 30 * day });
  await using device = await HeldDevice.start(issuer);
  await device.verify();
  await device.crash();
  issuer.network = 'away';
  await issuer.time.advance(10 * day);
  await device.run({ loop: true });
  const end = device.held.document?.kind === 'lease' ? device.held.document.expiresAt : 0;
  await device.until(() => device.clock.now() > end, 10 * minute);
  const warnings = device.lines.filter(({ message }) => String(message).startsWith('a lease ends in'));
  expect(warnings.map(({ message }) => /\d+/.exec(String(message))?.[0])).toEqual(['14', '7', '1']);
  expect(warnings[0]).toMatchObject({ licenseKey: key, level: 'warn' });
});

test('a lease is due again after an answer that brings nothing newer, and is asked for slowly', async () => {
  await using issuer = await FakeIssuer.start(new VirtualTime(), { refreshMs: 1_000, termMs: day });
  await using device = await HeldDevice.start(issuer);
  await device.verify();
  await device.crash();
  issuer.refuse = 'lease_request_invalid';
  await issuer.time.advance(minute);
  await device.run({ loop: true });
  issuer.attempts = 0;
  const end = device.clock.now() + hour;
  await device.until(() => device.clock.now() > end, 10_000);
  expect(issuer.attempts).toBeLessThan(30);
});

test('a wait that the issuer refuses is not repeated at once', async () => {
  await using issuer = await FakeIssuer.start(new VirtualTime(), { refreshMs: day });
  await using device = await HeldDevice.start(issuer);
  await device.verify();
  await device.crash();
  issuer.refuse = 'license_not_found';
  issuer.attempts = 0;
  const send = issuer.send.bind(issuer);
  issuer.send = async (...request) => {
    await nextTurn();
    return await send(...request);
  };
  await device.run({ loop: true });
  const end = device.clock.now() + 10_000;
  await device.until(() => device.clock.now() > end, 100);
  expect(issuer.attempts).toBe(1);
});

test('an issuer that is away for a moment has all license keys of a holder wait again soon', async () => {
  await using issuer = await FakeIssuer.start(new VirtualTime(), { refreshMs: day });
  await using device = await HeldDevice.start(issuer);
  const keys = Array.from({ length: 3 * maxWaits }, (_, index) => `MANY-${index}`);
  for (const each of keys) {
    await issuer.authority.sell(each);
    await device.verify(each);
  }
  await device.crash();
  const send = issuer.send.bind(issuer);
  issuer.send = async (...request) => {
    await nextTurn();
    return await send(...request);
  };
  await device.run({ loop: true });
  await device.until(() => issuer.open === maxWaits);
  issuer.network = 'away';
  device.holder.renewals.retryNow();
  const away = device.clock.now() + 10_000;
  await device.until(() => device.clock.now() > away);
  issuer.network = 'up';
  issuer.received.length = 0;
  const from = device.clock.now();
  const waited = new Set<string>();
  await device.until(() => {
    for (const { document, waitS } of issuer.received) if (waitS > 0) waited.add(document);
    return waited.size === keys.length;
  }, 1_000);
  expect(device.clock.now() - from).toBeLessThan(3 * minute);
});

test('uses that need many requests are reported with a pause between the requests', async () => {
  await using issuer = await FakeIssuer.start(new VirtualTime(), { refreshMs: day });
  await using device = await HeldDevice.start(issuer);
  await device.verify();
  await device.crash();
  const uses = { recorded: 80_000, returned: 0 };
  device.store.heldLeases.put({ ...device.held, uses });
  const sentAt: number[] = [];
  const send = issuer.send.bind(issuer);
  issuer.send = async (document, options) => {
    // When all uses are reported, the next request waits for news at once.
    if (options.waitS === 0) sentAt.push(device.clock.monotonic());
    return await send(document, options);
  };
  await device.run({ loop: true });
  await device.until(() => issuer.authority.license.uses === uses.recorded, 100);
  const gaps = sentAt.slice(1).map((each, index) => each - (sentAt[index] ?? 0));
  expect(Math.min(...gaps)).toBeGreaterThanOrEqual(1_000);
});
