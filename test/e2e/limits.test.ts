import { expect, test } from 'vitest';
import { codeOf, credentials, eventually, setStage } from '../support/stage/agent-stage.ts';
import type { HttpAnswer } from '../support/network/raw-http.ts';

test('who guesses keys cannot spend the rate of the upstream; known keys go on', async () => {
  await using stage = await setStage({
    licenses: ['KNOWN', 'NEW'],
    configuration: { limits: { misses: 0.5 } },
  });
  const agent = await stage.startAgent();
  await agent.learn(['KNOWN']);
  const answers: HttpAnswer[] = [];
  const startedAt = performance.now();
  for (let guess = 0; guess < 40; guess += 1) answers.push(await agent.verify(`GUESS-${guess}`));
  const passedS = (performance.now() - startedAt) / 1000;
  const guesses = stage.upstream.ledger.filter(({ licenseKey }) => licenseKey?.startsWith('GUESS'));
  const unknown = answers.filter((answer) => codeOf(answer) === 'license_not_found');
  const limited = answers.filter((answer) => codeOf(answer) === 'rate_limited');
  expect(guesses).toHaveLength(unknown.length);
  expect(unknown.length + limited.length).toBe(answers.length);
  expect(limited.length).toBeGreaterThan(0);
  // As many as come in the time that it took, after a burst of ten seconds' worth.
  expect(unknown.length).toBeLessThanOrEqual(5 + 0.5 * passedS);
  expect(Number(limited[0]?.headers['retry-after'])).toBeGreaterThanOrEqual(1);
  expect((await agent.verify('KNOWN')).status).toBe(200);
  expect((await agent.change('usage', 'KNOWN')).status).toBe(200);
  // Another credential is not slowed, and this one is let go on after a while.
  expect((await agent.verify('NEW', { ...agent.admin, 'product-secret-key': '' })).status).toBe(200);
  await eventually(async () => codeOf(await agent.verify('GUESS-LATER')) === 'license_not_found');
});

test('the rate of a credential holds over all listeners, and a reload changes it', async () => {
  await using stage = await setStage({ licenses: ['KEY'], configuration: { limits: { rate: 0.001 } } });
  const agent = await stage.startAgent();
  const statuses: number[] = [];
  for (let count = 0; count < 4; count += 1) statuses.push((await agent.verify('KEY')).status);
  expect(statuses.slice(1)).toEqual([429, 429, 429]);
  expect((await agent.client.get('/livez')).status).toBe(200);
  await stage.reconfigure({ limits: { rate: 0 } });
  for (let count = 0; count < 20; count += 1) expect((await agent.verify('KEY')).status).toBe(200);
});

test('wrong credentials are answered 429 after a few, right ones always as they are', async () => {
  await using stage = await setStage({
    licenses: ['KEY'],
    configuration: { limits: { failed_rate: 0.001 } },
  });
  const agent = await stage.startAgent();
  const wrong: number[] = [];
  for (let count = 0; count < 20; count += 1) {
    wrong.push((await agent.verify('KEY', { 'product-secret-key': `wrong-${count}` })).status);
    expect((await agent.verify('KEY', credentials)).status).toBe(200);
  }
  expect(wrong[0]).toBe(401);
  expect(new Set(wrong)).toEqual(new Set([401, 429]));
});
