import { expect, test } from 'vitest';
import { systemRandom } from '../../src/daemon/system/machine.ts';

test('Ids of the same millisecond differ, and later ids are greater.', () => {
  const ids = Array.from({ length: 1_000 }, () => systemRandom.uuid(1_000_000));
  expect(new Set(ids).size).toBe(1_000);
  const later = systemRandom.uuid(1_000_001);
  expect(ids.filter((id) => id >= later)).toEqual([]);
});
