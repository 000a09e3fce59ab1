import { expect, test } from 'vitest';
import { playFleet } from './fleet.ts';

test('an agent of a large fleet sends as many requests as one of a small fleet, and each use counts once', async () => {
  const few = await playFleet(3);
  const many = await playFleet(24);
  expect([few.counted, many.counted]).toEqual([few.due, many.due]);
  expect(many.requests / few.requests).toBeGreaterThan(0.9);
  expect(many.requests / few.requests).toBeLessThan(1.1);
  // A wait of 25 s at a time, a request for each use, and few reads.
  expect(many.requests).toBeLessThan(250);
});
