import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { bucketAt, giveBack, spend, waitOf, type Bucket } from '../../src/domain/token-bucket.ts';

const rate = { perSecond: 5, burst: 5 };

test('a bucket that was never used holds its burst, and then one more each fifth of a second', () => {
  let bucket = bucketAt(undefined, rate, 0);
  for (let taken = 0; taken < 5; taken += 1) {
    expect(waitOf(bucket, rate)).toBe(0);
    bucket = spend(bucket);
  }
  expect(waitOf(bucket, rate)).toBe(200);
  expect(waitOf(bucketAt(bucket, rate, 199), rate)).toBe(1);
  expect(waitOf(bucketAt(bucket, rate, 200), rate)).toBe(0);
});

test('a debt has to flow in before anything can be taken again', () => {
  let bucket = bucketAt(undefined, rate, 0);
  for (let taken = 0; taken < 15; taken += 1) bucket = spend(bucket);
  expect(bucket.left).toBe(-10);
  expect(waitOf(bucket, rate)).toBe(2_200);
});

test('what was taken for nothing is put back, and never more than the burst', () => {
  const bucket = spend(spend(spend(bucketAt(undefined, rate, 7))));
  expect(giveBack(bucket, rate, 2)).toEqual({ left: 4, at: 7 });
  expect(giveBack(bucket, rate, 9)).toEqual({ left: 5, at: 7 });
});

test('a rate below one a second lets one through, then waits', () => {
  const slow = { perSecond: 0.5, burst: 1 };
  expect(waitOf(spend(bucketAt(undefined, slow, 0)), slow)).toBe(2_000);
});

test('a clock that seems to go back gives nothing', () => {
  const bucket = spend(bucketAt(undefined, rate, 1_000));
  expect(bucketAt(bucket, rate, 0).left).toBe(4);
});

test('whoever takes only when it need not wait never gets more than the rate allows', () => {
  const steps = fc.array(fc.nat({ max: 1_000 }), { minLength: 1, maxLength: 100 });
  fc.assert(
    fc.property(steps, fc.integer({ min: 1, max: 50 }), (pauses, perSecond) => {
      const its = { perSecond, burst: perSecond };
      let bucket: Bucket | undefined;
      let now = 0;
      let taken = 0;
      for (const pause of pauses) {
        now += pause;
        bucket = bucketAt(bucket, its, now);
        expect(bucket.left).toBeLessThanOrEqual(its.burst);
        if (waitOf(bucket, its) > 0) continue;
        bucket = spend(bucket);
        taken += 1;
      }
      expect(taken).toBeLessThanOrEqual(its.burst + (now / 1000) * perSecond + 1e-6);
    }),
  );
});
