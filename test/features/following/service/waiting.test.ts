import { expect, test } from 'vitest';
import type { ChangedFollowers } from '../../../../src/features/following/service/tables.ts';
import { WaitingFollowers } from '../../../../src/features/following/service/waiting.ts';
import { Announcer } from '../../../../src/service/writer.ts';
import { VirtualTime } from '../../../support/harness/virtual-clock.ts';
import { silent } from '../../../support/silent-log.ts';

const never = new AbortController().signal;

test('10,000 waiting followers need one timer, end with a stop, and leave nothing', async () => {
  const time = new VirtualTime();
  const changes = new Announcer();
  let read: ChangedFollowers = { position: '0', hasMore: false, followers: [] };
  let reads = 0;
  const ofChanges = (): ChangedFollowers => {
    reads += 1;
    return read;
  };
  const waiting = new WaitingFollowers({
    reader: { followers: { ofChanges } as never },
    changes,
    clock: time.clock(),
    log: silent,
    nextTurn: () => Promise.resolve(),
  });
  const ends: string[] = [];
  for (let agent = 0; agent < 10_000; agent += 1) {
    const wait = await waiting.begin(agent, { forMs: 25_000, signal: never });
    void wait.end.then((end) => ends.push(end));
  }
  await time.advance(10_000);
  expect([waiting.count, time.sleeping, ends]).toEqual([10_000, 1, []]);
  // One reader of the history serves them all.
  expect(reads).toBeLessThan(20);
  read = { position: '1', hasMore: false, followers: [7, 8] };
  changes.announce(['anything']);
  await time.advance(1_000);
  expect([waiting.count, ends]).toEqual([9_998, ['changed', 'changed']]);
  read = { position: '1', hasMore: false, followers: [] };
  waiting.stop();
  await time.advance(2_000);
  expect([waiting.count, time.sleeping]).toEqual([0, 0]);
  expect(ends.filter((end) => end === 'over')).toHaveLength(9_998);
});
