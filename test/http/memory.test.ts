import { expect, test } from 'vitest';
import { Memory, type ReadyAnswer } from '../../src/http/memory.ts';
import type { Grant } from '../../src/service/access/credential.ts';

/** The answer about a license key. */
function answerAbout(licenseKey: string): ReadyAnswer {
  const repeat = { licenseKey, confirmedAt: null, since: 0, until: Infinity, repeated: () => undefined };
  return { headers: [], body: licenseKey, repeat };
}

/** Asks a question about a license key as the server does; gives whether it was answered from memory. */
function ask(memory: Memory, licenseKey: string): boolean {
  if (isKnown(memory, licenseKey)) return true;
  memory.keep(`verify ${licenseKey}`, answerAbout(licenseKey), memory.moment);
  return false;
}

function isKnown(memory: Memory, licenseKey: string): boolean {
  return memory.answerTo(`verify ${licenseKey}`, 0) !== null;
}

test('what is asked again is answered from memory from the third time on', () => {
  const memory = new Memory();
  expect([ask(memory, 'KEY'), ask(memory, 'KEY'), ask(memory, 'KEY')]).toEqual([false, false, true]);
  expect(ask(memory, 'OTHER')).toBe(false);
});

test('what was read before something was forgotten is not remembered', () => {
  const memory = new Memory();
  const before = memory.moment;
  memory.forget([{ licenseKey: 'OTHER' }]);
  for (let time = 0; time < 2; time += 1) memory.keep('verify KEY', answerAbout('KEY'), before);
  expect(isKnown(memory, 'KEY')).toBe(false);
});

test('nor is a credential that something was forgotten of while it was looked for', async () => {
  const memory = new Memory();
  const principal = { credential: 'token:1', scopes: [], isOperator: false } as const;
  const grant = { principal: { ...principal, reach: { accountId: 'default', productKey: null } } };
  const found = Promise.withResolvers<Grant>();
  const credentials = memory.remembering({ find: () => found.promise, use: () => null });
  const sent = { kind: 'bearer', digest: 'd' } as const;
  const finding = credentials.find(sent);
  memory.forget(['credentials']);
  found.resolve({ ...grant, token: null, endsAt: null });
  expect(await finding).toMatchObject(grant);
  expect(memory.grantOf(sent)).toBeNull();
  await credentials.find(sent);
  expect(memory.grantOf(sent)).toMatchObject(grant);
});

test('an answer is repeated from its first instant to its last', () => {
  const memory = new Memory();
  const ready = answerAbout('KEY');
  const lasting = { ...ready, repeat: { ...ready.repeat, since: 10, until: 20 } };
  for (let time = 0; time < 2; time += 1) memory.keep('verify KEY', lasting, memory.moment);
  const known = [9, 10, 20, 21].map((now) => memory.answerTo('verify KEY', now) !== null);
  expect(known).toEqual([false, true, true, false]);
});

test('a question of more than a thousand characters takes no memory', () => {
  const memory = new Memory();
  const [long, longer] = ['q'.repeat(1_000), 'q'.repeat(1_001)];
  for (const question of [long, longer, long, longer]) {
    memory.keep(question, answerAbout('KEY'), memory.moment);
  }
  expect([long, longer].map((question) => memory.answerTo(question, 0) !== null)).toEqual([true, false]);
});

test('who asks for a hundred thousand keys, each once, drives out nothing that others repeat', () => {
  const memory = new Memory();
  const repeated = Array.from({ length: 5_000 }, (_, index) => `REPEATED-${index}`);
  for (const licenseKey of [...repeated, ...repeated]) ask(memory, licenseKey);
  for (let index = 0; index < 100_000; index += 1) ask(memory, `ONCE-${index}`);
  expect(repeated.filter((licenseKey) => isKnown(memory, licenseKey))).toHaveLength(5_000);
});

test('of keys that were each asked for once, next to none take memory', () => {
  const memory = new Memory();
  const keys = Array.from({ length: 100_000 }, (_, index) => `ONCE-${index}`);
  for (const licenseKey of keys) ask(memory, licenseKey);
  expect(keys.filter((licenseKey) => isKnown(memory, licenseKey)).length).toBeLessThan(100);
});

test('of ten thousand keys that are asked for in turn, all are answered from memory in the third round', () => {
  const memory = new Memory();
  const keys = Array.from({ length: 10_000 }, (_, index) => `KEY-${index}`);
  for (const licenseKey of [...keys, ...keys]) ask(memory, licenseKey);
  expect(keys.filter((licenseKey) => ask(memory, licenseKey))).toHaveLength(10_000);
});

test.each([
  ['that license', [{ licenseKey: 'KEY' }], []],
  ['another license', [{ licenseKey: 'OTHER' }], ['KEY']],
  ['anything', ['anything'], []],
  ['credentials', ['credentials'], ['KEY']],
  ['credentials, and then that license', ['credentials', { licenseKey: 'KEY' }], []],
] as const)('after a commit that has changed %s, memory knows %j: %j', (_, changes, known) => {
  const memory = new Memory();
  for (let time = 0; time < 2; time += 1) ask(memory, 'KEY');
  memory.forget(changes);
  expect(['KEY'].filter((licenseKey) => isKnown(memory, licenseKey))).toEqual(known);
});
