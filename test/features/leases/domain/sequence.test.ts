import { describe, expect, it } from 'vitest';
import { decideSequence } from '../../../../src/features/leases/domain/lease-rules.ts';

describe('the order of requests', () => {
  const last = { seq: 4, digest: 'd4' };
  const cases = [
    ['the next request is carried out', { seq: 5, digest: 'd5', challenge: null }, 'next'],
    ['the last request is repeated', { seq: 4, digest: 'd4', challenge: null }, 'repeated'],
    ['a challenge is repeated with its request', { seq: 4, digest: 'd4', challenge: 'old' }, 'repeated'],
    ['another request with the last number is refused', { seq: 4, digest: 'x', challenge: null }, 'reused'],
    [
      'another request with the last number is refused in spite of the challenge',
      { seq: 4, digest: 'x', challenge: 'c4' },
      'reused',
    ],
    ['an earlier request is out of sequence', { seq: 3, digest: 'd3', challenge: null }, 'out_of_sequence'],
    ['a later request is out of sequence', { seq: 6, digest: 'd6', challenge: 'c4' }, 'out_of_sequence'],
    ['a request with the challenge continues', { seq: 5, digest: 'd5', challenge: 'c4' }, 'continued'],
    [
      'a request with another challenge is out of sequence',
      { seq: 5, digest: 'd5', challenge: 'c3' },
      'out_of_sequence',
    ],
  ] as const;
  it('the order of requests: the first request has the number 1', () => {
    const none = { seq: 0, digest: '' };
    const numbers = [0, 1, 2].map((seq) => decideSequence(none, { seq, digest: 'd', challenge: null }, 'c'));
    expect(numbers).toEqual(['reused', 'next', 'out_of_sequence']);
  });
  for (const [name, request, decision] of cases) {
    it(`the order of requests: ${name}`, () => {
      expect(decideSequence(last, request, 'c4')).toBe(decision);
    });
  }
});
