import {
  array,
  assert,
  boolean,
  constantFrom,
  nat,
  option,
  property,
  record,
  type Arbitrary,
} from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  operationStates,
  type OperationProgress,
  type OperationState,
} from '../../src/domain/outbox/operation.ts';
import {
  nextProgress,
  type OperationEvent,
  type OperationEventType,
} from '../../src/domain/outbox/operation-transitions.ts';

const at = nat();
const baseUses = option(nat(9));

const eventOf: { [Type in OperationEventType]: Arbitrary<Extract<OperationEvent, { type: Type }>> } = {
  send: record({ type: constantFrom('send' as const), baseUses, at }),
  applied: record({ type: constantFrom('applied' as const), certain: boolean(), at }),
  not_applied: constantFrom({ type: 'not_applied' } as const),
  ambiguous: constantFrom({ type: 'ambiguous' } as const),
  repeat: constantFrom({ type: 'repeat' } as const),
  refused: constantFrom({ type: 'refused', cause: 'refused' } as const),
  needless: record({ type: constantFrom('needless' as const), at }),
  doubt: record({ type: constantFrom('doubt' as const), baseUses, lasting: boolean() }),
  suspect: constantFrom({ type: 'suspect' } as const),
  read_applied: record({ type: constantFrom('read_applied' as const), certain: boolean(), at }),
  read_absent: record({ type: constantFrom('read_absent' as const), certain: boolean() }),
  revive: constantFrom({ type: 'revive' } as const),
  hold: constantFrom({ type: 'hold' } as const),
  conflict: constantFrom({ type: 'conflict' } as const),
  cancel: record({ type: constantFrom('cancel' as const), at }),
  overtaken: record({ type: constantFrom('overtaken' as const), at }),
  retry: constantFrom({ type: 'retry' } as const),
  look: constantFrom({ type: 'look' } as const),
  drop: record({ type: constantFrom('drop' as const), at }),
  confirm: record({ type: constantFrom('confirm' as const), at }),
};

const event = constantFrom(...(Object.keys(eventOf) as OperationEventType[])).chain(
  (type): Arbitrary<OperationEvent> => eventOf[type],
);
const walk = array(event, { maxLength: 40 });

const start: OperationProgress = { state: 'pending', doubtful: false };

/** Every place that a walk comes to, and the event that led there; what cannot happen is left out. */
function placesOf(events: readonly OperationEvent[]): { progress: OperationProgress; by: OperationEvent }[] {
  const places: { progress: OperationProgress; by: OperationEvent }[] = [];
  let progress = start;
  for (const by of events) {
    const next = nextProgress(progress, by);
    if (next === null) continue;
    progress = next;
    places.push({ progress, by });
  }
  return places;
}

const finished = new Set<OperationState>(['delivered', 'inferred', 'cancelled', 'dropped']);

describe('an operation, whatever happens to it', () => {
  it('is always in one of its states, with what belongs to that state alone', () => {
    const members: Record<OperationState, string[]> = {
      pending: ['doubtful'],
      in_flight: ['baseUses', 'doubtful', 'sentAt'],
      uncertain: ['baseUses', 'doubtful', 'held'],
      delivered: ['finishedAt'],
      inferred: ['finishedAt'],
      conflicted: [],
      dead: ['cause'],
      cancelled: ['finishedAt'],
      dropped: ['finishedAt'],
    };
    assert(
      property(walk, (events) => {
        for (const { progress } of placesOf(events)) {
          expect(operationStates).toContain(progress.state);
          const expected = ['state', ...members[progress.state]].toSorted();
          expect(Object.keys(progress).toSorted()).toEqual(expected);
        }
      }),
    );
  });

  it('leaves a finished state by nothing', () => {
    assert(
      property(walk, (events) => {
        const places = placesOf(events);
        const end = places.findIndex(({ progress }) => finished.has(progress.state));
        expect(end === -1 || end === places.length - 1).toBe(true);
      }),
    );
  });

  it('is given up by a person alone, and cancelled only when it is undone or overtaken', () => {
    const undoes = new Set<OperationEventType>(['cancel', 'overtaken']);
    assert(
      property(walk, (events) => {
        for (const { progress, by } of placesOf(events)) {
          expect(progress.state === 'dropped').toBe(by.type === 'drop');
          expect(progress.state !== 'cancelled' || undoes.has(by.type)).toBe(true);
        }
      }),
    );
  });

  it('ends delivered only where nothing was left in doubt, or a person has said so', () => {
    assert(
      property(walk, (events) => {
        let inDoubt = false;
        for (const { progress, by } of placesOf(events)) {
          if (by.type === 'repeat') inDoubt = true;
          if (by.type === 'read_absent') inDoubt = !by.certain;
          if (by.type === 'retry' && progress.state === 'pending') inDoubt = progress.doubtful;
          const isCertain =
            by.type === 'confirm' ||
            (by.type === 'read_applied' && by.certain) ||
            (by.type === 'applied' && (by.certain || !inDoubt)) ||
            (by.type === 'needless' && !inDoubt);
          expect(progress.state !== 'delivered' || isCertain).toBe(true);
        }
      }),
    );
  });

  it('is not called unapplied once an attempt of it was lost, but by a read or a person', () => {
    const unapplied = new Set<OperationState>(['dead', 'cancelled', 'conflicted']);
    const settlesDoubt = new Set<OperationEventType>([
      'read_absent',
      'retry',
      'look',
      'drop',
      'conflict',
      'cancel',
    ]);
    assert(
      property(walk, (events) => {
        let isLost = false;
        for (const { progress, by } of placesOf(events)) {
          if (by.type === 'repeat' || by.type === 'ambiguous') isLost = true;
          if (settlesDoubt.has(by.type)) isLost = false;
          expect(isLost && unapplied.has(progress.state)).toBe(false);
        }
      }),
    );
  });

  it('has always a way to an end', () => {
    const wayOut: Record<OperationState, OperationEvent | null> = {
      pending: { type: 'drop', at: 1 },
      in_flight: { type: 'refused', cause: 'refused' },
      uncertain: { type: 'drop', at: 1 },
      conflicted: { type: 'drop', at: 1 },
      dead: { type: 'drop', at: 1 },
      delivered: null,
      inferred: null,
      cancelled: null,
      dropped: null,
    };
    assert(
      property(walk, (events) => {
        const last = placesOf(events).at(-1)?.progress ?? start;
        const way = wayOut[last.state];
        expect(way === null || nextProgress(last, way) !== null).toBe(true);
      }),
    );
  });
});
