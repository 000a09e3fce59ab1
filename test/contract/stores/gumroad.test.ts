import { globSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { expect, test } from 'vitest';
import type { Outcome } from '../../../src/domain/outbox/outcome.ts';
import type { License } from '../../../src/domain/license.ts';
import { received } from '../../../src/stores/gumroad/upstream.ts';
import { readLicense, verifyAnswer } from '../../../src/stores/gumroad/wire.ts';
import { classify } from '../../../src/upstream/classification.ts';

/* Responses of Gumroad, each with its source. Names, addresses and ids are made up. */

type Recorded = { source: string; expected: string; status: number; body: object };

const folder = join(import.meta.dirname, 'gumroad');
const recorded = globSync('*.json', { cwd: folder }).map(
  (file) =>
    [basename(file, '.json'), JSON.parse(readFileSync(join(folder, file), 'utf8')) as Recorded] as const,
);
const key = '85DB562A-C11D4B06-A2335A6B-8C079166';
const now = Date.parse('2026-06-01T00:00:00Z');

function outcomeOf({ status, body }: Recorded): Outcome<License> {
  const response = { type: 'answered', status, headers: {}, text: JSON.stringify(body) } as const;
  const read = (object: Readonly<Record<string, unknown>>) => readLicense(object, key, now);
  const context = { dialect: received, self: null, hidden: [], now, confirmed: now };
  return classify(response, { ...context, read, request: 'verify' });
}

test('there are responses of each kind', () => {
  const kinds = new Set(recorded.map(([, { expected }]) => expected));
  expect([...kinds].toSorted()).toEqual(['ambiguous', 'closed', 'good', 'missing', 'not good', 'rejected']);
});

const verdicts = recorded.filter(([, { expected }]) => ['good', 'not good', 'closed'].includes(expected));

test.each(verdicts)('the response %s is understood, and replayed as it was', (_, response) => {
  const outcome = outcomeOf(response);
  if (outcome.outcome !== 'applied') throw new Error(outcome.detail);
  expect(outcome.value.enabled).toBe(response.expected === 'good');
  expect(outcome.shows).toBe(response.expected === 'closed' ? 'enabled' : undefined);
  const { status, body } = response;
  expect(verifyAnswer(outcome.value, now)).toEqual({ status, body });
  // Programs that search for a text see the members in their order.
  expect(JSON.stringify(verifyAnswer(outcome.value, now)?.body)).toBe(JSON.stringify(body));
});

test.each(recorded.filter((each) => !verdicts.includes(each)))(
  'the response %s is no verdict about a key',
  (_, response) => {
    const outcome = outcomeOf(response);
    expect(outcome.outcome === 'not_applied' ? outcome.reason : outcome.outcome).toBe(response.expected);
  },
);
