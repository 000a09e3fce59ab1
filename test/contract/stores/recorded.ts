import { globSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { expect, test } from 'vitest';
import type { License } from '../../../src/domain/license.ts';
import type { Applied, Outcome } from '../../../src/domain/outbox/outcome.ts';
import { classify } from '../../../src/upstream/classification.ts';
import type { Dialect, RequestKind } from '../../../src/upstream/dialects.ts';
import type { JsonObject, Parsed } from '../../../src/upstream/wire.ts';

/* Responses of stores, each with its source. Names, addresses and ids are made up, or from the documents of the store. */

/** `assumed`, of some: what no document says. */
export type Recorded = {
  source: string;
  /** What it proves: `good`, `not good`, `closed` (a no that shows nothing else), or why it is no verdict about a key. */
  expected: string;
  status: number;
  headers?: Record<string, string>;
  body: JsonObject | null;
  /** The call of Lemon Squeezy. */
  call?: string;
  /** The instance or the activation that the call is about. */
  activation?: string;
};

/** In its file, a response like another one has only what differs: `as` names the other. */
function read(store: string, name: string): Recorded {
  const text = readFileSync(join(import.meta.dirname, store, `${name}.json`), 'utf8');
  const { as, ...own } = JSON.parse(text) as Recorded & { as?: string };
  return as === undefined ? own : (withChanges({ ...read(store, as) }, own) as Recorded);
}

function withChanges(before: unknown, changes: unknown): unknown {
  const isObject = (value: unknown): value is JsonObject =>
    typeof value === 'object' && value !== null && !Array.isArray(value);
  if (!isObject(before) || !isObject(changes)) return changes;
  const changed = Object.entries(changes).map(([name, value]) => [name, withChanges(before[name], value)]);
  return { ...before, ...(Object.fromEntries(changed) as object) };
}

export function recordedFrom(store: string): (readonly [name: string, Recorded])[] {
  const files = globSync('*.json', { cwd: join(import.meta.dirname, store) });
  return files.map((file) => basename(file, '.json')).map((name) => [name, read(store, name)] as const);
}

export const now: number = Date.parse('2026-06-01T00:00:00Z');

/** What a response proves to the client of its store. */
export function outcomeOf<Value>(
  { status, headers = {}, body }: Recorded,
  asked: { dialect: Dialect; request?: RequestKind; read: (body: JsonObject) => Parsed<Value> },
): Outcome<Value> {
  const text = body === null ? '' : JSON.stringify(body);
  const context = { self: null, hidden: [], now, confirmed: now, request: 'verify' as const };
  return classify({ type: 'answered', status, headers, text }, { ...context, ...asked });
}

export function appliedOf<Value>(outcome: Outcome<Value>): Applied<Value> {
  if (outcome.outcome !== 'applied') throw new Error(outcome.detail);
  return outcome;
}

const verdicts: ReadonlySet<string> = new Set(['good', 'not good', 'closed']);

/** Tests what holds at each store. `kinds`: what the responses prove. `answerOf`: what software gets. */
export function testVerdicts(
  recorded: ReturnType<typeof recordedFrom>,
  kinds: readonly string[],
  parts: {
    outcomeOf: (response: Recorded) => Outcome<License>;
    answerOf: (license: License) => { status: number; body: object } | null;
  },
): void {
  test('there are responses of each kind', () => {
    expect(new Set(recorded.map(([, { expected }]) => expected))).toEqual(new Set(kinds));
  });

  test.each(recorded.filter(([, { expected }]) => verdicts.has(expected)))(
    'the response %s is understood, and replayed as it was',
    (_, response) => {
      const { value: license, shows } = appliedOf(parts.outcomeOf(response));
      expect(license.enabled).toBe(response.expected === 'good');
      expect(shows).toBe(response.expected === 'closed' ? 'enabled' : undefined);
      const { status, body } = response;
      const answer = parts.answerOf(license);
      expect(answer).toEqual({ status, body });
      // Programs that search for a text see the members in their order.
      expect(JSON.stringify(answer?.body)).toBe(JSON.stringify(body));
    },
  );

  test.each(recorded.filter(([, { expected }]) => !verdicts.has(expected)))(
    'the response %s is no verdict about a key',
    (_, response) => {
      const outcome = parts.outcomeOf(response);
      expect(outcome.outcome === 'not_applied' ? outcome.reason : outcome.outcome).toBe(response.expected);
    },
  );
}
