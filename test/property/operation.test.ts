import { array, assert, boolean, nat, option, property, record } from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  operationStates,
  type OperationProgress,
  type OperationState,
  nextProgress,
  type OperationEvent,
  type OperationEventType,
} from '../../src/domain/outbox/operation.ts';

/** One of the possible next events, with its data. */
const happening = record({
  choice: nat(),
  at: nat(),
  baseUses: option(nat(9)),
  certain: boolean(),
  lasting: boolean(),
});
type Happening = { choice: number; at: number; baseUses: number | null; certain: boolean; lasting: boolean };
type Events = { [Type in OperationEventType]: Extract<OperationEvent, { type: Type }> };

function eventsWith({ at, baseUses, certain, lasting }: Happening): Events {
  return {
    send: { type: 'send', baseUses, at },
    applied: { type: 'applied', certain, at },
    not_applied: { type: 'not_applied' },
    ambiguous: { type: 'ambiguous' },
    repeat: { type: 'repeat' },
    refused: { type: 'refused', cause: 'refused' },
    needless: { type: 'needless', at },
    doubt: { type: 'doubt', baseUses, lasting },
    resend: { type: 'resend' },
    lose: { type: 'lose' },
    resume: { type: 'resume' },
    read_applied: { type: 'read_applied', certain, at },
    read_absent: { type: 'read_absent', certain },
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
}

// By itself an array is seldom longer than ten.
const walk = array(happening, { maxLength: 40, size: 'max' });
const often = { numRuns: 3_000 };

const start: OperationProgress = { state: 'pending', maybeApplied: false, unanswered: false };

/** Every state of a walk, and the event that led to it. */
function placesOf(happenings: readonly Happening[]): { progress: OperationProgress; by: OperationEvent }[] {
  const places: { progress: OperationProgress; by: OperationEvent }[] = [];
  let progress = start;
  for (const one of happenings) {
    const ways = Object.values(eventsWith(one)).flatMap((by) => {
      const next = nextProgress(progress, by);
      return next === null ? [] : [{ progress: next, by }];
    });
    const way = ways[one.choice % ways.length];
    if (way === undefined) break;
    progress = way.progress;
    places.push(way);
  }
  return places;
}

const finished = new Set<OperationState>(['delivered', 'inferred', 'cancelled', 'dropped']);

describe('an operation after any events', () => {
  it('an operation is always in one of its states, with the data of that state only', () => {
    const members: Record<OperationState, string[]> = {
      pending: ['maybeApplied', 'unanswered'],
      in_flight: ['baseUses', 'maybeApplied', 'sentAt', 'unanswered'],
      uncertain: ['baseUses', 'maybeApplied', 'held'],
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
      often,
    );
  });

  it('an operation leaves a finished state only if a restored upstream expects it again', () => {
    assert(
      property(walk, (events) => {
        const places = placesOf(events);
        const after = places.filter((_, index) =>
          finished.has(places[index - 1]?.progress.state ?? 'pending'),
        );
        expect(after.filter(({ by }) => by.type !== 'resume')).toEqual([]);
      }),
      often,
    );
  });

  it('an operation is dropped only by a person, and cancelled only when undone or superseded', () => {
    const undoes = new Set<OperationEventType>(['cancel', 'superseded']);
    assert(
      property(walk, (events) => {
        for (const { progress, by } of placesOf(events)) {
          expect(progress.state === 'dropped').toBe(by.type === 'drop');
          expect(progress.state !== 'cancelled' || undoes.has(by.type)).toBe(true);
        }
      }),
      often,
    );
  });

  it('an operation ends delivered only if nothing was uncertain, or if a person or the upstream has said so', () => {
    const settles = new Set<OperationEventType>(['retry', 'resume']);
    assert(
      property(walk, (events) => {
        let inDoubt = false;
        for (const { progress, by } of placesOf(events)) {
          if (by.type === 'repeat') inDoubt = true;
          if (by.type === 'read_absent') inDoubt = !by.certain;
          if (settles.has(by.type) && progress.state === 'pending') inDoubt = progress.maybeApplied;
          const isCertain =
            by.type === 'confirm' ||
            (by.type === 'read_applied' && by.certain) ||
            (by.type === 'applied' && (by.certain || !inDoubt)) ||
            (by.type === 'needless' && !inDoubt);
          expect(progress.state !== 'delivered' || isCertain).toBe(true);
        }
      }),
      often,
    );
  });

  it('an operation with a lost attempt is called not applied only after a read, or as a person or the upstream says', () => {
    const unapplied = new Set<OperationState>(['dead', 'cancelled', 'conflicted']);
    const settlesDoubt = new Set<OperationEventType>([
      'read_absent',
      'retry',
      'recheck',
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
          if (by.type === 'resume' && progress.state === 'pending') isLost = progress.maybeApplied;
          expect(isLost && unapplied.has(progress.state)).toBe(false);
        }
      }),
      often,
    );
  });

  it('an operation always has a way to a final state', () => {
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
      often,
    );
  });
});
