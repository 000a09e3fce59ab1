import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import type { LeaseRequest } from '../../../../src/features/leases/domain/lease.ts';
import { FakeIssuer, HeldDevice } from '../../leases/support/holder-harness.ts';
import { IssuingAuthority } from '../../leases/support/lease-harness.ts';
import { day, key, minute, valueOf } from '../../../support/harness/service-harness.ts';
import { VirtualTime } from '../../../support/harness/virtual-clock.ts';

const newKey = 'NEW-1';
const tenant = { accountId: 'default', productKey: null };

async function rekey({ writer }: IssuingAuthority): Promise<void> {
  valueOf(await writer.write('rekeyLicense', { tenant, licenseKey: key, newKey }));
}

test('after a rekey, three devices end at once and one that was away at its next contact, and all get their seats back with the new key', async () => {
  await using issuer = await FakeIssuer.start(new VirtualTime(), { seats: 4 });
  const devices = new AsyncDisposableStack();
  await using _ = devices;
  const start = async (): Promise<HeldDevice> => devices.use(await HeldDevice.start(issuer));
  const online = [await start(), await start(), await start()];
  const offline = await start();
  for (const device of [...online, offline]) expect(await device.verify()).toBe('enabled 0 fresh');
  await offline.crash();
  for (const device of online) {
    await device.crash();
    await device.run({ loop: true });
  }
  const waiting = (): number => issuer.received.filter(({ waitS }) => waitS > 0).length;
  for (const device of online) await device.until(() => waiting() >= online.length);
  await rekey(issuer.authority);
  for (const device of online) await device.until(async () => (await device.verify()) === 'disabled 0 fresh');
  await offline.run();
  expect(await offline.verify()).toBe('enabled 0 fresh');
  await offline.renew();
  expect(await offline.verify()).toBe('disabled 0 fresh');
  const { activations } = issuer.authority.store;
  const taken = (): number => activations.seatsTaken(newKey, issuer.authority.now, '');
  expect(taken()).toBe(4);
  for (const device of [...online, offline]) {
    expect(await device.verify(newKey)).toBe('enabled 0 fresh');
    expect(JSON.stringify(device.store.heldLeases.get(key))).not.toContain(newKey);
  }
  expect([taken(), activations.count({ licenseKey: newKey })]).toEqual([4, 4]);
  const fifth = devices.use(await HeldDevice.start(issuer));
  expect(await fifth.verify(newKey)).toBe('no_seat_left');
});

test('the uses that a device reports with the old key are counted there, and the new key is not told', async () => {
  await using issuer = await new IssuingAuthority().open({ seats: 1 });
  const device = issuer.device('a');
  await device.lease();
  await rekey(issuer);
  device.uses = { recorded: 3, returned: 1 };
  const answered = valueOf(await device.ask('renew'));
  expect(answered.answer).toMatchObject({ kind: 'notice', notice: { licenseKey: key, state: 'disabled' } });
  expect(JSON.stringify(answered)).not.toContain(newKey);
  expect(issuer.store.licenses.get(key)).toMatchObject({ uses: 2, enabled: false });
  expect(issuer.store.licenses.get(newKey)).toMatchObject({ uses: 0, enabled: true });
});

test('a device that was blocked or ended has no seat under the new key, and its moves count there', async () => {
  await using issuer = await new IssuingAuthority().open({ seats: 2 });
  const [blocked, ended] = [issuer.device('a'), issuer.device('b')];
  await blocked.lease();
  await ended.lease();
  await issuer.blockActivation(blocked);
  await issuer.endActivation(ended);
  await rekey(issuer);
  const { activations } = issuer.store;
  expect(activations.seatsTaken(newKey, issuer.now, '')).toBe(0);
  expect(activations.movesSince(newKey, 0)).toBe(2);
  blocked.seq = 0;
  const refused = valueOf(await blocked.ask('take', { licenseKey: newKey }));
  expect(refused.answer).toMatchObject({ kind: 'refused', problem: { code: 'activation_blocked' } });
});

test('after a person is forgotten, the names that the devices send are not stored', async () => {
  await using issuer = await new IssuingAuthority().open({ showsEmail: true });
  const device = issuer.device('a');
  await device.lease('take', { deviceName: "Ann's laptop" });
  const command = { buyerEmail: 'A@example.com', accountId: null };
  valueOf(await issuer.writer.write('forgetCustomer', command));
  expect(JSON.stringify(issuer.activation(device))).not.toMatch(/ann|a@example/i);
  const lease = await device.lease('renew', { deviceName: "Ann's laptop" });
  expect(lease.license.buyerEmail).toBe('');
  expect(JSON.stringify(issuer.activation(device))).not.toMatch(/ann|a@example/i);
});

test('the answer that a device without a seat got does not keep the names of the others', async () => {
  await using issuer = await new IssuingAuthority().open({ seats: 1 });
  await issuer.device('a').lease('take', { deviceName: "Ann's laptop" });
  const refused = issuer.device('b');
  const named = valueOf(await refused.ask('take'));
  expect(JSON.stringify(named.answer)).toContain("Ann's laptop");
  const command = { tenant, licenseKey: key, buyerEmail: 'bob@example.com', freesSeats: true };
  valueOf(await issuer.writer.write('transferLicense', command));
  expect(issuer.activation(refused)?.answer).toMatchObject({ kind: 'refused' });
  expect(JSON.stringify(issuer.activation(refused))).not.toMatch(/ann/i);
});

/** What happens to a license before its rekey. */
const step = fc.oneof(
  fc
    .constantFrom('usage', 'decrease', 'enable', 'disable')
    .map((trigger) => ({ kind: 'change', trigger }) as const),
  fc.record({
    kind: fc.constant('request' as const),
    name: fc.constantFrom('a', 'b', 'c', 'd'),
    act: fc.constantFrom<LeaseRequest['act']>('take', 'renew', 'end'),
    recorded: fc.integer({ min: 0, max: 3 }),
  }),
  fc.record({ kind: fc.constant('wait' as const), days: fc.integer({ min: 1, max: 40 }) }),
);

test('a rekey keeps every count, seat, device and entry of the history', async () => {
  const property = fc.asyncProperty(fc.array(step, { maxLength: 25 }), async (steps) => {
    await using issuer = await new IssuingAuthority().open({ seats: 2 });
    const devices = new Map(['a', 'b', 'c', 'd'].map((name) => [name, issuer.device(name)]));
    for (const each of steps) {
      issuer.pass(minute);
      if (each.kind === 'wait') issuer.pass(each.days * day);
      else if (each.kind === 'change')
        await issuer.writer.write('changeLicense', { tenant, licenseKey: key, trigger: each.trigger });
      else {
        const device = devices.get(each.name);
        if (device === undefined) continue;
        device.uses = { ...device.uses, recorded: device.uses.recorded + each.recorded };
        await device.ask(each.act);
      }
    }
    const { store } = issuer;
    const page = { limit: 100, offset: 0 };
    const known = (licenseKey: string) => {
      const license = store.licenses.get(licenseKey);
      return {
        uses: license?.uses,
        enabled: license?.enabled,
        buyerEmail: license?.buyerEmail,
        history: store.history.list(licenseKey, page).map((entry) => ({ ...entry, licenseKey: '' })),
        purchases: store.purchases.list({ licenseKey }, page).map(({ purchase }) => purchase.purchaseId),
        seats: store.activations.seatsTaken(licenseKey, issuer.now, ''),
        moves: store.activations.movesSince(licenseKey, 0),
        devices: store.activations
          .list({ licenseKey }, page)
          .map(({ device, deviceName, state, seatUntil, expiresAt }) => ({
            device,
            deviceName,
            state,
            seatUntil,
            expiresAt,
          }))
          .toSorted((one, other) => one.device.localeCompare(other.device)),
      };
    };
    const before = known(key);
    await rekey(issuer);
    const after = known(newKey);
    expect(after.history[0]).toMatchObject({ change: 'rekey' });
    expect({ ...after, history: after.history.slice(1) }).toEqual(before);
    expect(known(key)).toMatchObject({ enabled: false, purchases: [], seats: 0, uses: before.uses });
  });
  await fc.assert(property, { numRuns: 40 });
});
