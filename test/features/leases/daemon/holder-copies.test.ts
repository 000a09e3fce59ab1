import { cpSync, rmSync } from 'node:fs';
import { expect, test } from 'vitest';
import { VendorAndDevice } from '../support/vendor-and-device.ts';

async function activations(shop: VendorAndDevice, query = ''): Promise<Record<string, unknown>[]> {
  const { data } = await shop.admin({}, `activations${query}`);
  return data?.['activations'] as Record<string, unknown>[];
}

test('containers without a volume take floating seats, which are all free after the lease term', async () => {
  await using shop = await VendorAndDevice.start({
    seats: 3,
    lease_hold_s: 0,
    lease_term_s: 600,
    lease_refresh_s: 300,
  });
  for (const name of ['first', 'second', 'third']) {
    const container = await shop.device(name);
    expect(await container.verify()).toEqual([200, true, 0, 'fresh']);
    await container.stop();
  }
  const fourth = await shop.device('fourth');
  expect(await fourth.verify()).toEqual([409, 'no_seat_left']);
  expect(await activations(shop, '?has_seat=true')).toHaveLength(3);
  shop.time.advance(601_000);
  expect(await activations(shop, '?has_seat=true')).toEqual([]);
  expect(await fourth.verify()).toEqual([200, true, 0, 'fresh']);
});

test('two copies of a state directory that are both in use are marked, and both go on working', async () => {
  await using shop = await VendorAndDevice.start({ seats: 1 });
  const device = await shop.device();
  await device.verify();
  await device.stop();
  const copy = shop.machine('copy');
  copy.copyStateOf(device);
  await copy.start();
  await device.start();
  let uses = 0;
  for (let round = 0; round < 4; round += 1) {
    for (const each of [device, copy]) {
      expect((await each.use())[0]).toBe(200);
      uses += 1;
      await expect.poll(() => shop.uses()).toBe(uses);
    }
  }
  expect((await device.verify()).slice(0, 2)).toEqual([200, true]);
  expect((await copy.verify()).slice(0, 2)).toEqual([200, true]);
  expect(await activations(shop)).toMatchObject([{ copied_at: expect.any(String) as string }]);
  expect(await activations(shop, '?copied=true')).toHaveLength(1);
});

test('an issuer that is restored from a copy is in step again with its devices, and seats stay limited', async () => {
  await using shop = await VendorAndDevice.start({ seats: 2 });
  const [known, later] = [await shop.device('known'), await shop.device('later')];
  await known.verify();
  await shop.stopAuthority();
  const backup = `${shop.directory}/backup`;
  cpSync(shop.vendorState, backup, { recursive: true });
  await shop.startAuthority();
  await later.verify();
  await known.use();
  await expect.poll(() => shop.uses()).toBe(1);
  await shop.stopAuthority();
  rmSync(shop.vendorState, { recursive: true });
  cpSync(backup, shop.vendorState, { recursive: true });
  await shop.startAuthority();
  shop.time.advance(61_000);
  // The holder also reports the use that the copy does not have.
  expect((await known.use())[0]).toBe(200);
  await expect.poll(() => shop.uses()).toBe(2);
  expect((await later.use())[0]).toBe(200);
  await expect.poll(() => shop.uses()).toBe(3);
  expect(await activations(shop, '?has_seat=true')).toHaveLength(2);
  const third = await shop.device('third');
  expect(await third.verify()).toEqual([409, 'no_seat_left']);
  expect((await known.verify()).slice(0, 2)).toEqual([200, true]);
  expect((await later.verify()).slice(0, 2)).toEqual([200, true]);
});
