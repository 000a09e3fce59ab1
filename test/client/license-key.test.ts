import { expect, test } from 'vitest';
import { plainText } from '../../src/client/license-key.ts';
import { plainText as asAnAgentReads } from '../../src/domain/text.ts';

test('a program reads a pasted license key as its agent does, whatever character is in it', () => {
  const differing: string[] = [];
  for (let code = 0; code <= 0x10_ffff; code += 1) {
    const pasted = `AB${String.fromCodePoint(code)}1`;
    if (plainText(pasted) !== asAnAgentReads(pasted)) differing.push(code.toString(16));
  }
  expect(differing).toEqual([]);
});
