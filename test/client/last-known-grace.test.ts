import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { LastKnown, type License, type Verdict } from '../../src/client/index.ts';
import { temporaryDirectory, type TemporaryDirectory } from '../support/temporary.ts';

const day = 24 * 60 * 60 * 1000;
const today = Date.UTC(2026, 0, 20);
const license: License = {
  licenseKey: 'KEY',
  productKey: 'RGsF',
  buyerEmail: 'buyer@example.com',
  enabled: true,
  uses: 3,
  date: new Date(Date.UTC(2025, 0, 1)),
};
const away: Verdict = { verdict: 'undetermined', reason: 'agent_away', license: null, error: null };

/** What the agent says of a key that the store has last confirmed at an instant. */
function validSince(confirmedAt: number): Verdict {
  const worth = {
    freshness: 'stale',
    confirmedAt: new Date(confirmedAt),
    graceUntil: null,
    pending: 0,
  } as const;
  return { verdict: 'valid', license, source: 'agent', ...worth };
}

let directory: TemporaryDirectory;
let file: string;
beforeEach(() => {
  directory = temporaryDirectory();
  file = join(directory.path, 'made', 'last-known.json');
  vi.useFakeTimers({ toFake: ['Date'], now: today });
});
afterEach(async () => {
  vi.useRealTimers();
  await directory[Symbol.asyncDispose]();
});

/** As a program that is started for each question. */
async function judge(said: Verdict, key = 'KEY'): Promise<Verdict['verdict']> {
  return (await new LastKnown({ file }).judge(key, said)).verdict;
}

it('the grace begins when the store confirmed the key, not when the agent said so', async () => {
  await judge(validSince(today - 10 * day));
  vi.setSystemTime(today + 4 * day - 1);
  expect(await judge(away)).toBe('valid');
  vi.setSystemTime(today + 4 * day);
  expect(await judge(away)).toBe('undetermined');
});

it('white space around a key makes no other key of it', async () => {
  await judge(validSince(today), ' KEY\n');
  expect(await judge(away)).toBe('valid');
});

it('a grace of 0 relies on the agent alone', async () => {
  const lastKnown = new LastKnown({ file, graceMs: 0 });
  expect((await lastKnown.judge('KEY', validSince(today))).verdict).toBe('valid');
  expect((await lastKnown.judge('KEY', away)).verdict).toBe('undetermined');
});

it('the directory that is made for the file is for this user alone', async () => {
  await judge(validSince(today));
  expect(statSync(dirname(file)).mode & 0o777).toBe(0o700);
});

it.each<[string, object, object]>([
  ['another version', { version: 2 }, {}],
  ['a time that is none', { latest: 'now' }, {}],
  ['a verdict that is none', {}, { verdict: 'perhaps' }],
  ['a license that is none', {}, { license: {} }],
  ['a confirmation that is none', {}, { confirmedAt: '2026-01-20' }],
  ['a time of saying that is none', {}, { saidAt: null }],
  ['a time of not being found that is none', {}, { notFoundSince: 'never' }],
])('a file with %s counts as empty', async (_, inFile, inEntry) => {
  await judge(validSince(today));
  const kept = JSON.parse(readFileSync(file, 'utf8')) as { keys: Record<string, object> };
  const keys = Object.fromEntries(
    Object.entries(kept.keys).map(([name, entry]) => [name, { ...entry, ...inEntry }]),
  );
  writeFileSync(file, JSON.stringify({ ...kept, keys }));
  expect(await judge(away)).toBe(Object.keys(inEntry).length === 0 ? 'valid' : 'undetermined');
  writeFileSync(file, JSON.stringify({ ...kept, keys, ...inFile }));
  expect(await judge(away)).toBe('undetermined');
});
