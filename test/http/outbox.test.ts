import { expect, test } from 'vitest';
import type { Operation, OperationProgress } from '../../src/domain/operation.ts';
import { adminToken, openDesk, serverOf } from './desk.ts';

const headers = { authorization: `Bearer ${adminToken}` };

const operation = (id: string, progress: OperationProgress): Omit<Operation, 'seq'> => ({
  id,
  kind: 'usage',
  subject: 'KEY',
  productKey: 'P',
  createdAt: Date.parse('2026-01-01T00:00:00Z'),
  attempts: 1,
  failures: 0,
  nextAt: null,
  outage: false,
  lastError: null,
  revision: null,
  payload: null,
  progress,
});

test('the outbox shows what is not finished, and any state by name', async () => {
  await using opened = await openDesk();
  const { operations } = opened.transaction;
  operations.add(operation('a', { state: 'pending', doubtful: false }));
  operations.add({
    ...operation('b', { state: 'uncertain', baseUses: 7, held: false }),
    nextAt: Date.parse('2026-01-01T00:01:00Z'),
    lastError: 'the answer was lost',
  });
  operations.add(operation('c', { state: 'delivered', finishedAt: 1 }));
  operations.add({
    ...operation('d', { state: 'dead' }),
    kind: 'create_coupon',
    subject: 'CODE',
    productKey: null,
  });
  const server = serverOf(opened.desk);
  const list = async (query: string): Promise<[unknown, string[]]> => {
    const answer = await server.inject({ url: `/admin/v1/outbox${query}`, headers });
    const { data } = answer.json<{ data: { operations: { id: string }[] } }>();
    return [answer.headers['x-total-count'], data.operations.map(({ id }) => id)];
  };
  expect(await list('')).toEqual(['3', ['a', 'b', 'd']]);
  expect(await list('?limit=1&offset=1')).toEqual(['3', ['b']]);
  expect(await list('?state=delivered')).toEqual(['1', ['c']]);
  expect((await server.inject({ url: '/admin/v1/outbox?state=lost', headers })).statusCode).toBe(422);
  const shown = await server.inject({ url: '/admin/v1/outbox/b', headers });
  expect(shown.json()).toEqual({
    data: {
      id: 'b',
      kind: 'usage',
      license_key: 'KEY',
      state: 'uncertain',
      held: false,
      attempts: 1,
      base_uses: 7,
      created_at: '2026-01-01T00:00:00+00:00',
      next_at: '2026-01-01T00:01:00+00:00',
      last_error: 'the answer was lost',
    },
  });
  const coupon = await server.inject({ url: '/admin/v1/outbox/d', headers });
  expect(coupon.json()).toMatchObject({ data: { license_key: null, base_uses: null } });
  const none = await server.inject({ url: '/admin/v1/outbox/z', headers });
  expect([none.statusCode, none.json<{ code: string }>().code]).toEqual([404, 'operation_not_found']);
});
