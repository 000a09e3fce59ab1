import { execFileSync } from 'node:child_process';
import { pathToFileURL } from 'node:url';
import { join } from 'node:path';
import { cachedDataVersionTag } from 'node:v8';
import { expect, test } from 'vitest';
import { limitYoungObjects } from '../../src/daemon/system/heap.ts';

const heapModule = pathToFileURL(join(import.meta.dirname, '../../src/daemon/system/heap.ts')).href;

/** A thread keeps 20,000 objects at any time, and makes many more. */
const thread = `
  import { getHeapSpaceStatistics } from 'node:v8';
  const kept = [];
  for (let made = 0; made < 4e6; made += 1) kept[made % 20_000] = { made, more: [made] };
  const young = getHeapSpaceStatistics().find((space) => space.space_name === 'new_space');
  process.stdout.write(String(young.space_size / 2 ** 20));
`;

/** How large its young generation becomes, in MiB, in a process that runs something before. */
function youngMib(before: string): number {
  const program = `${before}
    import { Worker } from 'node:worker_threads';
    new Worker(new URL('data:text/javascript,' + encodeURIComponent(${JSON.stringify(thread)})));`;
  const text = execFileSync(process.execPath, ['--input-type=module', '--eval', program], {
    encoding: 'utf8',
    env: {},
  });
  return Number(text);
}

test('a thread that begins after it keeps few young objects', () => {
  const usual = youngMib('');
  const limited = youngMib(`import { limitYoungObjects } from '${heapModule}'; limitYoungObjects();`);
  expect(limited).toBeGreaterThan(0);
  expect(limited).toBeLessThan(usual / 2);
});

test('the limit that is set before the start leaves compiled code usable', () => {
  const before = cachedDataVersionTag();
  limitYoungObjects();
  expect(cachedDataVersionTag()).toBe(before);
});
