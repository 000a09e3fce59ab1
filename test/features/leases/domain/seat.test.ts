import { describe, expect, it } from 'vitest';
import { movesWithinMs } from '../../../../src/features/leases/domain/lease.ts';
import {
  endAs,
  freeSeat,
  hasSeat,
  isInUse,
  noteChallenge,
  seatEvent,
} from '../../../../src/features/leases/domain/lease-rules.ts';
import { buildActivation } from '../support/activation-builders.ts';
import { at } from '../../../support/builders/store-builders.ts';

const day = 86_400_000;

describe('freeing a seat', () => {
  const cases = [
    {
      name: 'a move is left',
      before: { expiresAt: at + 10, seatUntil: at + 20, movedAt: [at - day] },
      moves: 2,
      after: { seatUntil: at, movedAt: [at - day, at] },
    },
    {
      name: 'no move is left',
      before: { expiresAt: at + 10, seatUntil: at + 20 },
      moves: 3,
      after: { seatUntil: at + 10, movedAt: [] },
    },
    {
      name: 'no move is left, and the seat ends with the lease already',
      before: { expiresAt: at + 10, seatUntil: at + 10 },
      moves: 3,
      after: { seatUntil: at + 10, movedAt: [] },
    },
    {
      name: 'the lease has expired, so this is no move',
      before: { expiresAt: at, seatUntil: at + 20 },
      moves: 3,
      after: { seatUntil: at, movedAt: [] },
    },
    {
      name: 'there is no seat',
      before: { expiresAt: at + 10, seatUntil: at },
      moves: 0,
      after: { seatUntil: at, movedAt: [] },
    },
    {
      name: 'moves from before the window are forgotten',
      before: { expiresAt: at + 10, seatUntil: at + 20, movedAt: [at - movesWithinMs, at - 1] },
      moves: 1,
      after: { seatUntil: at, movedAt: [at - 1, at] },
    },
  ];
  for (const { name, before, moves, after } of cases) {
    it(`freeing a seat: ${name}`, () => {
      const freed = freeSeat(buildActivation(before), { moves, now: at });
      expect(freed).toMatchObject(after);
      expect(hasSeat(freed, at)).toBe(after.seatUntil > at);
    });
  }
});

describe('the state of an activation that ends', () => {
  const cases = [
    ['active', 'ended', 'ended'],
    ['active', 'replaced', 'replaced'],
    ['active', 'blocked', 'blocked'],
    ['ended', 'replaced', 'ended'],
    ['replaced', 'ended', 'replaced'],
    ['ended', 'blocked', 'blocked'],
    ['replaced', 'blocked', 'blocked'],
    ['blocked', 'ended', 'blocked'],
    ['blocked', 'replaced', 'blocked'],
  ] as const;
  for (const [before, wanted, after] of cases) {
    it(`an activation that is ${before} and is to be ${wanted} becomes ${after}`, () => {
      expect(endAs(buildActivation({ state: before }), wanted).state).toBe(after);
    });
  }
});

describe('a device whose seat cannot be taken over', () => {
  const cases = [
    { name: 'has just renewed', renewed: 0, term: 30 * day, state: 'active', inUse: true },
    {
      name: 'renewed less than `refresh` ago',
      renewed: day - 1,
      term: 30 * day,
      state: 'active',
      inUse: true,
    },
    { name: 'renewed `refresh` ago', renewed: day, term: 30 * day, state: 'active', inUse: false },
    { name: 'is in the first half of a short lease', renewed: 29, term: 60, state: 'active', inUse: true },
    { name: 'is in the second half of a short lease', renewed: 30, term: 60, state: 'active', inUse: false },
    { name: 'has ended', renewed: 0, term: 30 * day, state: 'ended', inUse: false },
  ] as const;
  for (const { name, renewed, term, state, inUse } of cases) {
    it(`a device that ${name} ${inUse ? 'is' : 'is not'} in use`, () => {
      const renewedAt = at - renewed;
      const activation = buildActivation({ state, renewedAt, expiresAt: renewedAt + term });
      expect(isInUse(activation, { refreshMs: day, now: at })).toBe(inUse);
    });
  }
});

describe('answered challenges', () => {
  const noted = (challengedAt: number[]) =>
    noteChallenge(buildActivation({ challengedAt }), { termMs: 30 * day, now: at });

  it('three answered challenges within one lease term mark an activation as copied', () => {
    expect(noted([at - 30 * day, at - day])).toMatchObject({
      challengedAt: [at - 30 * day, at - day, at],
      copiedAt: at,
    });
  });

  it('two answered challenges mark no activation', () => {
    expect(noted([at - day])).toMatchObject({ challengedAt: [at - day, at], copiedAt: null });
  });

  it('three answered challenges in more than one lease term mark no activation', () => {
    const after = noted([at - 40 * day, at - 30 * day - 1, at - day]);
    expect(after).toMatchObject({ challengedAt: [at - 30 * day - 1, at - day, at], copiedAt: null });
  });

  it('an activation stays marked since the first time', () => {
    const marked = buildActivation({ challengedAt: [at - 3, at - 2, at - 1], copiedAt: at - 1 });
    expect(noteChallenge(marked, { termMs: 30 * day, now: at }).copiedAt).toBe(at - 1);
  });
});

it('a seat is taken when an activation becomes active, and ends when it is no longer active', () => {
  expect(seatEvent('id', null, 'active')).toEqual({ type: 'seat.taken', subject: 'id' });
  expect(seatEvent('id', 'ended', 'active')).toEqual({ type: 'seat.taken', subject: 'id' });
  expect(seatEvent('id', 'active', 'active')).toBeNull();
  expect(seatEvent('id', null, 'ended')).toBeNull();
  for (const state of ['ended', 'replaced', 'blocked']) {
    expect(seatEvent('id', 'active', state)).toEqual({ type: 'seat.ended', subject: 'id' });
  }
  expect(seatEvent('id', 'ended', 'blocked')).toBeNull();
});
