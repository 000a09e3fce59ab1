import { expect, test } from 'vitest';
import type { Operation } from '../../src/domain/outbox/operation.ts';
import { quoteCart, type Redemption } from '../../src/domain/checkout/quote.ts';
import { buildCart, buildCoupon, buildTerms } from '../support/builders/coupon-builders.ts';
import { buildOperation } from '../support/builders/operation-builders.ts';
import {
  at,
  buildLicense,
  buildSnapshot,
  createTestStore,
  page,
} from '../support/builders/store-builders.ts';

const terms = buildTerms({
  discount: { type: 'percent', percentOff: 12.5 },
  code: 'Spring',
  endAt: at,
  minimumPurchaseAmount: 500,
  usageLimit: 3,
});

test('a mirrored coupon is found by its id and by its code, in any letter case', async () => {
  await using store = createTestStore();
  const { mirror } = store.writing.transaction;
  const single = { ...terms, scope: { type: 'single', productKey: 'unknown here' } } as const;
  const listed = { coupon: { ...single, id: 12 }, confirmedAt: at };
  mirror.put({ coupon: { ...terms, id: 12 }, confirmedAt: at - 1 });
  mirror.put(listed);
  expect(mirror.get(12)).toStrictEqual(listed);
  expect(mirror.byCode('SPRING')).toStrictEqual(listed);
  expect(mirror.list(page)).toStrictEqual([listed]);
  expect(mirror.count()).toBe(1);
  mirror.put({ coupon: { ...terms, id: -1, code: 'NOT-YET' }, confirmedAt: null });
  expect(mirror.shownIds()).toEqual([12]);
  mirror.remove(-1);
  // An upstream may distinguish letter case.
  const shouted = { coupon: { ...terms, id: 13, code: 'SPRING' }, confirmedAt: at };
  mirror.put(shouted);
  expect(mirror.byCode('SPRING')).toStrictEqual(shouted);
  expect(mirror.byCode('spring')).toStrictEqual(listed);
  mirror.remove(13);
  mirror.remove(12);
  expect(mirror.get(12)).toBeNull();
});

test('a code finds the coupon that the upstream has shown, even while another coupon with the code waits', async () => {
  await using store = createTestStore();
  const { mirror } = store.writing.transaction;
  const provisional = { coupon: { ...terms, id: mirror.provisionalId() }, confirmedAt: null };
  mirror.put(provisional);
  expect(mirror.byCode('Spring')).toStrictEqual(provisional);
  const shown = { coupon: { ...terms, id: 12 }, confirmedAt: at };
  mirror.put(shown);
  for (const code of [terms.code, 'SPRING']) expect(mirror.byCode(code)).toStrictEqual(shown);
  expect(mirror.provisionalByCode('SPRING')).toStrictEqual(provisional);
  // Even if the waiting coupon matches exactly: few upstreams distinguish letter case.
  mirror.put({ ...provisional, coupon: { ...provisional.coupon, code: 'SPRING' } });
  expect(mirror.byCode('SPRING')).toStrictEqual(shown);
  mirror.remove(provisional.coupon.id);
  expect(mirror.provisionalByCode('SPRING')).toBeNull();
});

test('a provisional id still finds its coupon after the coupon has its real id, and is never reused', async () => {
  await using store = createTestStore();
  const { mirror } = store.writing.transaction;
  const first = mirror.provisionalId();
  mirror.put({ coupon: { ...terms, id: first }, confirmedAt: null });
  expect(first).toBeLessThan(0);
  expect(mirror.get(first)).toStrictEqual({ coupon: { ...terms, id: first }, confirmedAt: null });
  mirror.remove(first);
  expect(mirror.get(first)).toBeNull();
  const real = { coupon: { ...terms, id: 12 }, confirmedAt: at };
  mirror.put(real);
  mirror.alias(first, 12);
  expect(mirror.get(first)).toStrictEqual(real);
  expect(mirror.provisionalId()).not.toBe(first);
});

function buildRedemption(changes: Partial<Redemption> = {}): Redemption {
  const couponId = changes.couponId ?? 3;
  const cart = buildCart({ amount: 1000 }, { collectionIds: ['set'], recurring: true });
  const quote = quoteCart(buildCoupon({ id: couponId }), cart, { now: at, redemptions: 0 });
  return { order: 'A-1', couponId, cart, quote, redeemedAt: at, ...changes };
}

test('the redemptions of a coupon move with it to another id', async () => {
  await using store = createTestStore();
  const { redemptions } = store.writing.transaction;
  redemptions.add('default', buildRedemption({ couponId: -1 }));
  redemptions.add('default', buildRedemption({ order: 'A-2', couponId: 7 }));
  redemptions.add('other', buildRedemption({ couponId: -1 }));
  redemptions.renumberCoupon('default', -1, 7);
  expect(redemptions.get('default', 'A-1')).toMatchObject({ couponId: 7, quote: { couponId: 7 } });
  expect(redemptions.countOf('default', 7)).toBe(2);
  expect(redemptions.countOf('default', -1)).toBe(0);
  expect(redemptions.countOf('other', -1)).toBe(1);
});

test('the redemptions of a coupon with a real id are still found under its provisional id', async () => {
  await using store = createTestStore();
  const { mirror, redemptions } = store.writing.transaction;
  const provisional = mirror.provisionalId();
  redemptions.add('default', buildRedemption({ couponId: provisional }));
  mirror.alias(provisional, 12);
  redemptions.renumberCoupon('default', provisional, 12);
  for (const id of [provisional, 12]) {
    expect(redemptions.countOf('default', id)).toBe(1);
    const listed = redemptions.listOf('default', id, { limit: 10, offset: 0 });
    expect(listed).toMatchObject([{ order: 'A-1', couponId: 12 }]);
    expect(redemptions.ordersOf('default', id, 10)).toEqual(['A-1']);
  }
  expect(redemptions.countOf('default', -99)).toBe(0);
});

test('a snapshot stores what the upstream said separately from what is shown', async () => {
  await using store = createTestStore();
  const { snapshots } = store.writing.transaction;
  snapshots.put(buildSnapshot());
  snapshots.put(buildSnapshot({ missingSince: at + 9, gone: true }));
  expect(snapshots.get('KEY-1')).toMatchObject(buildSnapshot({ missingSince: at + 9, gone: true }));
  for (const local of [
    { uses: 8, enabled: true, pending: 1 },
    { uses: 8, enabled: false, pending: 2 },
  ]) {
    snapshots.setLocal('KEY-1', local);
    expect(snapshots.get('KEY-1')).toMatchObject(buildSnapshot({ local, missingSince: at + 9, gone: true }));
  }
  expect(snapshots.get('KEY-2')).toBeNull();
});

test('a snapshot stores the members that the upstream returned beyond the specification', async () => {
  await using store = createTestStore();
  const { snapshots } = store.writing.transaction;
  const extra = { product_name: 'Press ä', variants: [{ id: 1 }], none: null };
  const told = buildSnapshot({ license: { ...buildLicense(), extra } });
  snapshots.put(told);
  expect(snapshots.get('KEY-1')).toMatchObject(told);
});

test('the store knows the key that last confirmed a product', async () => {
  await using store = createTestStore();
  const { snapshots } = store.writing.transaction;
  const late = buildSnapshot({ license: buildLicense({ licenseKey: 'KEY-2' }), confirmedAt: at + 1 });
  snapshots.put(late);
  snapshots.put(buildSnapshot());
  expect(snapshots.latest('press', 1)).toEqual(['KEY-2']);
  expect(snapshots.latest('press', 9)[0]).toBe('KEY-2');
  expect(snapshots.latest('press', 9).length).toBeGreaterThan(1);
  expect(snapshots.latest('other', 9)).toEqual([]);
});

test('keys are refreshed when they are due, longest overdue first, and not after callers stopped verifying them', async () => {
  await using store = createTestStore();
  const { snapshots } = store.writing.transaction;
  const known = (licenseKey: string, refreshAt: number | null, gone = false) => {
    snapshots.put(buildSnapshot({ license: buildLicense({ licenseKey }), refreshAt, gone }));
  };
  known('SOON', 20);
  known('OVERDUE', 10);
  known('LATER', 40);
  known('FORGOTTEN', null);
  known('GONE', 5, true);
  const keys = (limit: number) => snapshots.toRefresh(30, limit).map(({ license }) => license.licenseKey);
  expect(keys(10)).toEqual(['GONE', 'OVERDUE', 'SOON']);
  expect(keys(1)).toEqual(['GONE']);
  snapshots.touch('FORGOTTEN', 101, 15);
  snapshots.touch('SOON', 102, 5);
  expect(keys(10)).toEqual(['GONE', 'OVERDUE', 'FORGOTTEN', 'SOON']);
  expect(snapshots.get('FORGOTTEN')?.askedAt).toBe(101);
  snapshots.shiftWaits(-10);
  expect(keys(10)).toEqual(['GONE', 'OVERDUE', 'FORGOTTEN', 'SOON', 'LATER']);
});

test('the time of a first 404 shifts with the clock of waits after a restart of that clock', async () => {
  await using store = createTestStore();
  const { snapshots } = store.writing.transaction;
  snapshots.put(buildSnapshot({ missingSince: 50, refreshAt: null }));
  snapshots.shiftWaits(-10);
  expect(snapshots.get('KEY-1')).toMatchObject({ missingSince: 40, refreshAt: null });
});

test('a key that is not followed any more keeps the date at which the followed keys were confirmed together', async () => {
  await using store = createTestStore();
  const { snapshots, follows } = store.writing.transaction;
  for (const licenseKey of ['ONE', 'OTHER']) {
    snapshots.put(buildSnapshot({ license: buildLicense({ licenseKey }), confirmedAt: 10 }));
    snapshots.setFollowed(licenseKey, true);
  }
  follows.put('press', { epoch: 'e', cursor: 'c', confirmedAt: 20 });
  snapshots.setFollowed('ONE', false);
  snapshots.unfollowAll();
  follows.removeAll();
  expect(['ONE', 'OTHER'].map((key) => snapshots.get(key)?.confirmedAt)).toEqual([20, 20]);
});

test('the counts group enabled keys by age, disabled keys separately, and exclude gone keys', async () => {
  await using store = createTestStore();
  const { snapshots } = store.writing.transaction;
  const since = { fresh: 30, stale: 20, grace: 10 };
  expect(snapshots.counts(since)).toStrictEqual({ fresh: 0, stale: 0, grace: 0, expired: 0, disabled: 0 });
  const known = (confirmedAt: number, enabled: boolean, gone = false) => {
    const license = buildLicense({ licenseKey: `KEY-${confirmedAt}-${enabled}-${gone}` });
    snapshots.put(buildSnapshot({ license, local: { uses: 0, enabled, pending: 0 }, confirmedAt, gone }));
  };
  for (const confirmedAt of [31, 30, 29, 10, 9, 8, 7]) known(confirmedAt, true);
  for (const confirmedAt of [31, 1]) known(confirmedAt, false);
  known(31, true, true);
  expect(snapshots.counts(since)).toStrictEqual({ fresh: 2, stale: 1, grace: 1, expired: 3, disabled: 2 });
});

test('the head of a queue is its first unfinished operation that is not held', async () => {
  await using store = createTestStore();
  const { operations } = store.writing.transaction;
  const held = { state: 'uncertain', maybeApplied: false, baseUses: 4, held: true } as const;
  operations.add(buildOperation({ progress: { state: 'delivered', finishedAt: at } }));
  operations.add(buildOperation({ progress: held }));
  const head = operations.add(buildOperation({ kind: 'decrease' }));
  const behind = operations.add(buildOperation());
  const last = operations.add(buildOperation({ progress: held }));
  operations.add(buildOperation({ kind: 'disable' }));
  operations.add(buildOperation({ subject: 'KEY-2' }));
  expect(operations.head('KEY-1', 'counter')).toStrictEqual(head);
  expect(operations.queue('KEY-1', 'counter')).toStrictEqual([head, behind]);
  expect(operations.tail('KEY-1', 'counter')).toStrictEqual(last);
  expect(operations.head('KEY-3', 'counter')).toBeNull();
});

test('a key lists its unfinished operations and the disables in force, in order', async () => {
  await using store = createTestStore();
  const { operations } = store.writing.transaction;
  const dead = { state: 'dead', cause: 'refused' } as const;
  const shown: Operation[] = [];
  shown.push(operations.add(buildOperation({ kind: 'disable', progress: dead })));
  operations.add(buildOperation({ kind: 'usage', progress: dead }));
  shown.push(operations.add(buildOperation()));
  operations.add(buildOperation({ kind: 'create_coupon', productId: null }));
  operations.add(buildOperation({ kind: 'disable', progress: { state: 'dropped', finishedAt: at } }));
  shown.push(operations.add(buildOperation({ kind: 'disable', progress: { state: 'conflicted' } })));
  shown.push(operations.add(buildOperation({ kind: 'enable' })));
  expect(operations.visibleToCallers('KEY-1')).toStrictEqual(shown);
});

test('queues are due in the order of their times, without queues of excluded products', async () => {
  await using store = createTestStore();
  const { operations } = store.writing.transaction;
  operations.add(buildOperation({ subject: 'A', nextAt: 30 }));
  operations.add(buildOperation({ subject: 'B', nextAt: 10, productId: 'other' }));
  operations.add(buildOperation({ subject: 'C', nextAt: 20, productId: null, kind: 'create_coupon' }));
  operations.add(buildOperation({ subject: 'D', nextAt: 50 }));
  operations.add(buildOperation({ subject: 'E' }));
  const any = (): boolean => true;
  const due = (...parameters: Parameters<typeof operations.due>) =>
    operations.due(...parameters).map(({ subject }) => subject);
  expect(due(30, 10, any)).toEqual(['B', 'C', 'A']);
  expect(due(30, 2, any)).toEqual(['B', 'C']);
  expect(due(30, 10, (productKey) => productKey !== 'other')).toEqual(['C', 'A']);
  expect(due(9, 10, any)).toEqual([]);
  expect(operations.due(20, 10, (productKey) => productKey === null)).toStrictEqual([
    { subject: 'C', queue: 'coupon', productId: null },
  ]);
  expect(operations.nextDueAt(0)).toBe(10);
  expect(operations.nextDueAt(30)).toBe(50);
  expect(operations.nextDueAt(50)).toBeNull();
});

test('due queues are found for any number of products', async () => {
  await using store = createTestStore();
  const { operations } = store.writing.transaction;
  for (const productKey of ['b', 'd', 'a', 'c', 'e']) {
    operations.add(
      buildOperation({ subject: productKey, productId: productKey, nextAt: productKey === 'c' ? null : 10 }),
    );
  }
  const due = operations.due(10, 10, () => true).map(({ subject }) => subject);
  expect(due.toSorted()).toEqual(['a', 'b', 'd', 'e']);
});

test('the end of an outage releases only the queues that the outage delayed', async () => {
  await using store = createTestStore();
  const { operations } = store.writing.transaction;
  const outage = operations.add(buildOperation({ subject: 'A', nextAt: 90, outage: true }));
  const due = operations.add(buildOperation({ subject: 'B', nextAt: 5, outage: true }));
  const delayed = operations.add(buildOperation({ subject: 'C', nextAt: 80 }));
  operations.endOutage(10);
  expect(operations.get(outage.id)).toStrictEqual({ ...outage, nextAt: 10, outage: false });
  expect(operations.get(due.id)).toStrictEqual({ ...due, nextAt: 5, outage: false });
  expect(operations.get(delayed.id)).toStrictEqual(delayed);
});

test('sync now ends every wait except for a reconcile delay', async () => {
  await using store = createTestStore();
  const { operations } = store.writing.transaction;
  const uncertain = { state: 'uncertain', maybeApplied: false, baseUses: null, held: false } as const;
  const waiting = operations.add(buildOperation({ subject: 'A', nextAt: 90, outage: true }));
  const due = operations.add(buildOperation({ subject: 'B', nextAt: 5 }));
  const delayed = operations.add(
    buildOperation({ subject: 'C', nextAt: 80, reconcileAt: 80, progress: uncertain }),
  );
  operations.endBackoff(10);
  expect(operations.get(waiting.id)).toStrictEqual({ ...waiting, nextAt: 10, outage: false });
  expect(operations.get(due.id)).toStrictEqual(due);
  expect(operations.get(delayed.id)).toStrictEqual(delayed);
});

test('waits shift with a clock that started again', async () => {
  await using store = createTestStore();
  const { operations } = store.writing.transaction;
  const waiting = operations.add(buildOperation({ subject: 'A', nextAt: 90, outage: true }));
  const behind = operations.add(buildOperation({ subject: 'A', nextAt: null }));
  const lost = operations.add(buildOperation({ subject: 'B', nextAt: 90, reconcileAt: 90 }));
  operations.shiftWaits(-60);
  expect(operations.get(lost.id)).toStrictEqual({ ...lost, nextAt: 30, reconcileAt: 30 });
  expect(operations.get(waiting.id)).toStrictEqual({ ...waiting, nextAt: 30 });
  expect(operations.get(behind.id)).toStrictEqual(behind);
});

test('operations are listed by state, and without a state all unfinished operations are listed', async () => {
  await using store = createTestStore();
  const { operations } = store.writing.transaction;
  const dead = operations.add(
    buildOperation({ createdAt: 10, progress: { state: 'dead', cause: 'refused' } }),
  );
  const old = operations.add(
    buildOperation({ createdAt: 20, progress: { state: 'delivered', finishedAt: 25 } }),
  );
  expect(operations.oldestAt()).toBeNull();
  const pending = operations.add(buildOperation({ createdAt: 30 }));
  expect(operations.list(null, page)).toStrictEqual([dead, pending]);
  expect(operations.list(null, { limit: 1, offset: 1 })).toStrictEqual([pending]);
  expect(operations.list('delivered', page)).toStrictEqual([old]);
  expect([...operations.withState('dead')]).toStrictEqual([dead]);
  expect(operations.oldestAt()).toBe(30);
  operations.prune(25, 10);
  expect(operations.get(old.id)).toStrictEqual(old);
  operations.prune(26, 10);
  expect(operations.get(old.id)).toBeNull();
  expect(operations.depth()).toMatchObject({ dead: 1, pending: 1, delivered: 0, dropped: 0 });
  expect(operations.unfinished()).toBe(1);
});

test('an operation that is not in the outbox cannot be updated', async () => {
  await using store = createTestStore();
  const { operations } = store.writing.transaction;
  expect(() => operations.put({ ...buildOperation({ id: 'gone' }), seq: 1 })).toThrow('no operation gone');
});

test('an audit entry cannot be changed or removed', async () => {
  await using store = createTestStore();
  const { database, transaction } = store.writing;
  transaction.audit.add({ at, actor: 'token:t', act: 'drop', subject: 'operation-1', detail: '' });
  expect(() => database.exec("UPDATE audit_event SET action = 'retry'")).toThrow(/append-only/);
  expect(() => database.exec('DELETE FROM audit_event')).toThrow(/append-only/);
});

test('the history of a license key lists the last thousand changes, and stores few more', async () => {
  await using store = createTestStore();
  const { history } = store.writing.transaction;
  const state = { uses: 0, enabled: true };
  const change = { change: 'usage', credential: 'product:press', before: state, after: state } as const;
  history.add({ ...change, licenseKey: 'KEY-2', at });
  for (let count = 1; count <= 1_010; count += 1) {
    history.add({ ...change, licenseKey: 'KEY-1', at: at + count, after: { uses: count, enabled: false } });
  }
  expect([history.count('KEY-1'), history.count('KEY-2')]).toEqual([1_000, 1]);
  expect(history.list('KEY-1', { limit: 1, offset: 0 })).toStrictEqual([
    {
      ...change,
      licenseKey: 'KEY-1',
      number: 1_010,
      at: at + 1_010,
      after: { uses: 1_010, enabled: false },
    },
  ]);
  expect(history.list('KEY-1', { limit: 10, offset: 999 }).map((each) => each.at)).toEqual([at + 11]);
  expect(history.list('KEY-1', { limit: 10, offset: 1_000 })).toEqual([]);
  history.changeKey('KEY-1', 'KEY-2');
  expect([history.count('KEY-1'), history.count('KEY-2')]).toEqual([0, 1_000]);
  for (let count = 0; count < 100; count += 1) {
    history.add({ ...change, licenseKey: 'KEY-2', at: at + 2_000 });
  }
  expect(history.count('KEY-2')).toBe(1_000);
  expect(history.prune(at + 3_000, 5_000)).toBeLessThan(1_100);
  expect(history.count('KEY-2')).toBe(0);
});

test('changes are pruned by age, oldest first, in limited batches', async () => {
  await using store = createTestStore();
  const { history } = store.writing.transaction;
  const state = { uses: 0, enabled: true };
  const change = { change: 'usage', credential: 'product:press', before: state, after: state } as const;
  for (let count = 1; count <= 80; count += 1) {
    history.add({ ...change, licenseKey: `KEY-${count % 2}`, at: at + count });
  }
  expect(history.prune(at + 61, 50)).toBe(50);
  expect(history.prune(at + 61, 50)).toBe(10);
  expect(history.list('KEY-1', { limit: 20, offset: 9 }).map((each) => each.at)).toEqual([at + 61]);
});

test('a reading connection cannot write', async () => {
  await using store = createTestStore();
  expect(() => store.reading.database.exec("INSERT INTO setting VALUES ('a', 'b')")).toThrow(/readonly/);
});
