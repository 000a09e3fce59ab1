import { describe, expect, it } from 'vitest';
import { countApplied, type CounterKind } from '../../../src/domain/outbox/count.ts';

const use = 'usage';
const take = 'decrease';

type Row = { base: number; kinds: CounterKind[]; read: number; applied: number | null; why: string };

const rows: Row[] = [
  { base: 5, kinds: [], read: 5, applied: 0, why: 'nothing was in doubt' },
  { base: 5, kinds: [], read: 6, applied: null, why: 'somebody else counted' },
  { base: 5, kinds: [use], read: 5, applied: 0, why: 'it did not arrive' },
  { base: 5, kinds: [use], read: 6, applied: 1, why: 'it arrived' },
  { base: 5, kinds: [use], read: 7, applied: null, why: 'somebody else counted too' },
  { base: 5, kinds: [use], read: 4, applied: null, why: 'somebody else took one back' },
  { base: 5, kinds: [take], read: 4, applied: 1, why: 'it arrived' },
  { base: 5, kinds: [use, use, use], read: 7, applied: 2, why: 'two of three arrived' },
  { base: 5, kinds: [use, take], read: 5, applied: 2, why: 'none or both: the count is the same' },
  { base: 5, kinds: [use, take], read: 6, applied: 1, why: 'the first arrived' },
  { base: 0, kinds: [take, use], read: 0, applied: 1, why: 'taking back at 0 changes nothing' },
  { base: 0, kinds: [take, use], read: 1, applied: 2, why: 'both arrived' },
];

describe('what a count tells of doubtful operations', () => {
  it.each(rows)('from $base over $kinds to $read: $applied, for $why', ({ base, kinds, read, applied }) => {
    expect(countApplied(base, kinds, read)).toBe(applied);
  });
});
