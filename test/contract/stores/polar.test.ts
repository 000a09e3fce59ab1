import { expect, test } from 'vitest';
import { activatedKey } from '../../../src/domain/agent/activated-key.ts';
import type { License } from '../../../src/domain/license.ts';
import type { Outcome } from '../../../src/domain/outbox/outcome.ts';
import { ofVerdict, readVerdict } from '../../../src/stores/polar/upstream.ts';
import { validateAnswer } from '../../../src/stores/polar/wire.ts';
import { outcomeOf, type Recorded, recordedFrom, testVerdicts } from './recorded.ts';

const key = '1C285B2D-6CE6-4BC7-B8BE-ADB6A7E304DA';
const recorded = recordedFrom('polar');

function verdictOf(response: Recorded): Outcome<License> {
  const { activation } = response;
  const storedKey = activation === undefined ? key : activatedKey(key, activation);
  return outcomeOf(response, {
    dialect: ofVerdict,
    read: (body) => readVerdict(body, { storedKey, conditions: null }),
  });
}

testVerdicts(recorded, ['good', 'closed', 'missing', 'refused', 'rejected', 'throttled', 'ambiguous'], {
  outcomeOf: verdictOf,
  answerOf: validateAnswer,
});

test('a limit without a body is waited for as long as Polar asks', () => {
  const [, limited] = recorded.find(([name]) => name === 'limited-empty') ?? [];
  if (limited === undefined) throw new Error('it is not recorded');
  expect(verdictOf(limited)).toMatchObject({ reason: 'throttled', retryAfterMs: 60_000 });
});
