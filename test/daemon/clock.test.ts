import { expect, test, vi } from 'vitest';
import { PersistentClock, machineTime } from '../../src/daemon/system/clock.ts';
import type { ClockReading, TimeMark } from '../../src/domain/clock.ts';

const start: ClockReading = { wall: 1_000_000_000_000, monotonic: 5_000 };

function clockOf(machine: ClockReading, mark: TimeMark | null = null): PersistentClock {
  return new PersistentClock(mark, { ...machineTime, read: () => ({ ...machine }) });
}

test('the time that only passes is not moved by the wall clock', () => {
  const machine = { ...start };
  const clock = clockOf(machine);
  const before = clock.elapsed();
  machine.wall += 3_600_000;
  machine.monotonic += 10;
  expect(clock.elapsed()).toBe(before + 10);
});

test('a clock that was turned back goes on from what it had shown', () => {
  const machine = { ...start };
  const clock = clockOf(machine);
  machine.wall += 3_600_000;
  const shown = clock.now();
  machine.wall -= 7_200_000;
  machine.monotonic += 10;
  expect(clock.now()).toBe(shown + 10);
  expect(clock.status().suspect).toBe(true);
});

test('a sleep of the machine is what the wall clock went on alone', () => {
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

test('the mark that the store remembers is where the next process begins', () => {
  const machine = { ...start };
  const first = clockOf(machine);
  machine.wall += 3_600_000;
  const mark = first.mark();
  const second = clockOf({ wall: start.wall, monotonic: 0 }, mark);
  expect(second.now()).toBe(mark.at);
});

test('a time of the store far ahead counts once it is told twice, and is to be remembered at once', () => {
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

test('an answer of the store without a time confirms the one that is kept', () => {
  const clock = clockOf(start);
  expect(clock.mark()).toEqual({ at: start.wall, isConfirmed: false });
  expect(clock.learn(null)).toBe(false);
  expect(clock.mark()).toEqual({ at: start.wall, isConfirmed: true });
});

test('a wait that is longer than Node’s timers can be does not end at once', async () => {
  const warned = vi.spyOn(process, 'emitWarning');
  const end = new AbortController();
  const waited = machineTime.sleep(2 ** 31, end.signal);
  end.abort(new Error('long enough'));
  await expect(waited).rejects.toThrow('aborted');
  // By this Node would say that it waits for a millisecond.
  expect(warned).not.toHaveBeenCalled();
  warned.mockRestore();
});
