import { expect, test } from 'vitest';
import { codeOf, credentials, startHarness } from '../support/harness/agent-harness.ts';
import type { HttpResponse } from '../support/network/raw-http.ts';

test("guesses of license keys wait and do not use up the upstream's rate, while known keys are answered", async () => {
  await using harness = await startHarness({
    licenses: ['KNOWN', 'NEW'],
    // At most half as many lookups wait as connections are allowed.
    configuration: { limits: { misses: 1, connections: 44 }, sync: { rate: 1_000 } },
  });
  const agent = await harness.startAgent();
  await agent.learn(['KNOWN']);
  const startedAt = performance.now();
  // Ten lookups are sent at once, 22 wait, and the others are refused.
  const asked = Array.from({ length: 40 }, (_, index) => agent.verify(`GUESS-${index}`));
  const answers: readonly HttpResponse[] = await Promise.all(asked);
  const passedS = (performance.now() - startedAt) / 1000;
  const guesses = harness.upstream.ledger.filter(({ licenseKey }) => licenseKey?.startsWith('GUESS'));
  const unknown = answers.filter((answer) => codeOf(answer) === 'license_not_found');
  const limited = answers.filter((answer) => codeOf(answer) === 'rate_limited');
  expect(guesses).toHaveLength(unknown.length);
  expect(unknown.length + limited.length).toBe(answers.length);
  expect(limited.length).toBeGreaterThan(0);
  // A burst of ten, plus one for each second that passed.
  expect(unknown.length).toBeLessThanOrEqual(10 + passedS + 1);
  expect(Number(limited[0]?.headers['retry-after'])).toBeGreaterThanOrEqual(1);
  expect((await agent.verify('KNOWN')).status).toBe(200);
  expect((await agent.change('usage', 'KNOWN')).status).toBe(200);
  // Another credential has its own limit, and is answered in turn.
  expect((await agent.verify('NEW', { ...agent.admin, 'product-secret-key': '' })).status).toBe(200);
  expect(codeOf(await agent.verify('GUESS-LATER'))).toBe('license_not_found');
});

test('87 license keys that are verified for the first time at once are all answered 200', async () => {
  const licenses = Array.from({ length: 87 }, (_, index) => `NEW-${index}`);
  await using harness = await startHarness({ licenses, configuration: { sync: { rate: 1_000 } } });
  const agent = await harness.startAgent();
  const answers = await Promise.all(licenses.map((licenseKey) => agent.verify(licenseKey)));
  expect(answers.map(({ status }) => status)).toEqual(Array(87).fill(200));
});

test('the rate limit of a credential counts all listeners together, and a reload changes it', async () => {
  await using harness = await startHarness({ licenses: ['KEY'], configuration: { limits: { rate: 0.001 } } });
  const agent = await harness.startAgent();
  const statuses: number[] = [];
  for (let count = 0; count < 4; count += 1) statuses.push((await agent.verify('KEY')).status);
  expect(statuses.slice(1)).toEqual([429, 429, 429]);
  expect((await agent.client.get('/livez')).status).toBe(200);
  await harness.reconfigure({ limits: { rate: 0 } });
  for (let count = 0; count < 20; count += 1) expect((await agent.verify('KEY')).status).toBe(200);
});

test('wrong credentials are answered 429 after a few attempts, and right credentials are always accepted', async () => {
  await using harness = await startHarness({
    licenses: ['KEY'],
    configuration: { limits: { failed_rate: 0.001 } },
  });
  const agent = await harness.startAgent();
  const wrong: number[] = [];
  for (let count = 0; count < 20; count += 1) {
    wrong.push((await agent.verify('KEY', { 'product-secret-key': `wrong-${count}` })).status);
    expect((await agent.verify('KEY', credentials)).status).toBe(200);
  }
  expect(wrong[0]).toBe(401);
  expect(new Set(wrong)).toEqual(new Set([401, 429]));
});
