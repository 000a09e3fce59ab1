import { expect, test } from 'vitest';
import { eventually, startHarness, type Agent } from '../support/harness/agent-harness.ts';
import type { LogLine } from '../support/process/daemon-process.ts';
import {
  every,
  firstFew,
  hang,
  loseResponse,
  movesCounter,
  refusal,
} from '../support/harness/plain-upstream.ts';
import { tracePoints } from '../../src/domain/outbox/trace.ts';

const points: ReadonlySet<unknown> = new Set(tracePoints);

/** The log lines about the operations of a request, in order. */
function linesOf({ process: { lines } }: Agent, requestId: string): LogLine[] {
  return lines.filter(({ msg, request_id: id }) => id === requestId && points.has(msg));
}

function pointsOf(agent: Agent, requestId: string): string[] {
  return linesOf(agent, requestId).map(({ msg }) => msg ?? '');
}

test('the log follows a use by the id of its request, from the caller to the upstream', async () => {
  await using harness = await startHarness({ licenses: ['KEY'] });
  const agent = await harness.startAgent();
  await agent.learn(['KEY']);
  const answer = await agent.change('usage', 'KEY', { 'x-request-id': 'use-1' });
  expect(answer.headers['x-request-id']).toBe('use-1');
  await eventually(() => pointsOf(agent, 'use-1').includes('delivered'));

  const lines = linesOf(agent, 'use-1');
  expect(lines.map(({ msg, state }) => [msg, state])).toEqual([
    ['queued', 'pending'],
    ['sent', 'in_flight'],
    ['delivered', 'delivered'],
  ]);
  const [queued] = lines;
  for (const line of lines) {
    expect(line).toMatchObject({
      level: 'info',
      part: 'sync',
      operation: queued?.['operation'],
      license: queued?.['license'],
      kind: 'usage',
      credential: 'product:product',
    });
    expect(line).not.toHaveProperty('label');
  }
  expect(queued?.['license']).toMatch(/^[\da-f]{12}$/);
  expect(agent.process.lines).toContainEqual(
    expect.objectContaining({ msg: 'changed', request_id: 'use-1' }),
  );
  const sent = harness.upstream.ledger.filter(({ kind }) => kind === 'usage');
  expect(sent.map(({ headers }) => headers['x-request-id'])).toEqual(['use-1']);
  expect(JSON.stringify(agent.process.lines)).not.toContain('KEY');
  const shown = await agent.ask(`/admin/v1/outbox/${String(queued?.['operation'])}`);
  expect(shown).toMatchObject({ data: { request_id: 'use-1', credential: 'product:product' } });
});

test('the request id survives a kill, and a lost response is reconciled under it', async () => {
  await using harness = await startHarness({ licenses: ['KEY', 'OTHER'] });
  const before = await harness.startAgent();
  await before.learn(['KEY', 'OTHER']);
  harness.upstream.fault = firstFew(1, loseResponse, movesCounter);
  await before.change('usage', 'KEY', { 'x-request-id': 'lost' });
  await eventually(() => pointsOf(before, 'lost').includes('reconciled'));
  expect(pointsOf(before, 'lost')).toEqual(['queued', 'sent', 'uncertain', 'reconciled']);
  expect(before.process.lines).toContainEqual(
    expect.objectContaining({ msg: 'an operation was not delivered', level: 'warn', request_id: 'lost' }),
  );

  await harness.proxy.become({ kind: 'refuse' });
  await before.change('usage', 'OTHER', { 'x-request-id': 'kept' });
  const after = await harness.startAgent();
  await harness.proxy.become({ kind: 'pass' });
  await eventually(() => pointsOf(after, 'kept').includes('delivered'));
  // Probes are in the ledger, too.
  const sent = harness.upstream.ledger.findLast(movesCounter);
  expect(sent).toMatchObject({ headers: { 'x-request-id': 'kept' } });
});

test('a use that was being sent when the process was killed is logged as uncertain at the next start', async () => {
  await using harness = await startHarness({ licenses: ['KEY'] });
  const before = await harness.startAgent();
  await before.learn(['KEY']);
  harness.upstream.fault = every(hang(true), movesCounter);
  await before.change('usage', 'KEY', { 'x-request-id': 'cut' });
  await eventually(() => harness.upstream.countsOf('KEY').net === 1);
  // A killed process loses the log lines of its last moments.
  await eventually(() => pointsOf(before, 'cut').includes('sent'));
  const after = await harness.startAgent();
  await eventually(() => pointsOf(after, 'cut').includes('reconciled'));
  expect(pointsOf(after, 'cut')).toEqual(['uncertain', 'reconciled']);
  expect(linesOf(after, 'cut')[0]).toMatchObject({
    state: 'uncertain',
    license: linesOf(before, 'cut')[0]?.['license'],
  });
});

test("the log names a person's decision with the id of the original request", async () => {
  await using harness = await startHarness({ licenses: ['KEY'] });
  const agent = await harness.startAgent();
  await agent.learn(['KEY']);
  harness.upstream.fault = every(refusal(422, 'The store is closed'), movesCounter);
  await agent.change('usage', 'KEY', { 'x-request-id': 'refused' });
  await eventually(() => pointsOf(agent, 'refused').includes('dead'));
  const dead = linesOf(agent, 'refused').find(({ msg }) => msg === 'dead');
  expect(dead?.['error']).toContain('The store is closed');
  await agent.ask(`/admin/v1/outbox/${String(dead?.['operation'])}/drop`, 'post');
  await eventually(() => pointsOf(agent, 'refused').includes('dropped'));
});

test('a repeated request has its own id, and its operation keeps the id of the first request', async () => {
  await using harness = await startHarness({ licenses: ['KEY'] });
  const agent = await harness.startAgent();
  await agent.learn(['KEY']);
  const again = async (id: string): Promise<unknown> => {
    const answer = await agent.change('usage', 'KEY', { 'x-request-id': id, 'idempotency-key': 'once' });
    return answer.headers['x-request-id'];
  };
  expect([await again('first'), await again('second')]).toEqual(['first', 'second']);
  await eventually(() => pointsOf(agent, 'first').includes('delivered'));
  expect(pointsOf(agent, 'second')).toEqual([]);
  expect(harness.upstream.countsOf('KEY').net).toBe(1);
});

test('the log names a token by its label, and debug shows each request to the upstream with its duration', async () => {
  await using harness = await startHarness({ licenses: ['KEY'] });
  const agent = await harness.startAgent({}, { LATCHKEY_LOG__LEVEL: 'debug' });
  await agent.learn(['KEY']);
  const json = { scopes: ['use', 'verify'], label: 'checkout' };
  const issued = await agent.client.post('/admin/v1/tokens', { headers: agent.admin, json });
  const { token } = (issued.body as { data: { token: string } }).data;
  await agent.client.put('/api/v2/license/usage', {
    headers: { authorization: `Bearer ${token}`, 'x-request-id': 'by-token' },
    form: { license_key: 'KEY' },
  });
  await eventually(() => pointsOf(agent, 'by-token').includes('delivered'));
  for (const line of linesOf(agent, 'by-token')) {
    expect(line).toMatchObject({ label: 'checkout', credential: expect.stringMatching(/^token:/) });
  }
  const asked = agent.process.lines.filter(({ msg }) => msg === 'request to the upstream');
  const common = { level: 'debug', outcome: 'applied', status: 200, duration_ms: expect.any(Number) };
  // Probes are logged, too.
  expect(asked).toContainEqual(
    expect.objectContaining({ ...common, method: 'GET', route: '/license/verify', request_id: null }),
  );
  expect(asked.filter(({ method }) => method === 'PUT')).toEqual([
    expect.objectContaining({ ...common, route: '/license/usage', request_id: 'by-token' }),
  ]);
});
