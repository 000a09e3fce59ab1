import { globSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { expect, test } from 'vitest';
import { activatedKey } from '../../../src/domain/agent/activated-key.ts';
import type { Outcome } from '../../../src/domain/outbox/outcome.ts';
import { received } from '../../../src/stores/lemonsqueezy/upstream.ts';
import {
  deactivateAnswer,
  readActivated,
  readDeactivated,
  readInstances,
  readValidated,
  validateAnswer,
} from '../../../src/stores/lemonsqueezy/wire.ts';
import { classify } from '../../../src/upstream/classification.ts';
import type { JsonObject, Parsed } from '../../../src/upstream/wire.ts';

/* Responses of Lemon Squeezy, each with its source. Names and addresses are made up. `assumed`: what no document says. */

type Recorded = {
  source: string;
  call: 'validate' | 'activate' | 'deactivate' | 'instances';
  /** The instance that the call is about. */
  instance?: string;
  expected: string;
  status: number;
  body: JsonObject;
};

const folder = join(import.meta.dirname, 'lemonsqueezy');
const recorded = globSync('*.json', { cwd: folder }).map(
  (file) =>
    [basename(file, '.json'), JSON.parse(readFileSync(join(folder, file), 'utf8')) as Recorded] as const,
);
const key = '38b1460a-5104-4067-a91d-77b872934d51';
const now = Date.parse('2026-06-01T00:00:00Z');

function ofExpected(...expected: string[]): [string, Recorded][] {
  return recorded.flatMap(([name, each]) => (expected.includes(each.expected) ? [[name, each]] : []));
}

function outcomeOf<Value>(
  { call, status, body }: Recorded,
  read: (body: JsonObject) => Parsed<Value>,
): Outcome<Value> {
  const requests = {
    validate: 'verify',
    activate: 'activate',
    deactivate: 'change',
    instances: 'ask',
  } as const;
  const response = { type: 'answered', status, headers: {}, text: JSON.stringify(body) } as const;
  const context = { dialect: received, self: null, hidden: [], now, confirmed: now };
  return classify(response, { ...context, read, request: requests[call] });
}

function aboutOf({ instance }: Recorded): { storedKey: string; now: number } {
  return { storedKey: instance === undefined ? key : activatedKey(key, instance), now };
}

function valueOf<Value>(outcome: Outcome<Value>): Value {
  if (outcome.outcome !== 'applied') throw new Error(outcome.detail);
  return outcome.value;
}

test('there are responses of each kind', () => {
  const kinds = new Set(recorded.map(([, { expected }]) => expected));
  expect([...kinds].toSorted()).toEqual([
    'activated',
    'ambiguous',
    'deactivated',
    'good',
    'listed',
    'missing',
    'not good',
    'refused',
    'rejected',
    'throttled',
  ]);
});

test.each(ofExpected('good', 'not good'))(
  'the response %s is understood, and replayed as it was',
  (_, it) => {
    const license = valueOf(outcomeOf(it, (body) => readValidated(body, aboutOf(it), it.status)));
    expect(license.enabled).toBe(it.expected === 'good');
    const { status, body } = it;
    expect(validateAnswer(license)).toEqual({ status, body });
    // Programs that search for a text see the members in their order.
    expect(JSON.stringify(validateAnswer(license)?.body)).toBe(JSON.stringify(body));
  },
);

test.each(ofExpected('activated'))('the response %s shows an instance and its license key', (_, it) => {
  const { activationId, licenses } = valueOf(outcomeOf(it, (body) => readActivated(body, aboutOf(it))));
  expect(activationId).toBe((it.body['instance'] as { id: string }).id);
  const [own, bare] = licenses;
  expect([own?.licenseKey, bare?.licenseKey]).toEqual([activatedKey(key, activationId), key]);
  const { activated: _activated, ...document } = it.body;
  if (own === undefined || bare === undefined) throw new Error('there are two licenses');
  expect(validateAnswer(own)).toEqual({ status: 200, body: { valid: true, ...document } });
  expect(validateAnswer(bare)).toEqual({ status: 200, body: { valid: true, ...document, instance: null } });
});

test.each(ofExpected('refused'))('the refusal %s is an answer that the caller gets', (_, it) => {
  expect(valueOf(outcomeOf(it, (body) => ({ value: body })))).toEqual(it.body);
});

test.each(ofExpected('deactivated'))('after the response %s the instance is gone', (_, it) => {
  const license = valueOf(outcomeOf(it, (body) => readDeactivated(body, aboutOf(it))));
  expect(license.enabled).toBe(false);
  expect(validateAnswer(license)).toMatchObject({ status: 404, body: { valid: false } });
});

test.each(ofExpected('deactivated').filter(([, { status }]) => status === 200))(
  'the response %s to a deactivate is replayed as it was',
  (_, it) => {
    const license = valueOf(outcomeOf(it, (body) => readDeactivated(body, aboutOf(it))));
    expect(deactivateAnswer(license)).toEqual({ status: 200, body: it.body });
  },
);

test.each(ofExpected('listed'))('the list %s shows instances', (_, it) => {
  expect(valueOf(outcomeOf(it, readInstances))).toEqual([
    {
      id: 'f70a79fa-6054-433e-9c1b-6075344292e4',
      name: 'example.com',
      createdAt: Date.parse('2022-11-14T11:45:39Z'),
    },
  ]);
});

test.each(ofExpected('missing', 'throttled', 'rejected', 'ambiguous'))(
  'the response %s is no verdict about a key',
  (_, it) => {
    const outcome = outcomeOf(it, (body) => readValidated(body, aboutOf(it), it.status));
    expect(outcome.outcome === 'not_applied' ? outcome.reason : outcome.outcome).toBe(it.expected);
  },
);
