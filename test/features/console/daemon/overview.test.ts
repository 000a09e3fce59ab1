import { expect, test } from 'vitest';
import { attentionOf, overviewOf } from '../../../../src/features/console/daemon/overview.ts';
import type { Status } from '../../../../src/service/status.ts';
import { authorityStatus } from '../../../support/app/http-app.ts';

test('The overview says in sentences what needs a person, and nothing of what is in order.', () => {
  const sender = { name: 'shop', from: 'payhip', lastEventAt: null, lastRefusedAt: null, lastRefusal: null };
  const status: Status = {
    ...authorityStatus,
    storage: 'damaged',
    storeEvents: { senders: [sender], waitingReads: 0 },
    webhooks: { endpoints: 1, failing: 1, paused: 0, oldestAt: null },
  };
  expect(attentionOf(status, 10)).toEqual([
    {
      code: 'storage_damaged',
      level: 'fail',
      text: 'The database is damaged: nothing is changed or sent.',
      advice: 'Stop the daemon, restore a backup, and start the daemon again.',
      command: 'latchkey restore FILE',
      page: null,
    },
    {
      code: 'webhooks_failing',
      level: 'warn',
      text: '1 webhook endpoint does not take events: they wait.',
      advice: 'An endpoint is paused after three days; see why.',
      command: 'latchkey webhook list',
      page: 'webhooks',
    },
  ]);
});

test('The overview of an agent has the names of its products that it knows.', async () => {
  const configuration = { sync: { maxPending: 10 }, stateDir: '/state', console: { currency: 'EUR' } };
  const configured = ['P', 'Q'].map((key) => ({ id: `id of ${key}`, productKey: key }));
  const parts = {
    current: { configuration, source: null, products: { configured } },
    role: { productName: (id: string) => (id === 'id of P' ? 'Press' : null) },
    local: null,
  } as unknown as Parameters<typeof overviewOf>[0];
  const { products, currency } = await overviewOf(parts, { ...authorityStatus, role: 'agent' }, 0);
  expect([products, currency]).toEqual([[{ productKey: 'P', name: 'Press' }], 'EUR']);
});
