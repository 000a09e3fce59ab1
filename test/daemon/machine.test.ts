import { expect, test, vi } from 'vitest';
import { PersistentClock, machineTime, systemRandom } from '../../src/daemon/system/machine.ts';
import type { ClockReading, TimeMark } from '../../src/domain/time.ts';

const start: ClockReading = { wall: 1_000_000_000_000, monotonic: 5_000 };

function clockOf(machine: ClockReading, mark: TimeMark | null = null): PersistentClock {
  return new PersistentClock(mark, { ...machineTime, read: () => ({ ...machine }) });
}

test('The wall clock does not move the elapsed time.', () => {
  const machine = { ...start };
  const clock = clockOf(machine);
  const before = clock.monotonic();
  machine.wall += 3_600_000;
  machine.monotonic += 10;
  expect(clock.monotonic()).toBe(before + 10);
});

test('A clock that was turned back continues from its last time.', () => {
  const machine = { ...start };
  const clock = clockOf(machine);
  machine.wall += 3_600_000;
  const shown = clock.now();
  machine.wall -= 7_200_000;
  machine.monotonic += 10;
  expect(clock.now()).toBe(shown + 10);
  expect(clock.status().suspect).toBe(true);
});

test('A sleep of the machine is the time by which only the wall clock went on.', () => {
  const machine = { ...start };
  const clock = clockOf(machine);
  machine.wall += 60_000;
  machine.monotonic += 60_000;
  expect(clock.sleptMs()).toBe(0);
  machine.wall += 3_600_000;
  machine.monotonic += 1_000;
  expect(clock.sleptMs()).toBe(3_599_000);
  expect(clock.sleptMs()).toBe(0);
});

test('The next process starts at the time that the store recorded.', () => {
  const machine = { ...start };
  const first = clockOf(machine);
  machine.wall += 3_600_000;
  const mark = first.mark();
  const second = clockOf({ wall: start.wall, monotonic: 0 }, mark);
  expect(second.now()).toBe(mark.at);
});

test('A time of the upstream far ahead counts after its second response, and must be recorded at once.', () => {
  const machine = { ...start };
  const clock = clockOf(machine);
  const far = start.wall + 40 * 86_400_000;
  expect(clock.learn(far)).toBe(false);
  expect(clock.now()).toBe(start.wall);
  machine.wall += 1_000;
  machine.monotonic += 1_000;
  expect(clock.learn(far + 1_000)).toBe(true);
  expect(clock.mark()).toEqual({ at: far + 1_000, isConfirmed: true });
  expect(clock.learn(far + 2_000)).toBe(false);
});

test('A response of the upstream without a Date confirms the current time.', () => {
  const clock = clockOf(start);
  expect(clock.mark()).toEqual({ at: start.wall, isConfirmed: false });
  expect(clock.learn(null)).toBe(false);
  expect(clock.mark()).toEqual({ at: start.wall, isConfirmed: true });
});

test("A wait longer than the limit of Node's timers does not end at once.", async () => {
  const warned = vi.spyOn(process, 'emitWarning');
  const end = new AbortController();
  const waited = machineTime.sleep(2 ** 31, end.signal);
  end.abort(new Error('long enough'));
  await expect(waited).rejects.toThrow('aborted');
  // With a timer that is too long, Node would warn and use a millisecond.
  expect(warned).not.toHaveBeenCalled();
  warned.mockRestore();
});

test('Ids of the same millisecond differ, and later ids are greater.', () => {
  const ids = Array.from({ length: 1_000 }, () => systemRandom.uuid(1_000_000));
  expect(new Set(ids).size).toBe(1_000);
  const later = systemRandom.uuid(1_000_001);
  expect(ids.filter((id) => id >= later)).toEqual([]);
});
