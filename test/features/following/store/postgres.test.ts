import { Client } from 'pg';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { Database } from '../../../../src/features/postgres/store/database.ts';
import { systemRandom } from '../../../../src/daemon/system/machine.ts';
import type { ChangesObject } from '../../../../src/features/following/wire/change-feed.ts';
import { startNode, type AuthorityNode } from '../../postgres/support/nodes.ts';
import { hasPostgres, startPostgres, type PostgresServer } from '../../postgres/support/postgres.ts';

const secret = 'secret-of-press-1';
const headers = { 'product-secret-key': secret };
const keys = ['A', 'B', 'C'];

type Answer<Data> = { status: number; body: { data: Data; code?: string } };

async function post<Data>(node: AuthorityNode, path: string, body: object): Promise<Answer<Data>> {
  const response = await node.call(path, { body, headers });
  return { status: response.status, body: (await response.json()) as Answer<Data>['body'] };
}

function newId(): string {
  return systemRandom.uuid(Date.now());
}

function newAgent(): string {
  return newId().replaceAll('-', '');
}

/** Counts a use as an agent that delivers an operation does. */
async function use(node: AuthorityNode, licenseKey: string, { id = newId(), isRepeat = false } = {}) {
  const operation = `created=${Date.now()}${isRepeat ? ', repeat' : ''}`;
  const response = await node.call('/api/v2/license/usage', {
    method: 'PUT',
    body: { license_key: licenseKey },
    key: id,
    headers: { ...headers, 'latchkey-operation': operation, 'latchkey-instance': 'agent' },
  });
  await response.arrayBuffer();
  const [, applied = null] = /applied=(\d+)/.exec(response.headers.get('latchkey-revision') ?? '') ?? [];
  return { status: response.status, applied: applied === null ? null : Number(applied) };
}

describe.skipIf(!hasPostgres)('/sync/v1 of an authority with two nodes on PostgreSQL', () => {
  let server: PostgresServer;
  let nodes: readonly [AuthorityNode, AuthorityNode];
  let database: Database;
  const opened = new AsyncDisposableStack();

  beforeAll(async () => {
    server = opened.use(await startPostgres());
    const first = opened.use(await startNode(server, { schema: 'sync' }));
    const second = opened.use(await startNode(server, { schema: 'sync' }));
    nodes = [first, second];
    database = opened.use(new Database(server.settings({ schema: 'sync' })));
    const product = { name: 'Press', product_key: 'PRESS', secret };
    await first.call('/admin/v1/products', { body: product });
    for (const licenseKey of keys) {
      const sale = { product_key: 'PRESS', buyer_email: 'a@example.com', license_key: licenseKey };
      await first.call('/admin/v1/purchases', { body: sale });
    }
  });
  afterAll(() => opened.disposeAsync());
  beforeEach(async () => void (await database.query(`UPDATE sync.license SET uses = 0`)));

  async function changes(node: AuthorityNode, body: object): Promise<ChangesObject> {
    return (await post<ChangesObject>(node, '/sync/v1/changes', body)).body.data;
  }

  async function uses(): Promise<number[]> {
    const rows = await database.query('SELECT uses FROM sync.license ORDER BY license_key');
    return rows.map((row) => Number(row['uses']));
  }

  test('the changes of an agent may go to either node, and each is carried out once', async () => {
    const ids = Array.from({ length: 20 }, newId);
    // Uses that come together are committed in groups.
    const sent = await Promise.all(ids.map(async (id) => await use(nodes[0], 'A', { id })));
    expect(new Set(sent.map(({ status }) => status))).toEqual(new Set([200]));
    const applied = sent.map((answer) => answer.applied);
    expect(new Set(applied).size).toBe(20);
    for (const isRepeat of [true, false]) {
      const again = await Promise.all(
        ids.map(async (id, index) => await use(nodes[index % 2] ?? nodes[0], 'A', { id, isRepeat })),
      );
      expect(again.map((answer) => answer.applied)).toEqual(applied);
    }
    expect(await uses()).toEqual([20, 0, 0]);
  });

  test('a change that comes to both nodes at once is carried out once', async () => {
    for (let count = 0; count < 20; count += 1) {
      const id = newId();
      const both = await Promise.all(nodes.map(async (node) => await use(node, 'A', { id })));
      // The second may come while the first is being carried out.
      for (const { status } of both) expect([200, 409]).toContain(status);
      expect(both.map(({ status }) => status)).toContain(200);
    }
    expect(await uses()).toEqual([20, 0, 0]);
  });

  test('an agent that waits at one node is woken up by a change at the other', async () => {
    const agent = newAgent();
    const { epoch, cursor } = await changes(nodes[0], { agent, follow: ['A', 'B'] });
    const began = performance.now();
    const waiting = changes(nodes[0], { agent, epoch, cursor, wait: 25 });
    await use(nodes[1], 'A');
    const told = await waiting;
    expect(told.changes).toMatchObject([{ license_key: 'A', license: { uses: 1 } }]);
    expect(told.epoch).toBe(epoch);
    // The longest wait is 25 s, so an answer after 20 s is one that was not woken up.
    expect(performance.now() - began).toBeLessThan(20_000);
    // The cursor of one node is one at the other.
    const next = await changes(nodes[1], { agent, epoch: told.epoch, cursor: told.cursor });
    expect(next).toMatchObject({ changes: [] });
    expect(next.reset).toBeUndefined();
  });

  test('changes whose transactions commit in another order are all told', async () => {
    const agent = newAgent();
    const { epoch, cursor } = await changes(nodes[0], { agent, follow: keys });
    const client = new Client({ ...server.address, ssl: false });
    await client.connect();
    await client.query('BEGIN');
    await client.query(`UPDATE sync.license SET uses = uses + 5 WHERE license_key = 'A'`);
    await use(nodes[1], 'B');
    const early = await changes(nodes[0], { agent, epoch, cursor });
    expect(early.changes.map(({ license_key: key }) => key)).toEqual(['B']);
    await use(nodes[0], 'C');
    await client.query('COMMIT');
    await client.end();
    const late = await changes(nodes[1], { agent, epoch, cursor: early.cursor });
    expect(late.changes.map(({ license_key: key }) => key).toSorted()).toEqual(['A', 'C']);
    const none = await changes(nodes[1], { agent, epoch, cursor: late.cursor });
    expect(none.changes).toEqual([]);
  });

  test('20 agents and plain uses on the same keys at both nodes are counted exactly, without a deadlock', async () => {
    const agents = Array.from({ length: 20 }, newAgent);
    const sent = agents.map(async (_, index) => {
      const order = index % 2 === 0 ? keys : keys.toReversed();
      const statuses: number[] = [];
      // A node has fewer connections than all rounds together would need.
      for (let round = 0; round < 10; round += 1) {
        const each = order.map(async (key) => await use(nodes[(index + round) % 2] ?? nodes[0], key));
        statuses.push(...(await Promise.all(each)).map(({ status }) => status));
      }
      return statuses;
    });
    const plain = Array.from({ length: 60 }, async (_, index) => {
      const body = { license_key: keys[index % 3] };
      const node = nodes[index % 2] ?? nodes[0];
      return [(await node.call('/api/v2/license/usage', { method: 'PUT', body, headers })).status];
    });
    const followed = agents.map(async (agent, index) => {
      const body = { agent, follow: index % 2 === 0 ? keys : keys.toReversed() };
      const node = nodes[index % 2] ?? nodes[0];
      return [(await post(node, '/sync/v1/changes', body)).status];
    });
    const statuses = (await Promise.all([...sent, ...plain, ...followed])).flat();
    expect(new Set(statuses)).toEqual(new Set([200]));
    expect(await uses()).toEqual(keys.map(() => 20 * 5 * 2 + 20));
  });
});
