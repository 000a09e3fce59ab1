import { describe, expect, it } from 'vitest';
import {
  nextStep,
  type QueueView,
  type Step,
  backoffMs,
  countApplied,
} from '../../../src/domain/outbox/delivery.ts';
import type { LicenseSnapshot } from '../../../src/domain/agent/license-snapshot.ts';
import type { Operation, OperationKind } from '../../../src/domain/outbox/operation.ts';
import { buildOperation } from '../../support/builders/operation-builders.ts';

const run = 4;
const operation = buildOperation({ subject: 'KEY', nextAt: 5 });

function seen(uses: number, inRun: number = run): LicenseSnapshot {
  return {
    license: {
      licenseKey: 'KEY',
      productKey: 'press',
      buyerEmail: 'a@example.com',
      uses,
      enabled: true,
      createdAt: 1,
    },
    local: { uses, enabled: true, pending: 0 },
    productId: 'press',
    confirmedAt: 1,
    run: inRun,
    manyWriters: false,
    missingSince: null,
    gone: false,
    readFirst: false,
    askedAt: 1,
    refreshAt: null,
  };
}

type View =
  'never seen' | 'seen before the start' | 'seen at 3' | 'seen at 0' | 'just read at 3' | 'just read at 0';
const views: Record<View, Pick<QueueView, 'snapshot' | 'justRead'>> = {
  'never seen': { snapshot: null, justRead: false },
  'seen before the start': { snapshot: seen(3, run - 1), justRead: false },
  'seen at 3': { snapshot: seen(3), justRead: false },
  'seen at 0': { snapshot: seen(0), justRead: false },
  'just read at 3': { snapshot: seen(3), justRead: true },
  'just read at 0': { snapshot: seen(0), justRead: true },
};

type Expected = 'read' | 'none' | { on: number | null };
const always = (expected: Expected): Record<View, Expected> => ({
  'never seen': expected,
  'seen before the start': expected,
  'seen at 3': expected,
  'seen at 0': expected,
  'just read at 3': expected,
  'just read at 0': expected,
});

/** What a pending head needs next: sent on which base, or a read first. */
const table: Record<OperationKind, Record<View, Expected>> = {
  usage: {
    'never seen': 'read',
    'seen before the start': 'read',
    'seen at 3': { on: 3 },
    'seen at 0': { on: 0 },
    'just read at 3': { on: 3 },
    'just read at 0': { on: 0 },
  },
  decrease: {
    'never seen': 'read',
    'seen before the start': 'read',
    'seen at 3': { on: 3 },
    'seen at 0': 'read',
    'just read at 3': { on: 3 },
    'just read at 0': 'read',
  },
  disable: always({ on: null }),
  enable: {
    'never seen': 'read',
    'seen before the start': 'read',
    'seen at 3': 'read',
    'seen at 0': 'read',
    'just read at 3': { on: null },
    'just read at 0': { on: null },
  },
  create_coupon: always({ on: null }),
  // A read shows whether the upstream counts redemptions.
  redeem: always('read'),
  void: always('read'),
};

const cells = Object.entries(table).flatMap(([kind, row]) =>
  Object.entries(row).map(([view, expected]) => ({
    kind: kind as OperationKind,
    view: view as View,
    expected,
  })),
);

function stepOf(head: Operation | null, view: View): Step {
  return nextStep({
    head,
    run,
    now: 1000,
    reconcileAt: null,
    hasUncertain: false,
    isLatchkey: false,
    ...views[view],
  });
}

describe('the head of a queue', () => {
  it.each(cells)('that is a $kind of a key $view needs $expected', ({ kind, view, expected }) => {
    const head = { ...operation, kind };
    const step: Step =
      typeof expected === 'string'
        ? { step: expected }
        : { step: 'send', operation: head, baseUses: expected.on };
    expect(stepOf(head, view)).toEqual(step);
  });

  it.each(['create_coupon', 'redeem', 'void'] as const)('that is a %s is sent to a Latchkey', (kind) => {
    const head = { ...operation, kind };
    const queue = { run, now: 1000, reconcileAt: null, hasUncertain: false, snapshot: null, justRead: false };
    expect(nextStep({ ...queue, head, isLatchkey: true })).toEqual({
      step: 'send',
      operation: head,
      baseUses: null,
    });
  });

  it.each(Object.keys(views) as View[])('uncertain is read back, whatever else is known: %s', (view) => {
    const progress = { state: 'uncertain', maybeApplied: false, baseUses: 3, held: false } as const;
    expect(stepOf({ ...operation, progress }, view)).toEqual({ step: 'read' });
  });

  it('waits while an earlier request may still be on its way, uncertain or not', () => {
    const doubt = { state: 'uncertain', maybeApplied: false, baseUses: 3, held: false } as const;
    for (const head of [operation, { ...operation, progress: doubt }]) {
      const queue = { head, run, now: 1000, hasUncertain: false, isLatchkey: false, ...views['seen at 3'] };
      expect(nextStep({ ...queue, reconcileAt: 1001 })).toEqual({ step: 'wait', until: 1001 });
      expect(nextStep({ ...queue, reconcileAt: 1000 }).step).not.toBe('wait');
    }
  });

  it.each([{ missingSince: 1 }, { readFirst: true }])(
    'is not sent before a read when the key may be missing: %j',
    (answered) => {
      const queue = {
        head: operation,
        run,
        now: 1000,
        reconcileAt: null,
        hasUncertain: false,
        isLatchkey: false,
      };
      const snapshot = { ...seen(3), ...answered };
      expect(nextStep({ ...queue, snapshot, justRead: false })).toEqual({ step: 'read' });
      expect(nextStep({ ...queue, snapshot, justRead: true }).step).toBe('send');
    },
  );

  it('needs nothing while it is under way, nor does an empty queue', () => {
    const progress = {
      state: 'in_flight',
      maybeApplied: false,
      unanswered: false,
      baseUses: 3,
      sentAt: 1,
    } as const;
    expect(stepOf({ ...operation, progress }, 'seen at 3')).toEqual({ step: 'none' });
    expect(stepOf(null, 'seen at 3')).toEqual({ step: 'none' });
  });
});

const policy = { firstMs: 1000, maxMs: 60_000 };
const last = 1 - 2 ** -53;

describe('the wait after failures', () => {
  it('may be as long as twice the one before, up to the cap', () => {
    const longest = [1, 2, 3, 6, 7, 50].map((failures) => backoffMs(policy, failures, last));
    expect(longest).toEqual([1000, 2000, 4000, 32_000, 60_000, 60_000]);
  });

  it('is drawn anew from all of that, also beyond the cap', () => {
    expect([1, 3, 50].map((failures) => backoffMs(policy, failures, 0.25))).toEqual([250, 1000, 15_000]);
  });

  it('is never none at all', () => {
    expect(backoffMs(policy, 1, 0)).toBe(1);
  });

  it('stays a number after any number of failures', () => {
    expect(backoffMs(policy, 1e9, last)).toBe(60_000);
    expect(backoffMs(policy, 0, last)).toBe(1000);
  });
});

const use = 'usage';
const take = 'decrease';

type CounterKind = 'usage' | 'decrease';
type Row = { base: number; kinds: CounterKind[]; read: number; applied: number | null; why: string };

const rows: Row[] = [
  { base: 5, kinds: [], read: 5, applied: 0, why: 'nothing was uncertain' },
  { base: 5, kinds: [], read: 6, applied: null, why: 'somebody else counted' },
  { base: 5, kinds: [use], read: 5, applied: 0, why: 'it did not arrive' },
  { base: 5, kinds: [use], read: 6, applied: 1, why: 'it arrived' },
  { base: 5, kinds: [use], read: 7, applied: null, why: 'somebody else counted too' },
  { base: 5, kinds: [use], read: 4, applied: null, why: 'somebody else took one back' },
  { base: 5, kinds: [take], read: 4, applied: 1, why: 'it arrived' },
  { base: 5, kinds: [use, use, use], read: 7, applied: 2, why: 'two of three arrived' },
  { base: 5, kinds: [use, take], read: 5, applied: 2, why: 'none or both: the count is the same' },
  { base: 5, kinds: [use, take], read: 6, applied: 1, why: 'the first arrived' },
  { base: 0, kinds: [take, use], read: 0, applied: 1, why: 'taking back at 0 changes nothing' },
  { base: 0, kinds: [take, use], read: 1, applied: 2, why: 'both arrived' },
];

describe('what a count tells of uncertain operations', () => {
  it.each(rows)('from $base over $kinds to $read: $applied, for $why', ({ base, kinds, read, applied }) => {
    const changes = kinds.map((kind) => ({ kind, amount: 1 }));
    expect(countApplied(base, changes, read)).toBe(applied);
  });

  const changes = [
    { kind: 'usage', amount: 5 },
    { kind: 'decrease', amount: 1 },
    { kind: 'usage', amount: 3 },
  ] as const;

  it.each([
    { read: 2, applied: 0 },
    { read: 7, applied: 1 },
    { read: 6, applied: 2 },
    { read: 9, applied: 3 },
    { read: 3, applied: null },
    { read: 5, applied: null },
  ])('from 2 over 5 uses, one taken back and 3 uses to $read: $applied', ({ read, applied }) => {
    expect(countApplied(2, changes, read)).toBe(applied);
  });
});
