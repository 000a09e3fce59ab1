import { expect, test } from 'vitest';
import { dataOf, eventually, startHarness } from '../support/harness/agent-harness.ts';
import { operate, recordIn } from '../support/app/people.ts';
import { every, firstFew, loseResponse, movesCounter, refusal } from '../support/harness/plain-upstream.ts';

test('the outbox shows changes that the upstream rejected for good, and a person decides about each', async () => {
  const keys = ['RETRIED', 'DROPPED', 'CONFIRMED'];
  await using harness = await startHarness({ licenses: keys });
  const agent = await harness.startAgent();
  await agent.learn(keys);
  harness.upstream.fault = every(refusal(422, 'The store is closed'), movesCounter);
  for (const key of keys) expect((await agent.change('usage', key)).status).toBe(200);
  await eventually(async () => (await agent.status()).outbox.dead === 3);

  const latchkey = (...argv: string[]): ReturnType<typeof operate> => operate(harness.directory, ...argv);
  expect((await latchkey('status')).out).toMatch(/^warn +3 changes were refused by the upstream +→ /m);
  const listed = JSON.parse((await latchkey('outbox', 'list', '--json')).out) as {
    operations: { id: string; license_key: string; state: string; last_error: string }[];
  };
  expect(listed.operations.map(({ license_key: key, state }) => [key, state])).toEqual(
    keys.map((key) => [key, 'dead']),
  );
  expect(listed.operations[0]?.last_error).toContain('The store is closed');
  const [retried = '', dropped = '', confirmed = ''] = listed.operations.map(({ id }) => id);

  // Nothing has changed, so the upstream rejects it again.
  expect((await latchkey('outbox', 'retry', retried)).code).toBe(0);
  await eventually(async () => {
    const [first] = await agent.operations();
    return first?.state === 'dead' && first.attempts === 2;
  });
  harness.upstream.fault = () => undefined;
  expect((await latchkey('outbox', 'retry', retried)).out).toMatch(/^state +pending$/m);
  expect((await latchkey('outbox', 'drop', dropped)).out).toMatch(/^state +dropped$/m);
  // A person who confirms has seen the use in the store, or counted it there by hand.
  harness.upstream.useElsewhere('CONFIRMED', 1);
  expect((await latchkey('outbox', 'confirm', confirmed)).out).toMatch(/^state +delivered$/m);
  await eventually(async () => (await agent.operations()).length === 0);

  expect(keys.map((key) => harness.upstream.countsOf(key).net)).toEqual([1, 0, 0]);
  expect(keys.map((key) => harness.upstream.license(key).uses)).toEqual([1, 0, 1]);
  expect((await latchkey('status')).out).not.toContain('warn');
  const late = await latchkey('outbox', 'drop', dropped);
  expect([late.code, late.err]).toEqual([1, expect.stringContaining('operation_not_open')]);
  const unknown = await latchkey('outbox', 'retry', 'nothing');
  expect([unknown.code, unknown.err]).toEqual([1, expect.stringContaining('operation_not_found')]);
  expect(recordIn(harness.directory)).toEqual([
    `outbox.retry ${retried}`,
    `outbox.retry ${retried}`,
    `outbox.drop ${dropped}`,
    `outbox.confirm ${confirmed}`,
  ]);
});

test('under on_uncertain: hold a change that may have been applied waits for a person, and other changes continue', async () => {
  const sync = { writers: 'many', on_uncertain: 'hold' };
  await using harness = await startHarness({ licenses: ['KEY'], configuration: { sync } });
  const agent = await harness.startAgent();
  await agent.learn(['KEY']);
  harness.upstream.fault = firstFew(1, loseResponse, movesCounter);
  await agent.change('usage', 'KEY');
  await eventually(async () => (await agent.status()).outbox.held === 1);
  const latchkey = (...argv: string[]): ReturnType<typeof operate> => operate(harness.directory, ...argv);
  expect((await latchkey('status')).out).toMatch(
    /^warn +1 change may have been applied: a person must decide +→ /m,
  );
  expect((await latchkey('outbox', 'list')).out).toContain('uncertain, held');

  await agent.change('usage', 'KEY');
  await eventually(async () => (await agent.operations()).length === 1);
  const [held] = await agent.operations();
  expect(held).toMatchObject({ state: 'uncertain', held: true });
  expect((await latchkey('outbox', 'confirm', held?.id ?? '')).code).toBe(0);

  expect(await agent.operations()).toEqual([]);
  expect(harness.upstream.license('KEY').uses).toBe(2);
  const seen = await agent.verify('KEY');
  expect([dataOf(seen)['uses'], seen.headers['latchkey-pending']]).toEqual([2, '0']);
});

test('one command decides about all changes of a state, and about no other', async () => {
  const keys = ['FIRST', 'SECOND', 'HELD'];
  const sync = { writers: 'many', on_uncertain: 'hold' };
  await using harness = await startHarness({ licenses: keys, configuration: { sync } });
  const agent = await harness.startAgent();
  await agent.learn(keys);
  harness.upstream.fault = firstFew(1, loseResponse, movesCounter);
  await agent.change('usage', 'HELD');
  await eventually(async () => (await agent.status()).outbox.held === 1);
  harness.upstream.fault = every(refusal(422, 'The store is closed'), movesCounter);
  for (const key of ['FIRST', 'SECOND', 'SECOND']) await agent.change('usage', key);
  await eventually(async () => (await agent.status()).outbox.dead === 3);

  const latchkey = (...argv: string[]): ReturnType<typeof operate> => operate(harness.directory, ...argv);
  const unsaid = await latchkey('outbox', 'decide', 'drop');
  expect([unsaid.code, unsaid.err]).toEqual([2, expect.stringContaining('Say which changes')]);
  const dropped = await latchkey('outbox', 'decide', 'drop', '--key', 'FIRST', '--json');
  expect(JSON.parse(dropped.out)).toEqual({ decided: 1, not_possible: 0, refused: [] });
  harness.upstream.fault = () => undefined;
  expect((await latchkey('outbox', 'decide', 'retry', '--state', 'dead')).out).toBe('retry: 2 changes.\n');
  await eventually(async () => (await agent.operations()).length === 1);
  expect(keys.map((key) => harness.upstream.countsOf(key).net)).toEqual([0, 2, 1]);
  expect((await latchkey('outbox', 'decide', 'confirm', '--state', 'delivered')).out).toBe(
    'confirm: 0 changes.\nNot possible for 2 changes.\n',
  );
  expect((await latchkey('outbox', 'decide', 'confirm', '--all')).out).toBe('confirm: 1 change.\n');
  expect(await agent.operations()).toEqual([]);
});
