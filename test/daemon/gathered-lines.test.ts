import { setImmediate as turn } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { GatheredLines } from '../../src/daemon/log/gathered-lines.ts';

test('the lines of one turn are written at once, in order, and none twice', async () => {
  const written: string[] = [];
  const lines = new GatheredLines({ write: (text) => written.push(text) });
  lines.write('a\n');
  lines.write('b\n');
  expect(written).toEqual([]);
  await turn();
  lines.write('c\n');
  lines.flushSync();
  await turn();
  expect(written).toEqual(['a\nb\n', 'c\n']);
});
