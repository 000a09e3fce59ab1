import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import {
  agentA,
  agentB,
  byAccount,
  byOperator,
  byOther,
  dataOf,
  newId,
  openAuthority,
  operation,
  usage,
  type SyncedAuthority,
} from '../../support/harness/sync-server-harness.ts';

let authority: SyncedAuthority;
beforeAll(async () => {
  authority = await openAuthority();
});
afterAll(() => authority[Symbol.asyncDispose]());

/** An agent id that no other test uses. */
function newAgent(): string {
  return newId().replaceAll('-', '');
}

test('an authority tells an agent its protocol, its epoch and the limits', async () => {
  const response = await authority.server.inject({ url: '/sync/v1', headers: byOther });
  expect(dataOf(response)).toEqual({
    protocol: 1,
    instance: authority.opened.app.instance,
    epoch: expect.stringMatching(/^[0-9a-f]{32}$/),
    max_batch: 500,
    max_bytes: 262_144,
    max_wait: 25,
  });
  expect((await authority.server.inject({ url: '/sync/v1' })).statusCode).toBe(401);
});

test('a push is applied once, and its repetition gets the same reply', async () => {
  const before = (await authority.uses('KEY-1')) ?? 0;
  const agent = newAgent();
  const operations = [usage(), usage(), operation({ kind: 'decrease', license_key: 'KEY-1' })];
  const reply = await authority.pushed(1, operations, { agent });
  expect(reply).toMatchObject({ seq: 1, results: [null, null, null] });
  expect(await authority.pushed(1, operations, { agent })).toEqual(reply);
  expect(await authority.uses('KEY-1')).toBe(before + 1);
});

test('a push out of order changes nothing, and says which was the last', async () => {
  const before = await authority.uses('KEY-1');
  const agent = newAgent();
  const { epoch } = await authority.pushed(1, [usage('KEY-2')], { agent });
  const expected = [
    [3, 'out_of_sequence', 1],
    [1, 'sequence_reused', 1],
  ] as const;
  for (const [seq, code, last] of expected) {
    const refused = await authority.push(seq, [usage()], { agent });
    expect(refused.statusCode).toBe(409);
    expect(refused.json()).toMatchObject({ code, last, epoch });
  }
  const first = await authority.push(2, [usage()], { agent: newAgent() });
  expect(first.json()).toMatchObject({ code: 'out_of_sequence', last: 0, epoch });
  expect(await authority.uses('KEY-1')).toBe(before);
});

test('the same agent has another row with a credential of another reach', async () => {
  const agent = newAgent();
  await authority.pushed(1, [usage('KEY-2')], { agent });
  const foreign = await authority.pushed(1, [usage('KEY-2')], { agent, headers: byOther });
  expect(foreign.results).toEqual([{ outcome: 'refused', code: 'license_not_found' }]);
  await authority.pushed(1, [usage('KEY-2')], { agent, headers: byAccount });
  await authority.pushed(2, [usage('KEY-2')], { agent });
});

test('each operation has its own result, and a malformed one is refused alone', async () => {
  const before = (await authority.uses('KEY-3')) ?? 0;
  const agent = newAgent();
  const { results } = await authority.pushed(
    1,
    [
      usage('KEY-3'),
      usage('NO-SUCH-KEY'),
      operation({ kind: 'disable', license_key: 'KEY-3' }),
      operation({ kind: 'enable', license_key: 'KEY-3', seen_enabled: true }),
      operation({ kind: 'enable', license_key: 'KEY-3' }),
      { kind: 'usage', license_key: 'KEY-3' },
      operation({ kind: 'sell', license_key: 'KEY-3' }),
      operation({ kind: 'usage', license_key: 7 }),
      operation({ kind: 'usage', license_key: 'KEY-3', at: 'yesterday' }),
      operation({ kind: 'usage', license_key: 'KEY-3', id: '00000000-0000-4000-8000-000000000000' }),
      usage('KEY-3'),
    ],
    { agent },
  );
  const malformed = { outcome: 'refused', code: 'parameters_invalid' };
  expect(results).toEqual([
    null,
    { outcome: 'refused', code: 'license_not_found' },
    null,
    { outcome: 'conflicted', code: 'revoked' },
    null,
    ...Array.from({ length: 5 }, () => malformed),
    null,
  ]);
  expect(await authority.uses('KEY-3')).toBe(before + 2);
  // A refusal advances the number, too.
  await authority.pushed(2, [usage('NO-SUCH-KEY')], { agent });
});

test('an operation that was applied is not applied again by another push or another agent', async () => {
  const before = (await authority.uses('KEY-1')) ?? 0;
  const [agent, copy] = [newAgent(), newAgent()];
  const same = usage();
  const missing = usage('NO-SUCH-KEY');
  const refused = { outcome: 'refused', code: 'license_not_found' };
  await authority.pushed(1, [same, missing, same], { agent });
  expect((await authority.pushed(2, [same, missing], { agent })).results).toEqual([null, refused]);
  expect((await authority.pushed(1, [missing, same], { agent: copy })).results).toEqual([refused, null]);
  expect(await authority.uses('KEY-1')).toBe(before + 1);
});

test('an operation on a missing license key is applied when it is sent again after the key was added', async () => {
  const agent = newAgent();
  const early = usage('KEY-LATE');
  const refused = { outcome: 'refused', code: 'license_not_found' };
  expect((await authority.pushed(1, [early], { agent })).results).toEqual([refused]);
  const sale = { product_key: 'PRESS', buyer_email: 'a@example.com', license_key: 'KEY-LATE' };
  await authority.post('/admin/v1/purchases', sale, byOperator);
  expect((await authority.pushed(2, [early], { agent })).results).toEqual([null]);
  expect((await authority.pushed(3, [early], { agent })).results).toEqual([null]);
  expect(await authority.uses('KEY-LATE')).toBe(1);
});

test('followers are told a license again whose operation an agent sends again', async () => {
  const [agent, restored] = [newAgent(), newAgent()];
  const same = usage('KEY-1');
  await authority.pushed(1, [same], { agent });
  const { epoch, cursor } = await authority.changes({ agent, follow: ['KEY-1', 'KEY-2'] });
  await authority.pushed(1, [same, usage('KEY-2', newId())], { agent: restored });
  const told = await authority.changes({ agent, epoch, cursor });
  expect(told.changes.map(({ license_key: key }) => key)).toEqual(['KEY-1', 'KEY-2']);
});

test('known tells what became of operations', async () => {
  const agent = newAgent();
  const ids = [newId(), newId(), newId(), newId()];
  await authority.pushed(
    1,
    [
      usage('KEY-1', ids[0]),
      usage('NO-SUCH-KEY', ids[1]),
      operation({ kind: 'disable', license_key: 'KEY-2' }),
      operation({ kind: 'enable', license_key: 'KEY-2', seen_enabled: true, id: ids[2] ?? '' }),
    ],
    { agent },
  );
  expect(await authority.known(ids)).toEqual([
    { id: ids[0], outcome: 'applied' },
    // The agent reads the key, and sends the operation again.
    { id: ids[1], outcome: 'not_seen' },
    { id: ids[2], outcome: 'conflicted', code: 'revoked' },
    { id: ids[3], outcome: 'not_seen' },
  ]);
});

test('a new follower gets its licenses, and then waits for a change', async () => {
  const followed = await authority.changes({ agent: agentB, follow: ['KEY-1', 'KEY-2', 'NO-SUCH-KEY'] });
  expect(followed.changes.map(({ license_key: key }) => key)).toEqual(['KEY-1', 'KEY-2']);
  expect(followed.absent).toEqual(['NO-SUCH-KEY']);
  const { epoch, cursor } = followed;
  const empty = await authority.changes({ agent: agentB, epoch, cursor });
  expect(empty).toMatchObject({ epoch, changes: [], absent: [] });
  await authority.pushed(1, [usage('KEY-1'), usage('KEY-3')], { agent: agentA });
  const changed = await authority.changes({ agent: agentB, epoch, cursor: empty.cursor });
  const uses = await authority.uses('KEY-1');
  expect(changed.changes).toMatchObject([
    { license_key: 'KEY-1', revision: (followed.changes[0]?.revision ?? 0) + 1, license: { uses } },
  ]);
});

const watching = (): object => ({ agent: newId().replaceAll('-', '') });

test('a watched key that has a license is answered at once, one of another product never', async () => {
  await authority.sell('WATCHED-1');
  const sale = { product_key: 'OTHER', buyer_email: 'a@example.com', license_key: 'WATCHED-OTHER' };
  await authority.post('/admin/v1/purchases', sale, byOperator);
  const watch = ['NOT-SOLD', 'WATCHED-OTHER', 'WATCHED-1'];
  const told = await authority.changes({ ...watching(), watch, wait: 25 });
  expect(told).toMatchObject({ changes: [], absent: [], appeared: ['WATCHED-1'] });
  const others = await authority.changes({ ...watching(), watch }, byOther);
  expect(others.appeared).toEqual(['WATCHED-OTHER']);
  expect(await authority.changes({ ...watching(), watch: ['NOT-SOLD'] })).not.toHaveProperty('appeared');
});

/** Lets time pass until the request is answered. Returns the answer, and how many ms it took. */
async function answered<Answer>(asked: Promise<Answer>): Promise<{ answer: Answer; tookMs: number }> {
  let isDone = false;
  const answering = asked.finally(() => (isDone = true));
  let tookMs = 0;
  // A PostgreSQL server answers in its own time, between two steps of the clock.
  await vi.waitFor(
    async () => {
      if (isDone) return;
      await authority.time.advance(250);
      tookMs += 250;
      throw new Error('the request is not answered');
    },
    { timeout: 10_000, interval: 50 },
  );
  return { answer: await answering, tookMs };
}

test('a request that waits is answered within about a second after a watched key was sold', async () => {
  const asked = watching();
  const { epoch, cursor } = await authority.changes(asked);
  const sold = (async () => {
    await authority.clock.sleep(3_000, new AbortController().signal);
    await authority.sell('WATCHED-2');
  })();
  const request = { ...asked, epoch, cursor, watch: ['WATCHED-2'], wait: 25 };
  const { answer, tookMs } = await answered(authority.changes(request));
  await sold;
  expect(answer).toMatchObject({ changes: [], appeared: ['WATCHED-2'] });
  expect(tookMs).toBeGreaterThanOrEqual(3_000);
  // Without the watched key the request waits for 23 s at least.
  expect(tookMs).toBeLessThan(20_000);
});

test('a request that watches keys in vain ends with its time, and leaves no timer', async () => {
  const asked = watching();
  const { epoch, cursor } = await authority.changes(asked);
  const request = { ...asked, epoch, cursor, watch: ['NEVER-SOLD'], wait: 2 };
  const { answer, tookMs } = await answered(authority.changes(request));
  expect(answer).not.toHaveProperty('appeared');
  expect(tookMs).toBeLessThan(20_000);
  await authority.time.advance(2_000);
  expect(authority.time.sleeping).toBe(0);
});
