import { expect, test } from 'vitest';
import { CallerConnection } from '../support/network/caller-connection.ts';
import { dataOf, eventually, secret, startHarness } from '../support/harness/agent-harness.ts';

test('a caller that waits for the upstream learns that it has confirmed the use', async () => {
  await using harness = await startHarness({ licenses: ['KEY'] });
  const agent = await harness.startAgent();
  await agent.learn(['KEY']);
  const startedAt = performance.now();
  const use = await agent.change('usage', 'KEY', { prefer: 'wait=30' });
  expect([use.status, dataOf(use)['uses'], use.headers['latchkey-pending']]).toEqual([200, 1, '0']);
  expect(performance.now() - startedAt).toBeLessThan(30_000);
  expect(harness.upstream.countsOf('KEY').net).toBe(1);
});

test('a caller that waits in vain is answered after the requested time, and the use is kept', async () => {
  await using harness = await startHarness({ licenses: ['KEY'] });
  const agent = await harness.startAgent();
  await agent.learn(['KEY']);
  await harness.proxy.become({ kind: 'refuse' });
  const startedAt = performance.now();
  const use = await agent.change('usage', 'KEY', { prefer: 'wait=1', 'idempotency-key': 'k' });
  const waitedMs = performance.now() - startedAt;
  expect([use.status, dataOf(use)['uses'], use.headers['latchkey-pending']]).toEqual([200, 1, '1']);
  expect(waitedMs).toBeGreaterThan(950);
  expect(waitedMs).toBeLessThan(30_000);
  await harness.proxy.become({ kind: 'pass' });
  const again = await agent.change('usage', 'KEY', { prefer: 'wait=30', 'idempotency-key': 'k' });
  expect([again.status, again.body]).toEqual([200, use.body]);
  await agent.atRest();
  expect(harness.upstream.countsOf('KEY').net).toBe(1);
});

test('callers that wait do not block other callers, and their changes are kept', async () => {
  await using harness = await startHarness({
    licenses: ['KEY'],
    configuration: { limits: { connections: 8 } },
  });
  const agent = await harness.startAgent();
  await agent.learn(['KEY']);
  await harness.proxy.become({ kind: 'refuse' });
  const body = 'license_key=KEY';
  const use =
    `PUT /api/v2/license/usage HTTP/1.1\r\nHost: localhost\r\nproduct-secret-key: ${secret}\r\n` +
    'Prefer: wait=30\r\nContent-Type: application/x-www-form-urlencoded\r\n' +
    `Content-Length: ${body.length}\r\n\r\n${body}`;
  const waiting: Promise<string>[] = [];
  for (let count = 0; count < 12; count += 1) {
    const connection = await CallerConnection.open({ tcp: agent.process.tcp });
    waiting.push(connection.ask(use));
    // The server would close an idle connection to make room for the next one.
    await eventually(async () => (await agent.status()).outbox.pending > count);
  }
  for (let count = 0; count < 12; count += 1) {
    const caller = await CallerConnection.open({ tcp: agent.process.tcp });
    const request = `GET /api/v2/license/verify?${body} HTTP/1.1\r\nHost: localhost\r\nproduct-secret-key: ${secret}\r\n\r\n`;
    expect(await caller.ask(request)).toContain(' 200 ');
  }
  await harness.proxy.become({ kind: 'pass' });
  for (const head of waiting) expect(await head).toContain(' 200 ');
  await agent.atRest();
  expect(harness.upstream.countsOf('KEY').net).toBe(12);
});
