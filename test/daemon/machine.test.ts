import { expect, test, vi } from 'vitest';
import { machineId, parseMachineId, systemRandom } from '../../src/daemon/system/machine.ts';
import type { ClockReading, TimeMark } from '../../src/domain/clock.ts';
import { machineTime, PersistentClock } from '../../src/daemon/system/clock.ts';

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

test('A signed date far ahead counts after the second one, and must be recorded at once.', () => {
  const machine = { ...start };
  const clock = clockOf(machine);
  const far = start.wall + 40 * 86_400_000;
  expect(clock.learn(far)).toBe(false);
  expect(clock.now()).toBe(start.wall);
  machine.wall += 1_000;
  machine.monotonic += 1_000;
  expect(clock.learn(far + 1_000)).toBe(true);
  expect(clock.mark()).toMatchObject({ at: far + 1_000, isConfirmed: true });
  expect(clock.learn(far + 2_000)).toBe(false);
});

test('A response of the upstream without a Date confirms the current time.', () => {
  const clock = clockOf(start);
  expect(clock.mark()).toMatchObject({ at: start.wall, isConfirmed: false });
  expect(clock.hear(null)).toBe(false);
  expect(clock.mark()).toMatchObject({ at: start.wall, isConfirmed: true });
});

test('A Date far ahead of a clock that was set back must be recorded at once, with what a later one takes back.', async () => {
  const machine = { ...start };
  const clock = clockOf(machine, { at: start.wall + 3_600_000, isConfirmed: true });
  const said = start.wall + 40 * 86_400_000;
  expect(clock.hear(said)).toBe(true);
  expect(clock.now()).toBe(said);
  expect(clock.hear(start.wall + 7_200_000)).toBe(true);
  const recorded: unknown[] = [];
  await clock.record((...each) => Promise.resolve(recorded.push(each)));
  await clock.record((...each) => Promise.resolve(recorded.push(each)));
  const claimedFrom = start.wall + 3_600_000;
  const mark = {
    at: start.wall + 7_200_000,
    isConfirmed: true,
    claimedMs: 3_600_000,
    claimedFrom,
    undatedMs: 0,
  };
  const shift = { after: claimedFrom, byMs: said - start.wall - 7_200_000 };
  expect(recorded).toEqual([
    [mark, [shift]],
    [mark, []],
  ]);
});

test('Corrections of stored dates are whole ms, although the clocks of the machine are more exact.', async () => {
  const day = 86_400_000;
  const ahead: TimeMark = { at: start.wall + 20 * day, isConfirmed: true };
  const corrections: [TimeMark, (clock: PersistentClock, machine: ClockReading) => void][] = [
    // The store and the machine agree on an earlier time.
    [ahead, (clock, { wall }) => void clock.hear(wall)],
    // A later date takes back an earlier one.
    [
      { at: start.wall + day, isConfirmed: true },
      (clock, { wall }) => {
        clock.hear(wall + 40 * day);
        clock.hear(wall + 3 * day);
      },
    ],
    // The wall clock is right again after a jump.
    [{ ...ahead, undatedMs: 20 * day }, (clock) => void clock.checkWall()],
  ];
  for (const [mark, correct] of corrections) {
    const machine = { wall: start.wall, monotonic: 5_000.25 };
    const clock = clockOf(machine, mark);
    machine.wall += 1_000;
    machine.monotonic += 1_000.375;
    correct(clock, machine);
    await clock.record((stored, shifts) => {
      expect(shifts).not.toEqual([]);
      const numbers = shifts.flatMap(({ after, byMs }) => [after ?? 0, byMs]);
      expect([stored.at, ...numbers].filter((each) => !Number.isInteger(each))).toEqual([]);
      return Promise.resolve();
    });
  }
});

test('A clock that was behind, and is set to what the store says, dates later what was dated meanwhile.', async () => {
  const behindMs = 20 * 86_400_000;
  const machine = { ...start };
  const clock = clockOf(machine);
  clock.hear(start.wall + behindMs);
  machine.wall += behindMs + 5_000;
  machine.monotonic += 5_000;
  expect(clock.now()).toBe(start.wall + behindMs + 5_000);
  expect(clock.checkWall()).toBe(true);
  await clock.record((mark, shifts) => {
    expect(mark.at).toBe(machine.wall);
    expect(shifts).toEqual([{ after: start.wall - 1, until: start.wall + 5_000, byMs: -behindMs }]);
    return Promise.resolve();
  });
  expect(clock.checkWall()).toBe(false);
});

test('Corrections of stored dates that could not be recorded are recorded later.', async () => {
  const machine = { ...start };
  const clock = clockOf(machine, { at: start.wall + 3_600_000, isConfirmed: true });
  expect(clock.hear(start.wall)).toBe(true);
  await expect(clock.record(() => Promise.reject(new Error('the disk is full')))).rejects.toThrow('full');
  expect(clock.checkWall()).toBe(true);
  await clock.record((mark, shifts) => {
    expect([mark.at, shifts]).toEqual([start.wall, [{ after: null, byMs: 3_600_000 }]]);
    return Promise.resolve();
  });
  expect(clock.checkWall()).toBe(false);
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

const windowsId = `\r
HKEY_LOCAL_MACHINE\\SOFTWARE\\Microsoft\\Cryptography\r
    MachineGuid    REG_SZ    9a1f3c58-2b6d-4e07-8c11-5d0e7f4a2b93\r
\r
`;
const macId = `+-o J314sAP  <class IOPlatformExpertDevice, id 0x100000216, registered, matched, active, busy 0 (103 ms), retain 35>
    {
      "IOPlatformSerialNumber" = "C02XXXXXXXXX"
      "IOPolledInterface" = "AppleARMWatchdogTimerHibernateHandler is not serializable"
      "IOPlatformUUID" = "0F3E9D52-6C1B-5A7E-9D40-1B2C3D4E5F60"
      "clock-frequency" = <00366e01>
    }
`;

test.each([
  ['linux', '7c5f0e3b9a8d4c6e8f1a2b3c4d5e6f70\n', '7c5f0e3b9a8d4c6e8f1a2b3c4d5e6f70'],
  ['freebsd', '7c5f0e3b9a8d4c6e8f1a2b3c4d5e6f70\n', '7c5f0e3b9a8d4c6e8f1a2b3c4d5e6f70'],
  ['linux', '', ''],
  ['win32', windowsId, '9a1f3c58-2b6d-4e07-8c11-5d0e7f4a2b93'],
  ['win32', 'ERROR: The system was unable to find the specified registry key or value.\r\n', ''],
  ['win32', '', ''],
  ['darwin', macId, '0F3E9D52-6C1B-5A7E-9D40-1B2C3D4E5F60'],
  ['darwin', '', ''],
] as const)('On %s, the text %j has the machine id %j.', (platform, text, id) => {
  expect(parseMachineId(platform, text)).toBe(id);
});

test('A machine without the program that shows its id has no id.', () => {
  expect(machineId(process.platform === 'win32' ? 'darwin' : 'win32')).toBe('');
});
