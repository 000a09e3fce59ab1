import { Client } from 'pg';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { Database } from '../../../src/store/postgres/database.ts';
import { systemRandom } from '../../../src/daemon/system/machine.ts';
import type { ChangesObject, PushReplyObject } from '../../../src/wire/sync.ts';
import { startNode, type AuthorityNode } from '../../support/postgres/nodes.ts';
import { hasPostgres, startPostgres, type PostgresServer } from '../../support/postgres/postgres.ts';

const secret = 'secret-of-press-1';
const headers = { 'product-secret-key': secret };
const keys = ['A', 'B', 'C'];

type Answer<Data> = { status: number; body: { data: Data; code?: string; last?: number } };

async function post<Data>(node: AuthorityNode, path: string, body: object): Promise<Answer<Data>> {
  const response = await node.call(path, { body, headers });
  return { status: response.status, body: (await response.json()) as Answer<Data>['body'] };
}

function newAgent(): string {
  return systemRandom.uuid(Date.now()).replaceAll('-', '');
}

function usage(licenseKey: string): object {
  const at = '2026-02-22T11:24:00Z';
  return { id: systemRandom.uuid(Date.now()), kind: 'usage', license_key: licenseKey, at };
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

  const push = (node: AuthorityNode, agent: string, seq: number, operations: object[]) =>
    post<PushReplyObject>(node, '/sync/v1/push', { agent, seq, operations });

  async function changes(node: AuthorityNode, body: object): Promise<ChangesObject> {
    return (await post<ChangesObject>(node, '/sync/v1/changes', body)).body.data;
  }

  async function uses(): Promise<number[]> {
    const rows = await database.query('SELECT uses FROM sync.license ORDER BY license_key');
    return rows.map((row) => Number(row['uses']));
  }

  test('the pushes of an agent may go to either node, and each is carried out once', async () => {
    const agent = newAgent();
    const bodies = Array.from({ length: 10 }, () => [usage('A'), usage('B')]);
    const replies = [];
    for (const [index, operations] of bodies.entries()) {
      const [one, other] = index % 2 === 0 ? nodes : nodes.toReversed();
      if (one === undefined || other === undefined) throw new Error('there is no node');
      const both = [push(one, agent, index + 1, operations), push(other, agent, index + 1, operations)];
      const [sent, repeated] = await Promise.all(both);
      expect(repeated).toEqual(sent);
      replies.push(sent?.status);
    }
    expect(replies).toEqual(bodies.map(() => 200));
    expect(await uses()).toEqual([10, 10, 0]);
    expect((await push(nodes[1], agent, 10, [usage('A')])).body.code).toBe('sequence_reused');
    expect((await push(nodes[0], agent, 12, [usage('A')])).body).toMatchObject({
      code: 'out_of_sequence',
      last: 10,
    });
  });

  test('an agent that waits at one node is woken up by a change at the other', async () => {
    const agent = newAgent();
    const { epoch, cursor } = await changes(nodes[0], { agent, follow: ['A', 'B'] });
    const began = performance.now();
    const waiting = changes(nodes[0], { agent, epoch, cursor, wait: 25 });
    await push(nodes[1], newAgent(), 1, [usage('A')]);
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
    await push(nodes[1], newAgent(), 1, [usage('B')]);
    const early = await changes(nodes[0], { agent, epoch, cursor });
    expect(early.changes.map(({ license_key: key }) => key)).toEqual(['B']);
    await push(nodes[0], newAgent(), 1, [usage('C')]);
    await client.query('COMMIT');
    await client.end();
    const late = await changes(nodes[1], { agent, epoch, cursor: early.cursor });
    expect(late.changes.map(({ license_key: key }) => key).toSorted()).toEqual(['A', 'C']);
    const none = await changes(nodes[1], { agent, epoch, cursor: late.cursor });
    expect(none.changes).toEqual([]);
  });

  test('20 agents and plain uses on the same keys at both nodes are counted exactly, without a deadlock', async () => {
    const agents = Array.from({ length: 20 }, newAgent);
    const sent = agents.map(async (agent, index) => {
      const statuses = [];
      for (let seq = 1; seq <= 5; seq += 1) {
        const order = index % 2 === 0 ? keys : keys.toReversed();
        const node = nodes[(index + seq) % 2] ?? nodes[0];
        statuses.push((await push(node, agent, seq, [...order, ...order].map(usage))).status);
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

  test('two copies of an agent that send the same operations at once count them once', async () => {
    const operations = Array.from({ length: 30 }, (_, index) => usage(keys[index % 3] ?? 'A'));
    const copies = Array.from({ length: 6 }, newAgent);
    const answers = await Promise.all(
      copies.map((agent, index) =>
        push(nodes[index % 2] ?? nodes[0], agent, 1, index % 3 === 0 ? operations : operations.toReversed()),
      ),
    );
    expect(answers.map(({ status }) => status)).toEqual(copies.map(() => 200));
    expect(await uses()).toEqual([10, 10, 10]);
  });
});
