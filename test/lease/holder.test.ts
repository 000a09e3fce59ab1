import { expect, test } from 'vitest';
import { FakeIssuer, HeldDevice } from '../support/harness/holder-harness.ts';
import { VirtualTime } from '../support/harness/virtual-clock.ts';

test('the first verify takes a seat, and the next ones are answered from the lease', async () => {
  await using issuer = await FakeIssuer.start(new VirtualTime(), { seats: 1 });
  await using device = await HeldDevice.start(issuer);
  expect(await device.verify()).toBe('enabled 0 fresh');
  expect(await device.verify()).toBe('enabled 0 fresh');
  expect(issuer.received).toHaveLength(1);
  expect(device.held).toMatchObject({ seq: 1, request: null, document: { kind: 'lease' } });
});
