import type { LightMyRequestResponse } from 'fastify';
import { expect, test } from 'vitest';
import type { Operation, OperationProgress } from '../../../../src/domain/outbox/operation.ts';
import { asAdmin, codeOf, dataOf, openApp, type TestApp } from '../../../support/app/http-app.ts';
import { buildOperation } from '../../../support/builders/operation-builders.ts';
import { buildLicense, buildSnapshot } from '../../../support/builders/store-builders.ts';

const operation = (id: string, progress: OperationProgress): Operation =>
  buildOperation({ id, subject: 'KEY', productId: 'P', attempts: 1, progress });

test('the outbox lists unfinished operations, and any state by name', async () => {
  await using opened = await openApp({ role: 'agent' });
  const { operations } = opened.agentTables();
  operations.add(operation('a', { state: 'pending', maybeApplied: false, unanswered: false }));
  operations.add({
    ...operation('b', { state: 'uncertain', maybeApplied: false, baseUses: 7, held: false }),
    nextAt: Date.parse('2026-01-01T00:01:00Z'),
    lastError: 'the answer was lost',
  });
  operations.add(operation('c', { state: 'delivered', finishedAt: 1 }));
  for (const state of ['inferred', 'cancelled', 'dropped'] as const) {
    operations.add(operation(state, { state, finishedAt: 1 }));
  }
  operations.add({
    ...operation('d', { state: 'dead', cause: 'refused' }),
    kind: 'create_coupon',
    subject: 'CODE',
    productId: null,
  });
  const list = async (query: string): Promise<[unknown, string[]]> => {
    const answer = await opened.send('GET', `outbox${query}`);
    const { operations: found } = await dataOf<{ operations: { id: string }[] }>(answer);
    return [answer.headers['x-total-count'], found.map(({ id }) => id)];
  };
  expect(await list('')).toEqual(['3', ['a', 'b', 'd']]);
  expect(await list('?limit=1&offset=1')).toEqual(['3', ['b']]);
  expect(await list('?state=delivered')).toEqual(['1', ['c']]);
  expect((await opened.send('GET', 'outbox?state=lost')).statusCode).toBe(422);
  const shown = await opened.send('GET', 'outbox/b');
  expect(shown.json()).toEqual({
    data: {
      id: 'b',
      kind: 'usage',
      amount: 1,
      license_key: 'KEY',
      subject: 'KEY',
      state: 'uncertain',
      held: false,
      attempts: 1,
      base_uses: 7,
      created_at: '2026-01-01T00:00:00+00:00',
      request_id: null,
      credential: null,
      next_at: '2026-01-01T00:01:00+00:00',
      last_error: 'the answer was lost',
      explanation: {
        meaning: expect.stringContaining('the response was lost') as string,
        waits: [
          {
            cause: 'behind',
            detail: 'Earlier changes of the same key, coupon or order go first',
            until: null,
          },
        ],
        expected_uses: 8,
        shown: null,
        decisions: {
          retry: expect.stringContaining('9 instead of 8') as string,
          drop: expect.any(String) as string,
          confirm: expect.any(String) as string,
        },
      },
    },
  });
  const coupon = await opened.send('GET', 'outbox/d');
  expect(coupon.json()).toMatchObject({ data: { license_key: null, base_uses: null } });
  const none = await opened.send('GET', 'outbox/z');
  expect([none.statusCode, codeOf(none)]).toEqual([404, 'operation_not_found']);
});

test('the list explains each operation as the page of one operation does, if the request asks for it', async () => {
  await using opened = await openApp({ role: 'agent' });
  const { operations } = opened.agentTables();
  operations.add(operation('a', { state: 'dead', cause: 'refused' }));
  operations.add(operation('b', { state: 'uncertain', maybeApplied: true, baseUses: 7, held: true }));
  const read = async (path: string): Promise<unknown> => await dataOf(opened.send('GET', `outbox${path}`));
  expect(await read('?explain=true')).toEqual({ operations: [await read('/a'), await read('/b')] });
  for (const query of ['', '?explain=false']) {
    const { operations: listed } = (await read(query)) as { operations: object[] };
    expect(listed.map((each) => 'explanation' in each)).toEqual([false, false]);
  }
  expect((await opened.send('GET', 'outbox?explain=yes')).statusCode).toBe(422);
});

test('the outbox of an authority is empty', async () => {
  await using opened = await openApp();
  for (const query of ['', '?state=pending', '?license_key=KEY']) {
    const answer = await opened.send('GET', `outbox${query}`);
    expect(answer.headers['x-total-count']).toBe('0');
    expect(answer.json()).toEqual({ data: { operations: [] } });
  }
  const shown = await opened.send('GET', 'outbox/a');
  for (const answer of [shown, await decide(opened, 'a', 'retry')]) {
    expect([answer.statusCode, codeOf(answer)]).toEqual([404, 'operation_not_found']);
  }
});

test('the outbox lists the unfinished operations of one license key', async () => {
  await using opened = await openApp({ role: 'agent' });
  const { operations } = opened.agentTables();
  operations.add({ ...operation('a', { state: 'dead', cause: 'refused' }), kind: 'disable' });
  operations.add(operation('b', { state: 'pending', maybeApplied: false, unanswered: false }));
  operations.add({
    ...operation('c', { state: 'pending', maybeApplied: false, unanswered: false }),
    subject: 'OTHER',
  });
  operations.add(operation('d', { state: 'delivered', finishedAt: 1 }));
  operations.add(operation('e', { state: 'conflicted' }));
  const list = async (query: string): Promise<unknown[]> => {
    const answer = await opened.send('GET', `outbox?${query}`);
    const { operations: found } = await dataOf<{ operations: { id: string }[] }>(answer);
    return [answer.headers['x-total-count'], ...found.map(({ id }) => id)];
  };
  expect(await list('license_key=KEY')).toEqual(['3', 'a', 'b', 'e']);
  expect(await list('license_key=KEY&state=pending')).toEqual(['1', 'b']);
  expect(await list('license_key=KEY&limit=1&offset=1')).toEqual(['3', 'b']);
  expect(await list('license_key=NONE')).toEqual(['0']);
});

test('a person resends a dead operation, which becomes the head of its queue', async () => {
  await using opened = await openApp({ role: 'agent' });
  const { operations } = opened.agentTables();
  operations.add({ ...operation('a', { state: 'dead', cause: 'refused' }), lastError: 'HTTP 422' });
  operations.add({
    ...operation('b', { state: 'pending', maybeApplied: false, unanswered: false }),
    nextAt: 7,
  });
  const answer = await decide(opened, 'a', 'retry');
  expect([answer.statusCode, await dataOf(answer)]).toEqual([
    200,
    expect.objectContaining({
      id: 'a',
      state: 'pending',
      last_error: 'HTTP 422',
      explanation: expect.objectContaining({ meaning: expect.any(String) as string }) as object,
    }),
  ]);
  expect(operations.head('KEY', 'counter')?.id).toBe('a');
  expect(operations.get('b')?.nextAt).toBeNull();
});

test('a person drops an operation or confirms that it was applied, which finishes the operation', async () => {
  await using opened = await openApp({ role: 'agent' });
  const { operations } = opened.agentTables();
  operations.add(operation('a', { state: 'conflicted' }));
  operations.add(operation('b', { state: 'uncertain', maybeApplied: false, baseUses: 3, held: true }));
  expect((await decide(opened, 'a', 'drop')).json()).toMatchObject({ data: { state: 'dropped' } });
  expect((await decide(opened, 'b', 'confirm')).json()).toMatchObject({
    data: { state: 'delivered', held: false },
  });
  for (const id of ['a', 'b']) {
    for (const word of ['retry', 'drop', 'confirm']) {
      const again = await decide(opened, id, word);
      expect([again.statusCode, codeOf(again)]).toEqual([409, 'operation_not_open']);
    }
  }
  expect(await opened.record()).toEqual([
    'token:admin | outbox.drop | a | usage, was conflicted after 1 attempt',
    'token:admin | outbox.confirm | b | usage, was uncertain after 1 attempt',
  ]);
});

test('an operation that is in flight or waits cannot be confirmed, and a missing operation cannot be decided', async () => {
  await using opened = await openApp({ role: 'agent' });
  const { operations } = opened.agentTables();
  operations.add(operation('a', { state: 'pending', maybeApplied: false, unanswered: false }));
  operations.add(
    operation('b', { state: 'in_flight', maybeApplied: false, unanswered: false, baseUses: 0, sentAt: 1 }),
  );
  for (const [id, word] of [
    ['a', 'confirm'],
    ['b', 'confirm'],
    ['b', 'drop'],
    ['b', 'retry'],
  ] as const) {
    const answer = await decide(opened, id, word);
    expect([answer.statusCode, codeOf(answer)]).toEqual([409, 'operation_not_open']);
  }
  const none = await decide(opened, 'z', 'drop');
  expect([none.statusCode, codeOf(none)]).toEqual([404, 'operation_not_found']);
  expect(await opened.record()).toEqual([]);
});

test('a repeated decision under its idempotency key gets the same response, and is one audit entry', async () => {
  await using opened = await openApp({ role: 'agent' });
  opened.agentTables().operations.add(operation('a', { state: 'dead', cause: 'refused' }));
  const first = await decide(opened, 'a', 'drop', { 'idempotency-key': 'k' });
  const second = await decide(opened, 'a', 'drop', { 'idempotency-key': 'k' });
  expect(first.statusCode).toBe(200);
  expect([second.statusCode, second.body]).toEqual([200, first.body]);
  expect(await opened.record()).toHaveLength(1);
});

test('a decision wakes the sending of the outbox', async () => {
  let woken = 0;
  const never = (): Promise<never> => Promise.reject(new Error('unexpected call'));
  const others = { now: never, pause: never, resume: never, preload: never };
  const sync = { ...others, wake: () => void (woken += 1) };
  await using opened = await openApp({ role: 'agent', sync });
  opened.agentTables().operations.add(operation('a', { state: 'dead', cause: 'refused' }));
  await decide(opened, 'a', 'retry');
  expect(woken).toBe(1);
});

function decide(
  { send }: TestApp,
  id: string,
  word: string,
  more: object = {},
): Promise<LightMyRequestResponse> {
  return send('POST', `outbox/${id}/${word}`, undefined, { ...asAdmin, ...more });
}

test('the outbox is searched by the key, the code, the order and the buyer, within a state', async () => {
  await using opened = await openApp({ role: 'agent' });
  const { operations, snapshots } = opened.agentTables();
  operations.add(operation('a', { state: 'pending', maybeApplied: false, unanswered: false }));
  operations.add(operation('b', { state: 'dead', cause: 'refused' }));
  operations.add(operation('c', { state: 'delivered', finishedAt: 1 }));
  operations.add({
    ...operation('d', { state: 'dead', cause: 'refused' }),
    kind: 'create_coupon',
    subject: 'CODE',
    productId: null,
  });
  snapshots.put({
    ...buildSnapshot(),
    license: buildLicense({ licenseKey: 'KEY', buyerEmail: 'ann@example.com' }),
  });
  const found = async (query: string): Promise<string> => {
    const answer = await opened.send('GET', `outbox?${query}`);
    if (answer.statusCode !== 200) return String(answer.statusCode);
    const { operations: listed } = await dataOf<{ operations: { id: string }[] }>(answer);
    return `${String(answer.headers['x-total-count'])} ${listed.map(({ id }) => id).join('')}`;
  };
  expect(await found('search=key')).toBe('2 ab');
  expect(await found('search=key&limit=1&offset=1')).toBe('2 b');
  expect(await found('search=ODE')).toBe('1 d');
  expect(await found('search=NN@ex&state=dead')).toBe('1 b');
  expect(await found('search=key&state=delivered')).toBe('1 c');
  expect(await found('search=none')).toBe('0 ');
  expect(await found('search=%E2%80%A6EY')).toBe('422');
});
