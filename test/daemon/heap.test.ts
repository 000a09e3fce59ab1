import { execFileSync } from 'node:child_process';
import { pathToFileURL } from 'node:url';
import { join } from 'node:path';
import { cachedDataVersionTag } from 'node:v8';
import { expect, test } from 'vitest';
import { limitYoungGeneration } from '../../src/daemon/system/process.ts';

const heapModule = pathToFileURL(join(import.meta.dirname, '../../src/daemon/system/process.ts')).href;

/** A thread that keeps 20,000 objects at any time, and creates many more. */
const thread = `
  import { getHeapSpaceStatistics } from 'node:v8';
  const kept = [];
  for (let made = 0; made < 4e6; made += 1) kept[made % 20_000] = { made, more: [made] };
  const young = getHeapSpaceStatistics().find((space) => space.space_name === 'new_space');
  process.stdout.write(String(young.space_size / 2 ** 20));
`;

/** The size that the young generation of the thread reaches, in MiB. `before`: code that the process runs first. */
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

test('A thread that starts after limitYoungGeneration has a small young generation.', () => {
  const usual = youngMib('');
  const limited = youngMib(`import { limitYoungGeneration } from '${heapModule}'; limitYoungGeneration();`);
  expect(limited).toBeGreaterThan(0);
  expect(limited).toBeLessThan(usual / 2);
});

/** Keeps its first objects, and later objects only briefly. */
const longLivedFirst = `
  import { getHeapSpaceStatistics } from 'node:v8';
  const oldBytes = () => getHeapSpaceStatistics().find((space) => space.space_name === 'old_space').space_used_size;
  const make = (name) => ({ name, more: { name, most: [name] } });
  const kept = Array.from({ length: 1e6 }, (_, name) => make(name));
  kept.length = 0;
  let [grown, before] = [0, oldBytes()];
  for (let made = 0; made < 4e6; made += 1) {
    kept[0] = make(made);
    if (made % 10_000 > 0) continue;
    const now = oldBytes();
    grown += Math.max(0, now - before);
    before = now;
  }
  process.stdout.write(String(grown / 2 ** 20));
`;

/** The bytes allocated in the old generation afterwards, in MiB. `before`: code that the process runs first. */
function oldMib(before: string): number {
  const program = `${before} ${longLivedFirst}`;
  // With compiler threads, V8 would learn from a varying part of the objects.
  const flags = ['--single-threaded', '--max-semi-space-size=1'];
  const text = execFileSync(process.execPath, [...flags, '--input-type=module', '--eval', program], {
    encoding: 'utf8',
    env: {},
  });
  return Number(text);
}

test('Without pretenuring, short-lived objects are collected in the young generation.', () => {
  const usual = oldMib('');
  const sooner = oldMib(`import { collectGarbageSooner } from '${heapModule}'; collectGarbageSooner();`);
  expect(usual).toBeGreaterThan(10);
  expect(sooner).toBeLessThan(usual / 5);
});

test('The limit that is set before the start leaves cached code usable.', () => {
  const before = cachedDataVersionTag();
  limitYoungGeneration();
  expect(cachedDataVersionTag()).toBe(before);
});
