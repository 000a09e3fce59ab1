import { assert, property, string } from 'fast-check';
import { expect, it } from 'vitest';
import { plainText } from '../../src/domain/text.ts';

it.each([
  ['a zero-width space', 'AB\u200b-1'],
  ['a zero-width joiner', 'AB\u200d-1'],
  ['a byte order mark', '\ufeffAB-1'],
  ['a soft hyphen', 'A\u00adB-1'],
  ['a mark for the direction of text', '\u202aAB-1\u202c'],
  ['a variation selector', 'AB\ufe0f-1'],
  ['a Hangul filler', 'AB\u3164-1'],
  ['a tag character', 'AB\u{e0041}-1'],
  ['a line separator', 'AB-1\u2028'],
  ['full-width letters and digits', 'ＡＢ－１'],
  ['mathematical letters', '𝐀𝐁-𝟏'],
  ['a hyphen that does not break', 'AB\u20111'],
  ['an en dash', 'AB–1'],
  ['an em dash', 'AB—1'],
  ['a minus sign', 'AB−1'],
])('a code with %s is read as the usual characters', (_, pasted) => {
  expect(plainText(pasted)).toBe('AB-1');
});

it.each(['AB-1', 'a b', 'ümlaut 1', '😀', 'ключ-1', 'two\nlines', '鍵-1', ''])(
  'a usual text is kept as it is: %s',
  (text) => {
    expect(plainText(text)).toBe(text);
  },
);

it('a plain text is kept as it is', () => {
  const keptAsItIs = property(string({ unit: 'binary' }), (text) => {
    const plain = plainText(text);
    expect(plainText(plain)).toBe(plain);
  });
  assert(keptAsItIs, { numRuns: 1_000 });
});
