import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { VendorAndDevice } from '../support/harness/vendor-and-device.ts';

test('a holder verifies a license key of the issuer, and counts its uses there', async () => {
  await using shop = await VendorAndDevice.start();
  const device = await shop.device();
  expect(await device.verify()).toEqual([200, true, 0, 'fresh']);
  expect(await device.use()).toEqual([200, 1]);
  await expect.poll(() => shop.uses()).toBe(1);
  const file = join(device.stateDir, 'device.jwk');
  expect(JSON.parse(readFileSync(file, 'utf8'))).toMatchObject({ kty: 'EC', crv: 'P-256' });
  expect(statSync(file).mode & 0o777).toBe(0o600);
});
