import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { byOperator, byOther, newId } from '../../../support/harness/keyed-authority.ts';
import { agentB, dataOf, openAuthority, type FollowedAuthority } from '../support/followed-authority.ts';

let authority: FollowedAuthority;
beforeAll(async () => {
  authority = await openAuthority();
});
afterAll(() => authority[Symbol.asyncDispose]());

test('an authority tells an agent its protocol, its epoch and for how long it keeps answers', async () => {
  const response = await authority.server.inject({ url: '/sync/v1', headers: byOther });
  expect(dataOf(response)).toEqual({
    protocol: 1,
    instance: authority.opened.app.instance,
    epoch: expect.stringMatching(/^[0-9a-f]{32}$/),
    keep_days: 30,
    max_wait: 25,
  });
  expect((await authority.server.inject({ url: '/sync/v1' })).statusCode).toBe(401);
});

test('a new follower gets its licenses, and then waits for a change', async () => {
  const followed = await authority.changes({ agent: agentB, follow: ['KEY-1', 'KEY-2', 'NO-SUCH-KEY'] });
  expect(followed.changes.map(({ license_key: key }) => key)).toEqual(['KEY-1', 'KEY-2']);
  expect(followed.absent).toEqual(['NO-SUCH-KEY']);
  const { epoch, cursor } = followed;
  const empty = await authority.changes({ agent: agentB, epoch, cursor });
  expect(empty).toMatchObject({ epoch, changes: [], absent: [] });
  await authority.change('usage', 'KEY-1');
  await authority.change('usage', 'KEY-3');
  const changed = await authority.changes({ agent: agentB, epoch, cursor: empty.cursor });
  const uses = await authority.uses('KEY-1');
  expect(changed.changes).toMatchObject([
    { license_key: 'KEY-1', revision: (followed.changes[0]?.revision ?? 0) + 1, license: { uses } },
  ]);
});

test('a follower that loses two responses in a row is still told that it must send its keys again', async () => {
  const agent = newId().replaceAll('-', '');
  const { epoch, cursor } = await authority.changes({ agent, follow: ['KEY-1'] });
  const more = { agent, epoch, cursor, follow: ['KEY-2'] };
  await authority.changes(more);
  await authority.changes(more);
  const again = await authority.changes(more);
  expect(again).toMatchObject({ reset: true, changes: [] });
  const followed = { agent, epoch, cursor: again.cursor, follow: ['KEY-1', 'KEY-2'] };
  expect((await authority.changes(followed)).changes).toHaveLength(2);
});

test('a follower is told a refund of a license that was disabled before', async () => {
  await authority.sell('KEY-BACK');
  await authority.change('disable', 'KEY-BACK');
  const agent = newId().replaceAll('-', '');
  const first = await authority.changes({ agent, follow: ['KEY-BACK'] });
  const { reader } = authority.opened.app;
  const [sale] = await reader.purchases.list({ licenseKey: 'KEY-BACK' }, { limit: 1, offset: 0 });
  const url = `/admin/v1/purchases/${sale?.purchase.purchaseId ?? ''}/refund`;
  const refund = await authority.server.inject({ method: 'POST', url, headers: byOperator });
  expect(refund.statusCode).toBe(200);
  const told = await authority.changes({ agent, epoch: first.epoch, cursor: first.cursor });
  expect(told.changes).toMatchObject([
    { license_key: 'KEY-BACK', revision: (first.changes[0]?.revision ?? 0) + 1, license: { enabled: false } },
  ]);
});

test('an agent is told at once that this store does not know a change that it has carried out', async () => {
  const id = newId();
  const agent = newId().replaceAll('-', '');
  expect(await authority.change('usage', 'KEY-3', { id })).toMatchObject({ status: 200 });
  expect(await authority.changes({ agent, carried_out: id })).not.toHaveProperty('put_back');
  expect(await authority.changes({ agent, carried_out: newId(), wait: 25 })).toMatchObject({
    put_back: true,
  });
  // A stored answer belongs to a product.
  expect(await authority.changes({ agent, carried_out: id }, byOther)).toMatchObject({ put_back: true });
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
