import { StatementSync } from 'node:sqlite';
import * as fc from 'fast-check';
import { expect, test, vi } from 'vitest';
import {
  isLicenseKind,
  queueOf,
  operationStates,
  type Operation,
  type OperationKind,
  type OperationProgress,
} from '../../../src/domain/outbox/operation.ts';
import { buildOperation } from '../../support/builders/operation-builders.ts';
import { createTestStore, type TestStore } from '../../support/builders/store-builders.ts';

const count = fc.maxSafeInteger();
const instant = fc.maxSafeNat();
const maybe = <Value>(value: fc.Arbitrary<Value>) => fc.option(value, { nil: null });

const progressOf: { [State in OperationProgress['state']]: fc.Arbitrary<OperationProgress> } = {
  pending: fc.record({
    state: fc.constant('pending'),
    maybeApplied: fc.boolean(),
    unanswered: fc.boolean(),
  }),
  in_flight: fc.record({
    state: fc.constant('in_flight'),
    maybeApplied: fc.boolean(),
    unanswered: fc.boolean(),
    baseUses: maybe(count),
    sentAt: instant,
  }),
  uncertain: fc.record({
    state: fc.constant('uncertain'),
    maybeApplied: fc.boolean(),
    baseUses: maybe(count),
    held: fc.boolean(),
  }),
  delivered: fc.record({ state: fc.constant('delivered'), finishedAt: instant }),
  inferred: fc.record({ state: fc.constant('inferred'), finishedAt: instant }),
  cancelled: fc.record({ state: fc.constant('cancelled'), finishedAt: instant }),
  dropped: fc.record({ state: fc.constant('dropped'), finishedAt: instant }),
  conflicted: fc.record({ state: fc.constant('conflicted') }),
  dead: fc.record({ state: fc.constant('dead'), cause: fc.constantFrom('refused', 'missing') }),
};
const progress = fc.oneof(...Object.values(progressOf)).map((value) => ({ ...value }));

/** What may wait for its turn: unfinished, and not held. */
function mayWait(value: OperationProgress): boolean {
  if (value.state === 'uncertain') return !value.held;
  return value.state === 'pending' || value.state === 'in_flight';
}

const delivery = fc
  .record({
    attempts: fc.maxSafeNat(),
    failures: fc.maxSafeNat(),
    nextAt: maybe(instant),
    outage: fc.boolean(),
    lastError: maybe(fc.string({ unit: 'grapheme' })),
    reconcileAt: maybe(instant),
    upstream: maybe(fc.string()),
    seenEnabled: maybe(fc.boolean()),
    payload: maybe(fc.string()),
    progress,
  })
  .map((made) => ({ ...made, nextAt: mayWait(made.progress) ? made.nextAt : null }));

const identity = fc
  .record({
    id: fc.uuid(),
    kind: fc.constantFrom(...(Object.keys(queueOf) as OperationKind[])),
    amount: fc.integer({ min: 1, max: 2 ** 31 }),
    subject: fc.string({ minLength: 1 }),
    productId: maybe(fc.string()),
    createdAt: instant,
    seenRevision: maybe(instant),
    credential: fc.option(fc.string()),
    requestId: fc.option(fc.string()),
  })
  .map((made) => ({ ...made, amount: made.kind === 'usage' ? made.amount : 1 }));

/** Runs a check in a transaction that leaves nothing behind. */
function tried(store: TestStore, check: () => void): void {
  const { database } = store.writing;
  database.exec('BEGIN');
  try {
    check();
  } finally {
    database.exec('ROLLBACK');
  }
}

test('an operation comes out of the outbox as it went in, and as it was put', async () => {
  await using store = createTestStore();
  const { operations } = store.writing.transaction;
  const property = fc.property(identity, delivery, delivery, (who, first, then) =>
    tried(store, () => {
      const added = operations.add({ ...who, ...first });
      expect(added).toStrictEqual({ ...who, ...first, seq: added.seq });
      expect(operations.get(who.id)).toStrictEqual(added);
      const moved = { ...added, ...then };
      operations.put(moved);
      expect(operations.get(who.id)).toStrictEqual(moved);
    }),
  );
  fc.assert(property, { numRuns: 500 });
});

test('the schema refuses columns that a state does not have', async () => {
  await using store = createTestStore();
  const { database, transaction } = store.writing;
  const { id } = transaction.operations.add(buildOperation());
  const assignments = [
    "state = 'delivered'",
    "state = 'in_flight'",
    'sent_at = 1',
    'finished_at = 1',
    'base_uses = 1',
    'held = 1',
    'maybe_applied = 2',
    "state = 'lost'",
    "state = 'dead', next_at = 1",
    "state = 'uncertain', held = 1, next_at = 1",
  ];
  for (const assignment of assignments) {
    const statement = database.prepare(`UPDATE outbox SET ${assignment} WHERE id = ?`);
    expect(() => statement.run(id)).toThrow('CHECK constraint failed');
  }
});

type Act = { act: 'add' | 'put' | 'prune'; progress: OperationProgress; pick: number };

test('the depth agrees with a count, whatever happens to the outbox', async () => {
  await using store = createTestStore();
  const { database, transaction } = store.writing;
  const { operations } = transaction;
  const counted = database.prepare('SELECT state, count(*) AS count FROM outbox GROUP BY state');
  const take = ({ act, progress: next, pick }: Act, known: Operation[]): void => {
    const chosen = known[pick % Math.max(known.length, 1)];
    if (act === 'add') known.push(operations.add(buildOperation({ progress: next })));
    if (act === 'put' && chosen !== undefined && operations.get(chosen.id) !== null) {
      operations.put({ ...chosen, progress: next });
    }
    if (act === 'prune') operations.prune(pick, 2);
  };
  const act: fc.Arbitrary<Act> = fc.record({
    act: fc.constantFrom('add', 'add', 'put', 'put', 'prune'),
    progress,
    pick: fc.maxSafeNat(),
  });
  const property = fc.property(fc.array(act, { maxLength: 40 }), (acts) =>
    tried(store, () => {
      const known: Operation[] = [];
      for (const one of acts) take(one, known);
      const expected = Object.fromEntries(operationStates.map((state) => [state, 0]));
      for (const row of counted.all()) expected[String(row['state'])] = Number(row['count']);
      expect(operations.depth()).toStrictEqual(expected);
    }),
  );
  fc.assert(property, { numRuns: 100 });
});

test('the backlog of a license key agrees with its operations, also after they move to another spelling', async () => {
  await using store = createTestStore();
  const { database, transaction } = store.writing;
  const { operations } = transaction;
  const rows = database.prepare('SELECT kind, state, held FROM outbox WHERE subject = ?');
  const countIn = (key: string) => {
    const counts = { usages: 0, decreases: 0, disables: 0, unfinished: 0 };
    for (const { kind, state, held } of rows.all(key)) {
      const isUnfinished = state === 'pending' || state === 'in_flight' || state === 'uncertain';
      if (!isLicenseKind(kind as OperationKind)) continue;
      counts.unfinished += Number(isUnfinished);
      counts.usages += Number(kind === 'usage' && isUnfinished && held === 0);
      counts.decreases += Number(kind === 'decrease' && isUnfinished && held === 0);
      counts.disables += Number(
        kind === 'disable' && (isUnfinished || state === 'conflicted' || state === 'dead'),
      );
    }
    return counts;
  };
  const keys = ['KEY-1', 'key-1'] as const;
  const act = fc.record({
    name: fc.constantFrom('add', 'add', 'put', 'put', 'move'),
    kind: fc.constantFrom(...(Object.keys(queueOf) as OperationKind[])),
    key: fc.constantFrom(...keys),
    progress,
    pick: fc.nat(),
  });
  const property = fc.property(fc.array(act, { maxLength: 40, size: 'max' }), (acts) =>
    tried(store, () => {
      const ids: string[] = [];
      for (const { name, kind, key, progress: next, pick } of acts) {
        const chosen = operations.get(ids[pick % Math.max(ids.length, 1)] ?? '');
        if (name === 'add')
          ids.push(operations.add(buildOperation({ kind, subject: key, progress: next })).id);
        else if (name === 'move') operations.moveToSubject(key, key === keys[0] ? keys[1] : keys[0]);
        else if (chosen !== null) operations.put({ ...chosen, progress: next });
      }
      for (const key of keys) expect(operations.backlog(key)).toEqual(countIn(key));
    }),
  );
  fc.assert(property, { numRuns: 100 });
});

test('of many products only those are looked into whose queues have been due for longest', async () => {
  await using store = createTestStore();
  const { operations } = store.writing.transaction;
  const waits = Array.from({ length: 40 }, (_, index) => ({
    subject: `K${index}`,
    nextAt: (index * 7) % 40,
  }));
  for (const { subject, nextAt } of waits) {
    operations.add(buildOperation({ subject, nextAt, productId: `P${nextAt % 20}` }));
  }
  operations.add(buildOperation({ kind: 'create_coupon', subject: 'C', nextAt: 3, productId: null }));
  const reads = vi.spyOn(StatementSync.prototype, 'all');
  const due = operations.due(30, 5, (productKey) => productKey !== 'P1');
  const readsMade = reads.mock.calls.length;
  reads.mockRestore();
  const longest = [...waits, { subject: 'C', nextAt: 3 }]
    .filter(({ nextAt }) => nextAt % 20 !== 1)
    .toSorted((one, other) => one.nextAt - other.nextAt)
    .slice(0, 5);
  expect(due.map(({ subject }) => subject).toSorted()).toEqual(
    longest.map(({ subject }) => subject).toSorted(),
  );
  // The products, what is of none, and five of the twenty.
  expect(readsMade).toBe(7);
  expect(operations.nextDueAt(38)).toBe(39);
});

test('of a million operations in a state few are in memory at once, and each is met once, though it leaves the state', async () => {
  await using store = createTestStore();
  const { operations } = store.writing.transaction;
  const added = Array.from({ length: 2_001 }, () => operations.add(buildOperation()).seq);
  const reads = vi.spyOn(StatementSync.prototype, 'all');
  const met: number[] = [];
  for (const operation of operations.withState('pending')) {
    met.push(operation.seq);
    operations.put({ ...operation, progress: { state: 'conflicted' } });
  }
  const most = Math.max(...reads.mock.results.map(({ value }) => (value as unknown[]).length));
  reads.mockRestore();
  expect(met).toEqual(added);
  expect(most).toBe(1_000);
});
