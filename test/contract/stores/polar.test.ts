import { globSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { expect, test } from 'vitest';
import { activatedKey } from '../../../src/domain/agent/activated-key.ts';
import type { License } from '../../../src/domain/license.ts';
import type { Outcome } from '../../../src/domain/outbox/outcome.ts';
import { ofVerdict, readVerdict } from '../../../src/stores/polar/upstream.ts';
import { validateAnswer } from '../../../src/stores/polar/wire.ts';
import { classify } from '../../../src/upstream/classification.ts';

/* Responses of Polar, each with its source. Names, addresses and ids are made up or from Polar’s documents. */

type Recorded = {
  source: string;
  expected: string;
  /** The id of the activation that was validated. */
  activation?: string;
  status: number;
  headers?: Record<string, string>;
  body: object | null;
};

const folder = join(import.meta.dirname, 'polar');
const recorded = globSync('*.json', { cwd: folder }).map(
  (file) =>
    [basename(file, '.json'), JSON.parse(readFileSync(join(folder, file), 'utf8')) as Recorded] as const,
);
const key = '1C285B2D-6CE6-4BC7-B8BE-ADB6A7E304DA';
const now = Date.parse('2026-06-01T00:00:00Z');

function outcomeOf({ status, headers = {}, body, activation }: Recorded): Outcome<License> {
  const text = body === null ? '' : JSON.stringify(body);
  const response = { type: 'answered', status, headers, text } as const;
  const storedKey = activation === undefined ? key : activatedKey(key, activation);
  const read = (object: Readonly<Record<string, unknown>>) =>
    readVerdict(object, { storedKey, conditions: null });
  const context = { dialect: ofVerdict, self: null, hidden: [], now, confirmed: now };
  return classify(response, { ...context, read, request: 'verify' });
}

test('there are responses of each kind', () => {
  const kinds = new Set(recorded.map(([, { expected }]) => expected));
  expect([...kinds].toSorted()).toEqual([
    'ambiguous',
    'closed',
    'good',
    'missing',
    'refused',
    'rejected',
    'throttled',
  ]);
});

const verdicts = recorded.filter(([, { expected }]) => ['good', 'closed'].includes(expected));

test.each(verdicts)('the response %s is understood, and replayed as it was', (_, response) => {
  const outcome = outcomeOf(response);
  if (outcome.outcome !== 'applied') throw new Error(outcome.detail);
  const { value, shows } = outcome;
  expect(value.enabled).toBe(response.expected === 'good');
  expect(shows).toBe(response.expected === 'closed' ? 'enabled' : undefined);
  const { status, body } = response;
  const answer = validateAnswer(value);
  expect(answer).toEqual({ status, body });
  // Programs that search for a text see the members in their order.
  expect(JSON.stringify(answer?.body)).toBe(JSON.stringify(body));
});

test.each(recorded.filter((each) => !verdicts.includes(each)))(
  'the response %s is no verdict about a key',
  (_, response) => {
    const outcome = outcomeOf(response);
    expect(outcome.outcome === 'not_applied' ? outcome.reason : outcome.outcome).toBe(response.expected);
  },
);

test('a limit without a body is waited for as long as Polar asks', () => {
  const [, limited] = recorded.find(([name]) => name === 'limited-empty') ?? [];
  if (limited === undefined) throw new Error('it is not recorded');
  expect(outcomeOf(limited)).toMatchObject({ reason: 'throttled', retryAfterMs: 60_000 });
});
