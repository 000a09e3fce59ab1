import { describe, expect, it } from 'vitest';
import { maxLatest, MissingKeys } from '../../src/sync/missing-keys.ts';
import { minute, second } from '../support/harness/sync-harness.ts';
import { VirtualTime } from '../support/harness/virtual-clock.ts';

describe('the missing keys of a product', () => {
  it('are those whose 404 is kept now, the latest first', async () => {
    const time = new VirtualTime();
    const missing = new MissingKeys(time.clock(), () => minute);
    missing.add('press', 'ONE', false);
    missing.add('other', 'ELSEWHERE', false);
    await time.advance(second);
    missing.add('press', 'TWO', false);
    missing.add('press', 'SEEN', true);
    expect(missing.latest('press')).toEqual(['TWO', 'ONE']);
    await time.advance(second);
    expect(missing.latest('press')).toEqual(['TWO']);
    missing.forget('press', 'TWO');
    expect([missing.latest('press'), missing.latest('other')]).toEqual([[], []]);
  });

  it('are at most 50, and those that are no longer kept go first', async () => {
    const time = new VirtualTime();
    const missing = new MissingKeys(time.clock(), () => minute);
    missing.add('press', 'WAITS', false);
    await time.advance(2 * second);
    missing.add('press', 'WAITS', false);
    for (let index = 1; index < maxLatest; index += 1) missing.add('press', `EARLY-${index}`, false);
    await time.advance(2 * second);
    missing.add('press', 'LATE', false);
    expect(missing.latest('press')).toEqual(['LATE', 'WAITS']);
    for (let index = 1; index <= 2 * maxLatest; index += 1) missing.add('press', `GUESS-${index}`, false);
    const latest = missing.latest('press');
    expect([latest.length, latest[0], latest.at(-1)]).toEqual([maxLatest, 'GUESS-100', 'GUESS-51']);
  });
});
