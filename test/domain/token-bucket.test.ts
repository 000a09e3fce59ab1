import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { TokenBucket } from '../../src/domain/token-bucket.ts';

const rate = { perSecond: 5, burst: 5 };

/** A bucket from which some tokens are taken, one by one. */
function bucketWithout(taken: number, now = 0): TokenBucket {
  const bucket = new TokenBucket();
  for (let count = 0; count < taken; count += 1) expect(bucket.take(rate, now)).toBe(0);
  return bucket;
}

/** How many tokens can be taken at once. */
function leftIn(bucket: TokenBucket, now: number): number {
  let left = 0;
  while (bucket.take(rate, now) === 0) left += 1;
  return left;
}

test('a bucket that was never used holds its burst, and then one more each fifth of a second', () => {
  const bucket = bucketWithout(5);
  expect(bucket.take(rate, 0)).toBe(200);
  expect(bucket.waitMs(rate, 199)).toBe(1);
  expect(bucket.waitMs(rate, 200)).toBe(0);
});

test('a debt has to flow in before anything can be taken again', () => {
  const bucket = new TokenBucket();
  expect(bucket.take(rate, 0, 15)).toBe(0);
  expect(bucket.take(rate, 0)).toBe(2_200);
  expect(bucket.take(rate, 2_200)).toBe(0);
});

test('what was taken for nothing is put back, and never more than the burst', () => {
  const bucket = bucketWithout(3, 7);
  bucket.giveBack(rate, 7, 2);
  expect(leftIn(bucket, 7)).toBe(4);
  bucket.giveBack(rate, 7, 9);
  expect(leftIn(bucket, 7)).toBe(5);
});

test('a rate below one a second lets one through, then waits', () => {
  const slow = { perSecond: 0.5, burst: 1 };
  const bucket = new TokenBucket();
  expect(bucket.take(slow, 0)).toBe(0);
  expect(bucket.take(slow, 0)).toBe(2_000);
});

test('a clock that seems to go back gives nothing', () => {
  const bucket = bucketWithout(1, 1_000);
  expect(leftIn(bucket, 0)).toBe(4);
});

test('whoever takes only when it need not wait never gets more than the rate allows', () => {
  const steps = fc.array(fc.nat({ max: 1_000 }), { minLength: 1, maxLength: 100 });
  fc.assert(
    fc.property(steps, fc.integer({ min: 1, max: 50 }), (pauses, perSecond) => {
      const its = { perSecond, burst: perSecond };
      const bucket = new TokenBucket();
      let now = 0;
      let taken = 0;
      for (const pause of pauses) {
        now += pause;
        if (bucket.take(its, now) === 0) taken += 1;
      }
      expect(taken).toBeLessThanOrEqual(its.burst + (now / 1000) * perSecond + 1e-6);
    }),
  );
});
