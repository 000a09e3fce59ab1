import { describe, expect, it, test } from 'vitest';
import { buildOperation } from '../../support/builders/operation-builders.ts';
import {
  mayHaveBeenApplied,
  queueOf,
  operationStates,
  type QueueName,
  type OperationKind,
  type OperationProgress,
  type OperationState,
  advance,
  nextProgress,
  operationTransitions,
  type OperationEvent,
  type OperationEventType,
} from '../../../src/domain/outbox/operation.ts';
import { tracePointOf } from '../../../src/domain/outbox/trace.ts';

const at = 1000;

const events: { [Type in OperationEventType]: Extract<OperationEvent, { type: Type }> } = {
  send: { type: 'send', baseUses: 7, at },
  applied: { type: 'applied', certain: false, at },
  not_applied: { type: 'not_applied' },
  ambiguous: { type: 'ambiguous' },
  repeat: { type: 'repeat' },
  refused: { type: 'refused', cause: 'refused' },
  needless: { type: 'needless', at },
  doubt: { type: 'doubt', baseUses: 3, lasting: false },
  resend: { type: 'resend' },
  lose: { type: 'lose' },
  resume: { type: 'resume' },
  read_applied: { type: 'read_applied', certain: true, at },
  read_absent: { type: 'read_absent', certain: true },
  reopen: { type: 'reopen' },
  hold: { type: 'hold' },
  conflict: { type: 'conflict' },
  cancel: { type: 'cancel', at },
  superseded: { type: 'superseded', at },
  retry: { type: 'retry' },
  recheck: { type: 'recheck' },
  drop: { type: 'drop', at },
  confirm: { type: 'confirm', at },
};

const pending = { state: 'pending', maybeApplied: false, unanswered: false } as const;
const inDoubt = { ...pending, maybeApplied: true } as const;
const unanswered = { ...pending, unanswered: true } as const;
const inFlight = { ...pending, state: 'in_flight', baseUses: 5, sentAt: 900 } as const;
const uncertain = { state: 'uncertain', maybeApplied: false, baseUses: 5, held: false } as const;
const held = { ...uncertain, held: true } as const;
const delivered = { state: 'delivered', finishedAt: at } as const;
const dropped = { state: 'dropped', finishedAt: at } as const;
const cancelled = { state: 'cancelled', finishedAt: at } as const;
const dead = { state: 'dead', cause: 'refused' } as const;
const conflicted = { state: 'conflicted' } as const;

const given: Record<OperationState, OperationProgress> = {
  pending,
  in_flight: inFlight,
  uncertain,
  delivered: { state: 'delivered', finishedAt: 900 },
  inferred: { state: 'inferred', finishedAt: 900 },
  conflicted,
  dead,
  cancelled: { state: 'cancelled', finishedAt: 900 },
  dropped: { state: 'dropped', finishedAt: 900 },
};

/** What can happen in each state, where it leads, and in words; whatever is not here cannot happen. */
const table: Record<
  OperationState,
  Partial<Record<OperationEventType, readonly [to: OperationProgress, inWords: string]>>
> = {
  pending: {
    send: [{ ...inFlight, baseUses: 7, sentAt: at }, 'its turn comes: it is in flight before a byte leaves'],
    refused: [dead, 'the key is gone: it will never be taken, and was never sent'],
    needless: [delivered, 'a read shows that there is nothing left to do'],
    doubt: [{ ...uncertain, baseUses: 3 }, 'it may have been delivered without this store knowing'],
    lose: [unanswered, 'an unknown history may have sent it: the upstream knows it by its id'],
    resend: [inDoubt, 'it may have been delivered before, but is sent all the same'],
    hold: [{ ...held, baseUses: null }, 'nobody but a person can say what became of it'],
    conflict: [conflicted, 'the upstream moved on'],
    cancel: [cancelled, 'it is undone here before it was sent'],
    retry: [pending, 'a person does not want to wait any longer'],
    drop: [dropped, 'a person gives it up'],
  },
  in_flight: {
    applied: [delivered, 'the upstream says that it was applied'],
    not_applied: [pending, 'it certainly was not applied: it is sent again later'],
    ambiguous: [uncertain, 'the answer was lost: it is read back after the reconcile delay'],
    repeat: [inDoubt, 'the answer was lost, and sending it again does no harm'],
    lose: [unanswered, 'the answer was lost: it is sent again under its id'],
    refused: [dead, 'the upstream will never take it'],
    doubt: [uncertain, 'the store was copied while it was in flight'],
    conflict: [conflicted, 'the upstream moved on'],
    cancel: [cancelled, 'it was refused to the caller who waits for it'],
  },
  uncertain: {
    refused: [held, 'the key is gone, and it may have been applied before: a person must say'],
    doubt: [uncertain, 'it was uncertain before'],
    read_applied: [delivered, 'reading it back shows that it was applied'],
    read_absent: [pending, 'reading it back shows that it was not applied: it is sent again'],
    hold: [held, 'reading cannot decide it'],
    conflict: [conflicted, 'the upstream has something else in its place'],
    superseded: [{ state: 'inferred', finishedAt: at }, 'a later change has replaced whatever it did'],
    retry: [inDoubt, 'a person sends again what may have been applied'],
    recheck: [{ ...uncertain, baseUses: null }, 'a person has it looked for before it is sent again'],
    drop: [dropped, 'a person gives it up'],
    confirm: [delivered, 'a person says that it was applied'],
  },
  conflicted: {
    superseded: [cancelled, 'a later change has replaced it'],
    retry: [pending, 'a person sends it all the same'],
    recheck: [{ ...uncertain, baseUses: null }, 'a person wants it sent where it is not found'],
    drop: [dropped, 'a person gives it up'],
    confirm: [delivered, 'a person says that it was applied'],
  },
  dead: {
    doubt: [dead, 'it was refused, which no other past changes'],
    lose: [dead, 'it was refused, which no other past changes'],
    reopen: [dead, 'it was refused, which no key that comes back changes'],
    superseded: [cancelled, 'a later change has replaced it'],
    retry: [pending, 'a person sends it again'],
    recheck: [{ ...uncertain, baseUses: null }, 'a person wants it sent where it is not found'],
    drop: [dropped, 'a person gives it up'],
    confirm: [delivered, 'a person says that it was applied'],
  },
  delivered: { resume: [unanswered, 'the upstream was restored and may have lost it'] },
  inferred: {
    resume: [
      { ...inDoubt, unanswered: true },
      'the upstream was restored and may have lost it; an earlier attempt may count',
    ],
  },
  cancelled: {},
  dropped: {},
};

const cells = operationStates.flatMap((state) =>
  Object.values(events).map((event) => {
    const [to, inWords] = table[state][event.type] ?? [null, 'cannot happen'];
    return { state, event, type: event.type, to, inWords };
  }),
);

describe('an operation', () => {
  it.each(cells)('that is $state, $type: $inWords', ({ state, event, to }) => {
    expect(nextProgress(given[state], event)).toEqual(to);
  });

  it('has no other states and events than these', () => {
    expect(Object.keys(operationTransitions).toSorted()).toEqual(Object.keys(table).toSorted());
    for (const row of Object.values(operationTransitions)) {
      expect(Object.keys(row).toSorted()).toEqual(Object.keys(events).toSorted());
    }
    expect([...operationStates].toSorted()).toEqual(Object.keys(table).toSorted());
  });

  it('that died because its key was missing lives again when the key does, in whatever past', () => {
    const missing = { state: 'dead', cause: 'missing' } as const;
    expect(nextProgress(missing, events.reopen)).toEqual(pending);
    expect(nextProgress(missing, events.doubt)).toMatchObject({ state: 'uncertain', held: false });
    expect(nextProgress(missing, events.lose)).toEqual(unanswered);
  });
});

describe('uncertainty', () => {
  const sentInDoubt = { ...inFlight, maybeApplied: true, baseUses: 7, sentAt: at } as const;
  const inferred = { state: 'inferred', finishedAt: at };

  it('that a read could not take away stays through another attempt', () => {
    expect(nextProgress(uncertain, { type: 'read_absent', certain: false })).toEqual(inDoubt);
    expect(nextProgress(inDoubt, events.send)).toEqual(sentInDoubt);
    expect(nextProgress(sentInDoubt, events.not_applied)).toEqual(inDoubt);
    expect(nextProgress(sentInDoubt, events.ambiguous)).toMatchObject({
      state: 'uncertain',
      maybeApplied: true,
    });
  });

  const inDoubtStates = [inDoubt, sentInDoubt, { ...uncertain, maybeApplied: true }];
  const everyEvent = [...Object.values(events), { type: 'read_absent', certain: false }] as const;

  it.each(
    inDoubtStates.flatMap((from) => everyEvent.map((event) => ({ from, event, ...from, type: event.type }))),
  )('that is $state stays after $type, unless the operation is over', ({ from, event }) => {
    const to = nextProgress(from, event);
    const isForgotten = to !== null && ('maybeApplied' in to ? !to.maybeApplied : to.state === 'dead');
    expect(isForgotten).toBe(false);
  });

  it('makes even a clean answer an inference', () => {
    expect(nextProgress(sentInDoubt, events.applied)).toEqual(inferred);
    expect(nextProgress(inDoubt, events.needless)).toEqual(inferred);
  });

  it('of a change that may be repeated is over with a clean answer, and never dropped before', () => {
    const repeated = nextProgress(inFlight, events.repeat) ?? pending;
    expect(repeated).toEqual(inDoubt);
    const again = nextProgress(repeated, events.send) ?? pending;
    expect(nextProgress(again, events.refused)).toMatchObject({ state: 'uncertain', held: true });
    expect(nextProgress(again, { type: 'applied', certain: true, at })).toEqual(delivered);
  });

  it('that lasts is not taken away by looking for it', () => {
    expect(nextProgress({ ...held, maybeApplied: true }, events.recheck)).toMatchObject({
      state: 'uncertain',
      maybeApplied: true,
      held: false,
    });
  });

  it('makes what a read shows an inference where another writer could have caused it', () => {
    expect(nextProgress(uncertain, { type: 'read_applied', certain: false, at })).toEqual(inferred);
  });

  it('that lasts makes whatever a read shows an inference', () => {
    const lasting = nextProgress(pending, { type: 'doubt', baseUses: 3, lasting: true }) ?? pending;
    expect(nextProgress(lasting, events.read_applied)).toEqual(inferred);
    expect(nextProgress(lasting, events.read_absent)).toEqual(inDoubt);
  });

  it('that lasts is added to whatever was unfinished, and is not taken back by one that does not last', () => {
    for (const progress of [pending, inFlight, uncertain]) {
      const lasting = nextProgress(progress, { type: 'doubt', baseUses: 3, lasting: true }) ?? pending;
      expect(lasting).toMatchObject({ state: 'uncertain', maybeApplied: true });
      expect(nextProgress(lasting, events.doubt)).toMatchObject({ maybeApplied: true });
    }
    for (const progress of [inDoubt, sentInDoubt]) {
      expect(nextProgress(progress, events.doubt)).toMatchObject({
        state: 'uncertain',
        maybeApplied: true,
      });
    }
  });

  it('is whatever may have been applied without an answer that says so', () => {
    const inSomeDoubt = [inDoubt, sentInDoubt, uncertain, held];
    const inNone = [pending, inFlight, delivered, dead, conflicted, dropped, cancelled];
    expect(inSomeDoubt.filter((progress) => !mayHaveBeenApplied({ progress }))).toEqual([]);
    expect(inNone.filter((progress) => mayHaveBeenApplied({ progress }))).toEqual([]);
  });

  it('is never called dead, which says that it was not applied', () => {
    for (const progress of [inDoubt, sentInDoubt, uncertain]) {
      const { maybeApplied } = progress;
      expect(nextProgress(progress, events.refused)).toMatchObject({
        state: 'uncertain',
        held: true,
        maybeApplied,
      });
    }
  });

  it('stays when a person sends it again, and is over when a person says what became of it', () => {
    expect(nextProgress(held, events.retry)).toEqual(inDoubt);
    expect(nextProgress(held, events.confirm)).toEqual(delivered);
    expect(nextProgress(held, events.drop)).toEqual(dropped);
  });

  it('takes the base that is told only where it has none', () => {
    const sent: OperationProgress = { ...inFlight, baseUses: null };
    const baseless: OperationProgress = { ...uncertain, baseUses: null };
    const based = { ...uncertain, baseUses: 3 };
    expect(nextProgress(sent, events.ambiguous)).toEqual(baseless);
    expect(nextProgress(sent, events.doubt)).toEqual(based);
    expect(nextProgress(baseless, events.doubt)).toEqual(based);
  });
});

describe('an operation whose answer was lost, and that the upstream knows by its id', () => {
  const sentAgain = { ...inFlight, unanswered: true, baseUses: 7, sentAt: at } as const;

  it('stays unanswered through attempts that were certainly not carried out', () => {
    expect(nextProgress(unanswered, events.send)).toEqual(sentAgain);
    expect(nextProgress(sentAgain, events.not_applied)).toEqual(unanswered);
    expect(nextProgress(sentAgain, events.lose)).toEqual(unanswered);
  });

  it('is delivered or dead by a clear answer, because the upstream carries it out once', () => {
    expect(nextProgress(sentAgain, events.applied)).toEqual(delivered);
    expect(nextProgress(sentAgain, events.refused)).toEqual(dead);
  });

  it('may have been applied as long as there is no answer', () => {
    expect([unanswered, sentAgain].every((progress) => mayHaveBeenApplied({ progress }))).toBe(true);
    expect(nextProgress(unanswered, events.hold)).toMatchObject({ held: true, maybeApplied: true });
    expect(nextProgress(unanswered, events.doubt)).toMatchObject({
      state: 'uncertain',
      maybeApplied: true,
    });
  });
});

describe('advancing an operation', () => {
  const waiting = { id: 'id', attempts: 2, failures: 1, nextAt: 5, outage: true, lastError: 'away' };
  const operation = buildOperation({ ...waiting, progress: pending });

  it('counts an attempt for each time it is sent, and nothing else', () => {
    const sent = advance(operation, events.send);
    expect(sent).toEqual({ ...operation, attempts: 3, progress: table.pending.send?.[0] });
    expect(advance(sent, events.ambiguous).attempts).toBe(3);
  });

  it('refuses what cannot happen in its state, and says what was asked of which', () => {
    expect(() => advance(operation, events.applied)).toThrow(
      'operation id is pending: no applied from there',
    );
  });
});

describe('the queues', () => {
  const queues: Record<OperationKind, QueueName> = {
    usage: 'counter',
    decrease: 'counter',
    disable: 'state',
    enable: 'state',
    create_coupon: 'coupon',
    redeem: 'order',
    void: 'order',
  };

  it('keep what counts apart from what sets a state', () => {
    expect(queueOf).toEqual(queues);
  });
});

const heldMaybeApplied: OperationProgress = {
  state: 'uncertain',
  maybeApplied: true,
  baseUses: null,
  held: true,
};

test('everything that can happen to an operation is told, but for a refusal for now and a return to the outbox, which are told elsewhere', () => {
  const types = Object.keys(operationTransitions.pending) as OperationEvent['type'][];
  const silent = types.filter(
    (type) => tracePointOf({ type, at: 0 } as OperationEvent, heldMaybeApplied) === null,
  );
  expect(silent).toEqual(['not_applied', 'resume']);
});

test('what is refused is told as dead, or as held where it may have been applied', () => {
  const refused: OperationEvent = { type: 'refused', cause: 'refused' };
  expect(tracePointOf(refused, { state: 'dead', cause: 'refused' })).toBe('dead');
  expect(tracePointOf(refused, heldMaybeApplied)).toBe('held');
});
