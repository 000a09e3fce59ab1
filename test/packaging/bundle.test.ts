import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { bundle } from '../../src/packaging/bundle.ts';
import { temporaryDirectory } from '../support/temporary.ts';

const source = `
export class Shop {
  static name = 'shop';
  async sell(key) {
    const text = \`of
  two lines, \${((one) => { const two = one; return two; })('nested')}\`;
    if (key === '') throw new Error('a key is empty');
    return text;
  }
}
`;

test('an error that nobody catches shows its own statement: each has a line, and means what it did', async () => {
  await using temporary = temporaryDirectory();
  const [input, file] = [join(temporary.path, 'shop.ts'), join(temporary.path, 'shop.mjs')];
  writeFileSync(input, source);
  await bundle(input, { file });
  const { Shop } = (await import(file)) as { Shop: new () => { sell: (key: string) => Promise<string> } };
  expect(await new Shop().sell('KEY')).toBe('of\n  two lines, nested');
  const error = await new Shop().sell('').catch((reason: unknown) => reason as Error);
  const line = /shop\.mjs:(\d+):/.exec((error as Error).stack ?? '')?.[1];
  expect(readFileSync(file, 'utf8').split('\n')[Number(line) - 1]).toBe(
    'if(key===``)throw new Error(`a key is empty`);',
  );
});
