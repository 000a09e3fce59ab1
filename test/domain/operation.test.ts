import { describe, expect, it } from 'vitest';
import {
  advance,
  laneOf,
  nextProgress,
  operationStates,
  operationTransitions,
  type LaneName,
  type Operation,
  type OperationEvent,
  type OperationEventType,
  type OperationKind,
  type OperationProgress,
  type OperationState,
} from '../../src/domain/operation.ts';

const at = 1000;

const given: Record<OperationState, OperationProgress> = {
  pending: { state: 'pending', doubtful: false },
  in_flight: { state: 'in_flight', doubtful: false, baseUses: 5, sentAt: 900 },
  uncertain: { state: 'uncertain', baseUses: 5, held: false },
  delivered: { state: 'delivered', finishedAt: 900 },
  inferred: { state: 'inferred', finishedAt: 900 },
  conflicted: { state: 'conflicted' },
  dead: { state: 'dead' },
  cancelled: { state: 'cancelled', finishedAt: 900 },
  dropped: { state: 'dropped', finishedAt: 900 },
};

const events: { [Type in OperationEventType]: Extract<OperationEvent, { type: Type }> } = {
  send: { type: 'send', baseUses: 7, at },
  applied: { type: 'applied', at },
  not_applied: { type: 'not_applied' },
  ambiguous: { type: 'ambiguous' },
  refused: { type: 'refused' },
  needless: { type: 'needless', at },
  doubt: { type: 'doubt', baseUses: 3 },
  suspect: { type: 'suspect' },
  read_applied: { type: 'read_applied', certain: true, at },
  read_absent: { type: 'read_absent', certain: true },
  hold: { type: 'hold' },
  conflict: { type: 'conflict' },
  cancel: { type: 'cancel', at },
  retry: { type: 'retry' },
  drop: { type: 'drop', at },
  confirm: { type: 'confirm', at },
};

const delivered = { state: 'delivered', finishedAt: at } as const;
const dropped = { state: 'dropped', finishedAt: at } as const;
const cancelled = { state: 'cancelled', finishedAt: at } as const;
const pending = { state: 'pending', doubtful: false } as const;
const dead = { state: 'dead' } as const;
const conflicted = { state: 'conflicted' } as const;
const never = null;

/** Where each event leads from each state: sync.md, sections 1, 3 and 4. */
const table: Record<OperationState, Record<OperationEventType, OperationProgress | null>> = {
  pending: {
    send: { state: 'in_flight', doubtful: false, baseUses: 7, sentAt: at },
    applied: never,
    not_applied: never,
    ambiguous: never,
    refused: dead,
    needless: delivered,
    doubt: { state: 'uncertain', baseUses: 3, held: false },
    suspect: { state: 'pending', doubtful: true },
    read_applied: never,
    read_absent: never,
    hold: never,
    conflict: conflicted,
    cancel: cancelled,
    retry: pending,
    drop: dropped,
    confirm: never,
  },
  in_flight: {
    send: never,
    applied: delivered,
    not_applied: pending,
    ambiguous: { state: 'uncertain', baseUses: 5, held: false },
    refused: dead,
    needless: never,
    doubt: { state: 'uncertain', baseUses: 5, held: false },
    suspect: null,
    read_applied: never,
    read_absent: never,
    hold: never,
    conflict: conflicted,
    cancel: never,
    retry: never,
    drop: never,
    confirm: never,
  },
  uncertain: {
    send: never,
    applied: never,
    not_applied: never,
    ambiguous: never,
    refused: dead,
    needless: never,
    doubt: { state: 'uncertain', baseUses: 5, held: false },
    suspect: null,
    read_applied: delivered,
    read_absent: pending,
    hold: { state: 'uncertain', baseUses: 5, held: true },
    conflict: conflicted,
    cancel: never,
    retry: pending,
    drop: dropped,
    confirm: delivered,
  },
  conflicted: { ...withoutWay(), retry: pending, drop: dropped, confirm: delivered },
  dead: { ...withoutWay(), retry: pending, drop: dropped, confirm: delivered },
  delivered: withoutWay(),
  inferred: withoutWay(),
  cancelled: withoutWay(),
  dropped: withoutWay(),
};

function withoutWay(): Record<OperationEventType, null> {
  return {
    send: null,
    applied: null,
    not_applied: null,
    ambiguous: null,
    refused: null,
    needless: null,
    doubt: null,
    suspect: null,
    read_applied: null,
    read_absent: null,
    hold: null,
    conflict: null,
    cancel: null,
    retry: null,
    drop: null,
    confirm: null,
  };
}

const cells = operationStates.flatMap((state) =>
  Object.values(events).map((event) => ({ state, type: event.type, event, to: table[state][event.type] })),
);

describe('an operation', () => {
  it.each(cells)('that is $state: $type leads to $to', ({ state, event, to }) => {
    expect(nextProgress(given[state], event)).toEqual(to);
  });

  it('has no other states and events than these', () => {
    expect(Object.keys(operationTransitions).toSorted()).toEqual(Object.keys(table).toSorted());
    for (const row of Object.values(operationTransitions)) {
      expect(Object.keys(row).toSorted()).toEqual(Object.keys(events).toSorted());
    }
    expect([...operationStates].toSorted()).toEqual(Object.keys(table).toSorted());
  });
});

describe('doubt', () => {
  const inDoubt: OperationProgress = { state: 'pending', doubtful: true };
  const sentInDoubt: OperationProgress = { state: 'in_flight', doubtful: true, baseUses: 7, sentAt: at };
  const inferred = { state: 'inferred', finishedAt: at };

  it('that a read could not take away stays through another attempt', () => {
    expect(nextProgress(given.uncertain, { type: 'read_absent', certain: false })).toEqual(inDoubt);
    expect(nextProgress(inDoubt, events.send)).toEqual(sentInDoubt);
    expect(nextProgress(sentInDoubt, events.not_applied)).toEqual(inDoubt);
  });

  it('makes even a clean answer an inference', () => {
    expect(nextProgress(sentInDoubt, events.applied)).toEqual(inferred);
    expect(nextProgress(inDoubt, events.needless)).toEqual(inferred);
  });

  it('makes what a read shows an inference where another writer could have caused it', () => {
    expect(nextProgress(given.uncertain, { type: 'read_applied', certain: false, at })).toEqual(inferred);
  });

  it('is over when a person asks for another attempt', () => {
    const held: OperationProgress = { state: 'uncertain', baseUses: 5, held: true };
    expect(nextProgress(held, events.retry)).toEqual({ state: 'pending', doubtful: false });
    expect(nextProgress(held, events.confirm)).toEqual(delivered);
    expect(nextProgress(held, events.drop)).toEqual(dropped);
  });

  it('takes the base that is told only where it has none', () => {
    const sent: OperationProgress = { state: 'in_flight', doubtful: false, baseUses: null, sentAt: 900 };
    const baseless: OperationProgress = { state: 'uncertain', baseUses: null, held: false };
    const based = { state: 'uncertain', baseUses: 3, held: false };
    expect(nextProgress(sent, events.ambiguous)).toEqual(baseless);
    expect(nextProgress(sent, events.doubt)).toEqual(based);
    expect(nextProgress(baseless, events.doubt)).toEqual(based);
  });
});

describe('advancing an operation', () => {
  const operation: Operation = {
    id: 'id',
    seq: 1,
    kind: 'usage',
    subject: 'KEY',
    productKey: 'press',
    createdAt: 1,
    attempts: 2,
    failures: 1,
    nextAt: 5,
    outage: true,
    lastError: 'away',
    revision: null,
    payload: null,
    progress: given.pending,
  };

  it('counts an attempt for each time it is sent, and nothing else', () => {
    const sent = advance(operation, events.send);
    expect(sent).toEqual({ ...operation, attempts: 3, progress: table.pending.send });
    expect(advance(sent, events.ambiguous).attempts).toBe(3);
  });

  it('refuses what cannot happen in its state, and says what was asked of which', () => {
    expect(() => advance(operation, events.applied)).toThrow(
      'operation id is pending: no applied from there',
    );
  });
});

describe('the lanes', () => {
  const lanes: Record<OperationKind, LaneName> = {
    usage: 'counter',
    decrease: 'counter',
    disable: 'state',
    enable: 'state',
    create_coupon: 'coupon',
    redeem: 'redemption',
    void: 'redemption',
  };

  it('keep what counts apart from what sets a state', () => {
    expect(laneOf).toEqual(lanes);
  });
});
