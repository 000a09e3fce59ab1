import { expect, test } from 'vitest';
import { licenseDetail } from '../../../../src/wire/license.ts';
import { adminToken, openApp, productsOf, serverOf } from '../../../support/app/http-app.ts';
import { buildLicense, buildSnapshot, product } from '../../../support/builders/store-builders.ts';
import { buildActivation } from '../support/records.ts';

const now = Date.UTC(2026, 5, 1);

test.each(['authority', 'agent'] as const)(
  'The detail of a license has its seats, at an %s.',
  async (role) => {
    await using opened = await openApp({ role, products: productsOf('press'), now: () => now });
    const license = buildLicense();
    if (role === 'agent') opened.agentTables().snapshots.put({ ...buildSnapshot(), license });
    await opened.write(async ({ products, licenses, activations }) => {
      await products.add(product, 'secret');
      if (role === 'authority') await licenses.add(license);
      await activations.put(buildActivation({ seatUntil: now + 1 }));
      await activations.put(buildActivation({ activationId: 'b', device: 'd2', seatUntil: now }));
    });
    const headers = { authorization: `Bearer ${adminToken}` };
    const answer = await serverOf(opened.app).inject({ url: '/admin/v1/licenses/KEY-1', headers });
    const { data } = answer.json<{ data: unknown }>();
    expect(licenseDetail.parse(data)).toMatchObject({ activations: 2, seats_taken: 1 });
  },
);
