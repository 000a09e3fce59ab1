import { expect, test } from 'vitest';
import { openReceiver } from '../../webhooks/support/webhooks.ts';
import { startNode, type AuthorityNode } from '../support/nodes.ts';
import { hasPostgres, startPostgres } from '../support/postgres.ts';

const settings = { webhooks: { out: { allow: ['127.0.0.0/8'] } } };

async function sell(node: AuthorityNode, licenseKey: string): Promise<void> {
  const body = { product_key: 'press', buyer_email: 'a@example.com', license_key: licenseKey };
  expect((await node.call('/admin/v1/purchases', { body })).status).toBe(201);
}

test.skipIf(!hasPostgres)(
  'two nodes deliver the events of both, one event at a time, in the order of their revisions, each once',
  async () => {
    await using server = await startPostgres();
    await using receiver = await openReceiver();
    await using one = await startNode(server, { schema: 'latchkey' }, { settings });
    await using two = await startNode(server, { schema: 'latchkey' }, { settings });
    let underWay = 0;
    let most = 0;
    receiver.answer = (response) => {
      underWay += 1;
      most = Math.max(most, underWay);
      setImmediate(() => {
        underWay -= 1;
        response.writeHead(204).end();
      });
    };
    await one.call('/admin/v1/products', { body: { name: 'Press', product_key: 'press' } });
    const added = await one.call('/admin/v1/webhooks', { body: { url: receiver.url } });
    expect(added.status).toBe(201);
    const keys = Array.from({ length: 40 }, (_, index) => `KEY-${index}`);
    await Promise.all(keys.map(async (key, index) => await sell(index % 2 === 0 ? one : two, key)));
    const received = await receiver.until(keys.length);
    const events = received.map(
      ({ body }) => JSON.parse(body) as { data: { license_key: string; revision: number } },
    );
    expect(events.map(({ data }) => data.license_key).toSorted()).toEqual(keys.toSorted());
    const revisions = events.map(({ data }) => data.revision);
    expect(revisions).toEqual(revisions.toSorted((left, right) => left - right));
    expect(most).toBe(1);
  },
);
