import { expect, test } from 'vitest';
import { formatUnconfirmed } from '../../src/cli/commands/license-view.ts';
import type { OperationObject } from '../../src/wire/operation.ts';

const change = (kind: OperationObject['kind'], more: Partial<OperationObject> = {}): OperationObject => ({
  id: 'a',
  kind,
  amount: 1,
  license_key: 'K',
  subject: 'K',
  state: 'pending',
  held: false,
  attempts: 0,
  base_uses: null,
  created_at: '2026-03-01T12:00:00+00:00',
  request_id: null,
  credential: null,
  next_at: null,
  last_error: null,
  ...more,
});

const say = (...changes: OperationObject[]): string =>
  formatUnconfirmed(changes, (words) => `latchkey ${words}`).join('\n');

test.each<[string, OperationObject[], string]>([
  ['one use', [change('usage')], 'Recorded here, not confirmed by the store yet: 1 change of the count.'],
  [
    'two uses, one in flight',
    [change('usage'), change('decrease', { state: 'in_flight' })],
    'Recorded here, not confirmed by the store yet: 2 changes of the count.',
  ],
  [
    'an enable',
    [change('enable')],
    'The enable is recorded and waits for the store. The key does not change here until the store agrees.',
  ],
  [
    'a disable',
    [change('disable')],
    'The key is disabled here already. The change is sent to the store as soon as possible.',
  ],
  [
    'a held enable',
    [change('enable', { state: 'uncertain', held: true })],
    'A change (enable) may have been applied and waits for your decision: latchkey outbox show a',
  ],
  [
    'a dead use',
    [change('usage', { state: 'dead' })],
    'A change (usage) was not applied and waits for your decision: latchkey outbox show a',
  ],
  ['nothing', [], ''],
])('the unconfirmed changes are described: %s', (_name, changes, words) => {
  expect(say(...changes)).toBe(words);
});

test.for([
  [5, '2 more changes wait'],
  [4, '1 more change waits'],
] as const)('of %i changes that wait for a decision, only three are named', ([length, more]) => {
  const said = say(...Array.from({ length }, () => change('usage', { state: 'conflicted' })));
  expect(said.split('\n')).toHaveLength(4);
  expect(said).toContain(`${more} for your decision: latchkey outbox list`);
});
