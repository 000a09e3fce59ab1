import { beforeEach, describe, expect, test } from 'vitest';
import { WaitingRequests } from '../../../../src/features/leases/issuer/waiting.ts';
import { Announcer } from '../../../../src/service/writer.ts';
import { VirtualTime } from '../../../support/harness/virtual-clock.ts';

let time: VirtualTime;
let changes: Announcer;
let waiting: WaitingRequests;
beforeEach(() => {
  time = new VirtualTime();
  changes = new Announcer();
  waiting = new WaitingRequests({ clock: time.clock(), changes });
});

const never = new AbortController().signal;

/** Waits, and notes how the wait ends. */
function wait(licenseKey: string, forMs = 30_000, signal = never): { end: string | null } {
  const noted: { end: string | null } = { end: null };
  const note = async (): Promise<void> => {
    noted.end = await waiting.wait(licenseKey, { forMs, since: waiting.generation, signal });
  };
  void note();
  return noted;
}

describe('a waiting request', () => {
  test('ends when its license changes, and not when another license changes', async () => {
    const [one, other] = [wait('A'), wait('B')];
    changes.announce([{ licenseKey: 'A' }, 'credentials']);
    await time.settle();
    expect([one.end, other.end, waiting.count]).toEqual(['changed', null, 1]);
    changes.announce(['anything']);
    await time.settle();
    expect([other.end, waiting.count]).toEqual(['changed', 0]);
  });

  test('ends when its time is over, at most a second later', async () => {
    const [short, long] = [wait('A', 5_000), wait('A', 9_000)];
    await time.advance(4_999);
    expect([short.end, long.end]).toEqual([null, null]);
    await time.advance(1_001);
    expect([short.end, long.end]).toEqual(['over', null]);
    await time.advance(4_000);
    expect([long.end, waiting.count]).toEqual(['over', 0]);
  });

  test('ends when its caller leaves', async () => {
    const leaving = new AbortController();
    const left = wait('A', 30_000, leaving.signal);
    leaving.abort();
    await time.settle();
    expect([left.end, waiting.count]).toEqual(['over', 0]);
  });

  test('does not begin if the license has changed since it was read', async () => {
    const since = waiting.generation;
    changes.announce([{ licenseKey: 'B' }]);
    expect(await waiting.wait('A', { forMs: 1_000, since, signal: never })).toBe('changed');
  });

  test('does not begin if its caller has left, if it has no time, or if the process stops', async () => {
    const since = waiting.generation;
    const left = AbortSignal.abort();
    expect(await waiting.wait('A', { forMs: 1_000, since, signal: left })).toBe('over');
    expect(await waiting.wait('A', { forMs: 0, since, signal: never })).toBe('over');
    waiting.stop();
    expect(await waiting.wait('A', { forMs: 1_000, since, signal: never })).toBe('over');
  });
});

test('10,000 waiting requests need one timer, end with a stop, and leave nothing', async () => {
  const waits = Array.from({ length: 10_000 }, (_, number) => wait(`key ${number % 4_000}`));
  expect([waiting.count, time.sleeping]).toEqual([10_000, 1]);
  changes.announce([{ licenseKey: 'key 7' }]);
  await time.settle();
  expect(waits.filter(({ end }) => end === 'changed')).toHaveLength(3);
  waiting.stop();
  await time.settle();
  expect([waiting.count, time.sleeping]).toEqual([0, 0]);
  expect(waits.filter(({ end }) => end === 'over')).toHaveLength(9_997);
});
