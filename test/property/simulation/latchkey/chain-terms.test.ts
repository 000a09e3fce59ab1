import { expect, test } from 'vitest';
import { productKey } from './authority.ts';
import { Chain, key } from './licensed-chain.ts';
import type { Site } from './site.ts';

/* What an agent and an agent below it get to know of the terms of a license; `license-end.test.ts` has the table of ends. */

test('an agent below an agent refuses in the second of the end, as soon as the agent in the middle has the word of the authority', async () => {
  using chain = new Chain({ end: 'near', isDisabled: false, connection: 'online', clock: 'right' });
  await chain.begin();
  await chain.until(chain.graceMs + 1);
  const [middle, lowest] = chain.world.sites as [Site, Site];
  expect(await chain.verify(middle)).toMatchObject({ license: { enabled: false, status: 'expired' } });
  expect(await chain.verify(lowest)).toMatchObject({ license: { enabled: false, status: 'expired' } });
});

test('terms that the seller removes are removed at an agent and at the agent below it', async () => {
  using chain = new Chain({ end: 'near', isDisabled: false, connection: 'online', clock: 'right' });
  await chain.begin();
  const { world } = chain;
  const tenant = { accountId: 'default', productKey };
  const change = { expiresAt: null, entitlements: null };
  await world.authority.write('updateLicense', { tenant, licenseKey: key, change });
  await world.pass(5_000);
  for (const site of world.sites) {
    const license = site.agent.licenseService.verifyNow?.(site.tenant(), key)?.license;
    expect(license).toMatchObject({ licenseKey: key, enabled: true });
    expect(license).not.toHaveProperty('status');
  }
});
