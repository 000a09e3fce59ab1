import { describe, expect, it } from 'vitest';
import {
  acceptTime,
  checkWall,
  followWall,
  confirmedTimeOf,
  isSuspect,
  advanceTime,
  hearDate,
  learnDate,
  markOf,
  removalTime,
  startTimeState,
  storeDifference,
  timeOf,
  type ClockReading,
  type TimeState,
} from '../../src/domain/clock.ts';

const minute = 60_000;
const day = 86_400_000;
const noon = Date.UTC(2026, 5, 1, 12);

/** The machine `passed` ms after its start at noon, its wall clock turned by `turned`. */
function after(passed: number, turned: number = 0): ClockReading {
  return { wall: noon + passed + turned, monotonic: passed };
}

type Row = {
  name: string;
  keeping: TimeState;
  reading: ClockReading;
  now: number;
  suspect: boolean;
};

const started = startTimeState(null, after(0));
const startedLate = startTimeState({ at: noon + day, isConfirmed: true }, after(0));

const rows: Row[] = [
  { name: 'a right clock', keeping: started, reading: after(minute), now: noon + minute, suspect: false },
  {
    name: 'a clock turned back',
    keeping: started,
    reading: after(minute, -day),
    now: noon + minute,
    suspect: true,
  },
  {
    name: 'a clock turned back by little',
    keeping: started,
    reading: after(minute, -9 * minute),
    now: noon + minute,
    suspect: false,
  },
  {
    name: 'a clock turned forwards',
    keeping: started,
    reading: after(minute, day),
    now: noon + minute + day,
    suspect: false,
  },
  {
    name: 'a start behind the mark',
    keeping: startedLate,
    reading: after(minute),
    now: noon + day + minute,
    suspect: true,
  },
  {
    name: 'a start behind the mark, once the clock is right',
    keeping: startedLate,
    reading: after(minute, day + 1),
    now: noon + day + minute + 1,
    suspect: false,
  },
  {
    name: 'a clock that an answer has shown to be ahead',
    keeping: learnDate(started, noon, after(0, day)),
    reading: after(minute, day),
    now: noon + minute,
    suspect: true,
  },
  {
    name: 'a clock that is ahead by less than an answer can tell',
    keeping: learnDate(started, noon, after(0, 9 * minute)),
    reading: after(minute, 9 * minute),
    now: noon + 10 * minute,
    suspect: false,
  },
  {
    name: 'a clock that is turned further ahead after an answer',
    keeping: learnDate(started, noon, after(0, day)),
    reading: after(minute, 3 * day),
    now: noon + minute + 2 * day,
    suspect: true,
  },
  {
    name: 'a clock behind the date of an answer',
    keeping: learnDate(started, noon + day, after(0)),
    reading: after(minute),
    now: noon + day + minute,
    suspect: true,
  },
  {
    name: 'an answer dated before the time reached, which an earlier one had confirmed',
    keeping: learnDate(learnDate(started, noon, after(0)), noon - day, after(minute)),
    reading: after(2 * minute),
    now: noon + 2 * minute,
    suspect: false,
  },
  {
    name: 'the first answer to a machine whose clock was ahead from the start',
    keeping: learnDate(started, noon - day, after(minute)),
    reading: after(2 * minute),
    now: noon - day + minute,
    suspect: true,
  },
  {
    name: 'an answer whose Date comes after one without, on which something was built already',
    keeping: learnDate(acceptTime(started), noon - day, after(minute)),
    reading: after(2 * minute),
    now: noon + 2 * minute,
    suspect: false,
  },
  {
    name: 'the first answer after a start from a mark that nothing had confirmed',
    keeping: learnDate(startTimeState({ at: noon + day, isConfirmed: false }, after(0)), noon, after(minute)),
    reading: after(2 * minute),
    now: noon + minute + minute,
    suspect: false,
  },
];

describe('the time by which verdicts are made', () => {
  it.each(rows)('under $name', ({ keeping, reading, now, suspect }) => {
    const kept = advanceTime(keeping, reading);
    expect(timeOf(kept)).toBe(now);
    expect(isSuspect(kept, reading)).toBe(suspect);
  });
});

describe('a clock that is turned back', () => {
  it('wins nothing of the time that was shown before', () => {
    const ahead = advanceTime(started, after(0, day));
    expect(timeOf(advanceTime(ahead, after(minute)))).toBe(noon + day + minute);
    expect(timeOf(advanceTime(ahead, after(minute, -day)))).toBe(noon + day + minute);
  });

  it('wins nothing even of a time that was not believed', () => {
    const far = advanceTime(started, after(0, 31 * day));
    expect(timeOf(advanceTime(far, after(minute)))).toBe(noon + 31 * day + minute);
  });

  it('is taken back from there by an answer of the upstream alone', () => {
    const far = advanceTime(started, after(0, 31 * day));
    const told = learnDate(far, noon + minute, after(minute));
    expect(timeOf(told)).toBe(noon + minute);
    expect(isSuspect(told, after(minute))).toBe(false);
  });
});

it('a Date that is behind takes nothing back of the time that has passed meanwhile', () => {
  const confirmed = learnDate(started, noon, after(0));
  expect(timeOf(learnDate(confirmed, noon + minute, after(60 * minute)))).toBe(noon + 60 * minute);
});

describe('a signed date that is more than 30 days ahead', () => {
  const far = 31 * day;
  const [first, second] = [after(minute), after(2 * minute)];
  const doubting = learnDate(learnDate(started, noon, after(0)), first.wall + far, first);

  it('changes nothing, and is told as suspect until another one comes', () => {
    expect(timeOf(doubting)).toBe(first.wall);
    expect(isSuspect(doubting, first)).toBe(true);
    const right = learnDate(doubting, second.wall, second);
    expect(timeOf(right)).toBe(second.wall);
    expect(isSuspect(right, second)).toBe(false);
    expect(timeOf(learnDate(right, first.wall + far, second))).toBe(second.wall);
  });

  it('is not believed for one before it that was further ahead', () => {
    const further = learnDate(learnDate(started, noon, after(0)), first.wall + 2 * far, first);
    expect(timeOf(learnDate(further, second.wall + far, second))).toBe(second.wall);
  });

  it('is believed when the next one agrees with it', () => {
    expect(timeOf(learnDate(doubting, second.wall + far, second))).toBe(second.wall + far);
    expect(timeOf(learnDate(doubting, second.wall + far + day, second))).toBe(second.wall);
  });

  it('is believed at once where the wall clock shows the same', () => {
    const turned = after(minute, far);
    expect(learnDate(advanceTime(started, turned), turned.wall, turned).base).toBe(turned.wall);
  });
});

describe('the time that no later answer takes back', () => {
  const far = 31 * day;

  it('is unknown before the first answer of the upstream', () => {
    expect(confirmedTimeOf(started)).toBeNull();
    expect(confirmedTimeOf(learnDate(started, noon, after(0)))).toBe(noon);
    expect(confirmedTimeOf(acceptTime(started))).toBe(noon);
  });

  it('leaves out a jump that is not believed', () => {
    const jumped = advanceTime(learnDate(started, noon, after(0)), after(minute, far));
    expect([timeOf(jumped), confirmedTimeOf(jumped)]).toEqual([noon + minute + far, noon + minute]);
  });

  it('contains a jump after an answer without a Date, which is dated by it', () => {
    const jumped = acceptTime(advanceTime(learnDate(started, noon, after(0)), after(minute, far)));
    expect(confirmedTimeOf(jumped)).toBe(noon + minute + far);
    expect(timeOf(learnDate(jumped, noon + minute, after(minute, far)))).toBe(noon + minute + far);
  });

  it('is not taken back after a first answer whose Date is too far ahead to be believed', () => {
    const ahead = advanceTime(started, after(minute, day));
    const doubting = learnDate(ahead, noon + day + far, after(minute, day));
    expect(confirmedTimeOf(doubting)).toBe(noon + minute + day);
    expect(timeOf(learnDate(doubting, noon, after(minute, day)))).toBe(noon + minute + day);
  });
});

describe('a Date that nobody has signed', () => {
  /** A machine that has heard these dates, each as [minutes since its start, error of the Date, error of the wall clock]. */
  function heard(from: TimeState, ...dates: (readonly [number, number, number?])[]): TimeState {
    return dates.reduce(
      (state, [at, error, turned = 0]) =>
        hearDate(state, noon + at * minute + error, after(at * minute, turned)).state,
      from,
    );
  }
  const restarted = startTimeState({ at: noon + 2 * day, isConfirmed: true }, after(0));

  it.each([
    ['20 days ahead', 20 * day],
    ['in the year 2999', 970 * 365 * day],
    ['20 days behind', -20 * day],
    ['in the year 1970', -56 * 365 * day],
  ])('moves nothing while the wall clock contradicts it: %s', (_, error) => {
    const once = heard(started, [1, error]);
    expect([timeOf(once), confirmedTimeOf(once), isSuspect(once, after(minute))]).toEqual([
      noon + minute,
      noon + minute,
      false,
    ]);
    const often = heard(started, [0, error], [9, error], [11, error]);
    expect([timeOf(often), often.base, markOf(often)]).toEqual([
      noon + 11 * minute,
      noon + 11 * minute,
      { at: noon + 11 * minute, isConfirmed: true, claimedMs: 0, undatedMs: 0 },
    ]);
  });

  it.each([
    ['two dates over an hour', [0, 60], null],
    ['three dates within ten minutes', [0, 5, 9], null],
    ['three dates over ten minutes', [0, 5, 10], 20 * day],
  ])('accuses the machine after several over time only: %s', (_, minutes, differenceMs) => {
    const state = heard(started, ...minutes.map((at) => [at, 20 * day] as const));
    const reading = after((minutes.at(-1) ?? 0) * minute);
    expect(storeDifference(state, reading)).toBe(differenceMs);
    expect(isSuspect(state, reading)).toBe(differenceMs !== null);
  });

  it('accuses nobody while the dates differ from each other', () => {
    const state = heard(started, ...[0, 5, 10, 15, 20].map((at) => [at, at * day + day] as const));
    expect(storeDifference(state, after(20 * minute))).toBeNull();
  });

  it('accuses nobody any more after the next date that agrees, or once the wall clock agrees with the last', () => {
    const accused = heard(started, [0, day], [5, day], [10, day]);
    expect(storeDifference(heard(accused, [11, 0]), after(11 * minute))).toBeNull();
    expect(storeDifference(accused, after(11 * minute, day))).toBeNull();
  });

  it('moves the time of a machine whose clock is behind what was reached, until later dates take it back', () => {
    const moved = heard(restarted, [1, 20 * day]);
    expect([timeOf(moved), confirmedTimeOf(moved)]).toEqual([
      noon + 20 * day + minute,
      noon + 20 * day + minute,
    ]);
    const back = hearDate(moved, noon + 3 * day, after(2 * minute));
    expect(timeOf(back.state)).toBe(noon + 3 * day);
    expect(back.shifts).toEqual([{ after: noon + 2 * day + minute, byMs: 17 * day + 2 * minute }]);
    expect(timeOf(heard(back.state, [3, 0]))).toBe(noon + 3 * minute);
  });

  it.each([false, true])(
    'takes back what it has dated, even when that is in the past by then (restart: %s)',
    (isRestart) => {
      const moved = heard(restarted, [1, 20 * day]);
      const kept = isRestart ? startTimeState(markOf(moved), after(2 * minute)) : moved;
      const { shifts } = hearDate(kept, noon + 25 * day, after(25 * day));
      expect(shifts[0]).toEqual({ after: noon + 2 * day + minute, byMs: 18 * day });
    },
  );

  it('is taken back after a restart, too', () => {
    const next = startTimeState(markOf(heard(restarted, [1, 20 * day])), after(2 * minute));
    expect(timeOf(next)).toBe(noon + 20 * day + minute);
    expect(timeOf(heard(next, [3, 3 * day]))).toBe(noon + 3 * day + 3 * minute);
  });

  it('is not taken back by a wall clock that is set to another time, while the dates stay', () => {
    const moved = heard(restarted, [1, 20 * day]);
    const set = advanceTime(moved, after(2 * minute, 3 * day));
    expect(timeOf(set)).toBe(noon + 20 * day + 2 * minute);
    expect(timeOf(heard(set, [3, 20 * day, 3 * day]))).toBe(noon + 20 * day + 3 * minute);
    expect(timeOf(heard(set, [3, 3 * day, 3 * day]))).toBe(noon + 3 * day + 3 * minute);
  });

  it('takes back an unconfirmed jump, and confirms it as soon as it agrees with the wall clock', () => {
    const jumped = advanceTime(started, after(minute, 31 * day));
    const denied = heard(jumped, [2, 0, 31 * day]);
    expect([timeOf(denied), isSuspect(denied, after(2 * minute, 31 * day))]).toEqual([
      noon + 2 * minute,
      true,
    ]);
    const confirmed = heard(denied, [3, 31 * day, 31 * day]);
    expect([timeOf(confirmed), confirmed.base, isSuspect(confirmed, after(3 * minute, 31 * day))]).toEqual([
      noon + 31 * day + 3 * minute,
      noon + 31 * day + 3 * minute,
      false,
    ]);
  });

  it('that agrees with a wall clock behind the time reached takes the time back, and every age stays', () => {
    const { state, shifts } = hearDate(restarted, noon + minute, after(minute));
    expect([timeOf(state), isSuspect(state, after(minute))]).toEqual([noon + minute, false]);
    expect(shifts).toEqual([{ after: null, byMs: 2 * day }]);
  });
});

describe('a wall clock that was behind, and then shows what the dates of the store have said', () => {
  const behind = startTimeState(null, after(0));
  const disputed = hearDate(behind, noon + 20 * day + 2 * minute, after(2 * minute)).state;

  it.each([20 * day, 40 * day])('dates later what was dated since the first of them (%d ms)', (by) => {
    const said = hearDate(behind, noon + by + 2 * minute, after(2 * minute)).state;
    const { state, shifts } = followWall(said, after(5 * minute, by));
    expect([timeOf(state), state.base]).toEqual([noon + by + 5 * minute, noon + by + 5 * minute]);
    expect(isSuspect(state, after(5 * minute, by))).toBe(false);
    expect(shifts).toEqual([{ after: noon + 2 * minute - 1, until: noon + 5 * minute, byMs: -by }]);
    expect(followWall(state, after(6 * minute, by)).shifts).toEqual([]);
  });

  it.each([
    ['another time', 10 * day],
    ['a time before the one that was reached', -20 * day],
  ])('dates nothing later if the wall clock shows %s', (_, turned) => {
    expect(followWall(disputed, after(5 * minute, turned)).shifts).toEqual([]);
  });

  it('dates nothing later after a restart, which forgets the dates', () => {
    const next = startTimeState(markOf(disputed), after(3 * minute));
    expect(followWall(next, after(5 * minute, 20 * day)).shifts).toEqual([]);
  });
});

describe('a jump of the wall clock, after which a response had no Date', () => {
  const jumped = (by: number) => acceptTime(advanceTime(started, after(minute, by)));

  it.each([40 * day, 2 * day])('is over when the wall clock is right again, and every age stays', (by) => {
    const { state, shifts } = checkWall(jumped(by), after(2 * minute));
    expect([timeOf(state), isSuspect(state, after(2 * minute))]).toEqual([noon + 2 * minute, false]);
    expect(shifts).toEqual([{ after: null, byMs: by }]);
  });

  it('is over after a restart, too', () => {
    const next = startTimeState(markOf(jumped(40 * day)), after(day));
    expect(timeOf(checkWall(next, after(day)).state)).toBe(noon + day);
  });

  it('is not over for a wall clock that is set back further', () => {
    const reading = after(2 * minute, -day);
    expect(checkWall(jumped(40 * day), reading).shifts).toEqual([]);
  });

  it('stays if no response was dated by it, or if a Date has confirmed it', () => {
    const undated = advanceTime(started, after(minute, 2 * day));
    expect(checkWall(undated, after(2 * minute)).shifts).toEqual([]);
    const { state } = hearDate(jumped(2 * day), noon + 2 * day + minute, after(minute, 2 * day));
    expect(checkWall(state, after(2 * minute)).shifts).toEqual([]);
  });
});

describe('what the store remembers of the time', () => {
  it('follows it', () => {
    expect(advanceTime(started, after(minute)).base).toBe(noon + minute);
    expect(advanceTime(started, after(minute, -day)).base).toBe(noon + minute);
  });

  it('follows a jump of up to 30 days', () => {
    expect(advanceTime(started, after(0, 30 * day)).base).toBe(noon + 30 * day);
  });

  it('is kept from a longer jump until an answer confirms it', () => {
    const jumped = after(minute, 31 * day);
    const kept = advanceTime(started, jumped);
    expect(kept.base).toBe(noon + minute);
    expect(timeOf(kept)).toBe(noon + minute + 31 * day);
    expect(isSuspect(kept, jumped)).toBe(true);
    const confirmed = advanceTime(learnDate(kept, noon + 31 * day, jumped), jumped);
    expect(confirmed.base).toBe(noon + minute + 31 * day);
    expect(isSuspect(confirmed, jumped)).toBe(false);
  });

  it('is kept from a jump over a time when the machine was off, too', () => {
    const kept = startTimeState({ at: noon - 31 * day, isConfirmed: true }, after(0));
    expect(kept.base).toBe(noon - 31 * day);
    expect(timeOf(kept)).toBe(noon);
  });

  it.each([-noon, noon - 500 * day, noon - 39 * day])(
    'is kept from one date before the time that was reached, after the machine was off for 38 days (date %d)',
    (date) => {
      const kept = startTimeState({ at: noon - 38 * day, isConfirmed: true }, after(0));
      const { state, shifts } = hearDate(kept, date, after(minute));
      expect([timeOf(state), shifts]).toEqual([noon + minute, []]);
      const { state: agreed } = hearDate(state, noon + 2 * minute, after(2 * minute));
      expect([timeOf(agreed), agreed.base]).toEqual([noon + 2 * minute, noon + 2 * minute]);
    },
  );

  it('believes such dates when several agree over time', () => {
    let state = startTimeState({ at: noon - 38 * day, isConfirmed: true }, after(0));
    for (const minutes of [1, 6, 12]) {
      ({ state } = hearDate(state, noon - 50 * day + minutes * minute, after(minutes * minute)));
    }
    expect(timeOf(state)).toBe(noon - 38 * day + 12 * minute);
  });

  it('goes with the passing of time while a jump is not believed', () => {
    const kept = advanceTime(advanceTime(started, after(0, 31 * day)), after(day, 31 * day));
    expect(kept.base).toBe(noon + day);
    expect(timeOf(kept)).toBe(noon + 32 * day);
  });

  it('is the wall clock again when that was ahead and has come back', () => {
    const ahead = learnDate(started, noon, after(0, day));
    const still = advanceTime(ahead, after(minute, day));
    expect(isSuspect(still, after(minute, day))).toBe(true);
    const back = advanceTime(still, after(2 * minute));
    expect(isSuspect(back, after(2 * minute))).toBe(false);
    expect(timeOf(advanceTime(back, after(3 * minute)))).toBe(noon + 3 * minute);
  });
});

describe('a wall clock that differs from what is known', () => {
  it('is suspect when it is more than ten minutes behind', () => {
    const keeping = advanceTime(started, after(day));
    expect(isSuspect(keeping, after(day, -10 * minute))).toBe(false);
    expect(isSuspect(keeping, after(day, -10 * minute - 1))).toBe(true);
  });

  it('is suspect when it is more than ten minutes ahead of the upstream', () => {
    const isSuspectAhead = (ms: number): boolean =>
      isSuspect(learnDate(started, noon, after(0, ms)), after(0, ms));
    expect(isSuspectAhead(10 * minute)).toBe(false);
    expect(isSuspectAhead(10 * minute + 1)).toBe(true);
  });
});

describe('what was kept for long enough is removed by the earliest clock', () => {
  const month = 30 * day;
  /** What an agent's upstream said a minute ago: so much ahead of noon. */
  const told = (...ahead: number[]): TimeState =>
    advanceTime(
      ahead.reduce((keeping, by) => learnDate(keeping, noon + by, after(0)), started),
      after(minute),
    );
  it.each([
    { name: 'all agree', keeping: told(0), turned: 0, isAgent: true, behind: 0 },
    { name: 'one wrong Date', keeping: told(9 * day, 0), turned: 0, isAgent: true, behind: 9 * day },
    { name: 'every Date is wrong', keeping: told(9 * day), turned: 0, isAgent: true, behind: 9 * day },
    { name: 'the machine is ahead', keeping: told(0), turned: 9 * day, isAgent: true, behind: 0 },
    { name: 'the machine is behind', keeping: told(0), turned: -day, isAgent: true, behind: day },
    { name: 'the machine is in 1970', keeping: told(0), turned: -noon, isAgent: true, behind: month },
    { name: 'the upstream was silent', keeping: told(), turned: 0, isAgent: true, behind: month },
    { name: 'an authority', keeping: told(), turned: 0, isAgent: false, behind: 0 },
    { name: 'an authority, turned back', keeping: told(), turned: -day, isAgent: false, behind: day },
  ])('$name', ({ keeping, turned, isAgent, behind }) => {
    const kept = timeOf(keeping);
    const how = { isAgent, lived: Infinity };
    expect(kept - removalTime(keeping, after(minute, turned), how)).toBe(behind);
  });

  it('a clock that was behind, and was set right', () => {
    const keeping = advanceTime(told(9 * day), after(minute, 9 * day));
    const how = { isAgent: true, lived: noon + minute };
    expect(removalTime(keeping, after(minute, 9 * day), how)).toBe(noon + minute);
  });
});
