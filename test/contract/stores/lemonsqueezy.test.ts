import { expect, test } from 'vitest';
import { activatedKey } from '../../../src/domain/agent/activated-key.ts';
import type { Outcome } from '../../../src/domain/outbox/outcome.ts';
import { received } from '../../../src/stores/lemonsqueezy/upstream.ts';
import {
  type About,
  deactivateAnswer,
  readActivated,
  readDeactivated,
  readInstances,
  readValidated,
  validateAnswer,
} from '../../../src/stores/lemonsqueezy/wire.ts';
import type { JsonObject, Parsed } from '../../../src/upstream/wire.ts';
import { appliedOf, now, outcomeOf, type Recorded, recordedFrom, testVerdicts } from './recorded.ts';

const key = '38b1460a-5104-4067-a91d-77b872934d51';
const recorded = recordedFrom('lemonsqueezy');

const requests = {
  validate: 'verify',
  activate: 'activate',
  deactivate: 'change',
  instances: 'ask',
} as const;

type Call = keyof typeof requests;

function responsesTo(call: Call): typeof recorded {
  return recorded.filter(([, each]) => each.call === call);
}

function outcomeOfCall<Value>(
  response: Recorded,
  read: (body: JsonObject, about: About) => Parsed<Value>,
): Outcome<Value> {
  const { activation, call } = response;
  const storedKey = activation === undefined ? key : activatedKey(key, activation);
  return outcomeOf(response, {
    dialect: received,
    request: requests[call as Call],
    read: (body) => read(body, { storedKey, now }),
  });
}

const kinds = ['good', 'not good', 'closed', 'missing', 'rejected', 'throttled', 'ambiguous'];
testVerdicts(responsesTo('validate'), kinds, {
  outcomeOf: (response) => outcomeOfCall(response, (...sent) => readValidated(...sent, response.status)),
  answerOf: validateAnswer,
});

const [made, refused] = ['activated', 'refused'].map((expected) =>
  responsesTo('activate').filter(([, each]) => each.expected === expected),
) as [typeof recorded, typeof recorded];

test.each(made)('the response %s shows an instance and its license key', (_, response) => {
  const { activationId, licenses } = appliedOf(outcomeOfCall(response, readActivated)).value;
  const { activated: _activated, ...document } = response.body ?? {};
  expect(activationId).toBe((document['instance'] as { id: string }).id);
  const [own, bare] = licenses;
  expect([own?.licenseKey, bare?.licenseKey]).toEqual([activatedKey(key, activationId), key]);
  if (own === undefined || bare === undefined) throw new Error('there are two licenses');
  expect(validateAnswer(own)).toEqual({ status: 200, body: { valid: true, ...document } });
  expect(validateAnswer(bare)).toEqual({ status: 200, body: { valid: true, ...document, instance: null } });
});

test.each(refused)('the refusal %s is an answer that the caller gets', (_, response) => {
  expect(appliedOf(outcomeOfCall(response, (value) => ({ value }))).value).toEqual(response.body);
});

test.each(responsesTo('deactivate'))('after the response %s the instance is gone', (_, response) => {
  const { value: license } = appliedOf(outcomeOfCall(response, readDeactivated));
  expect(license.enabled).toBe(false);
  expect(validateAnswer(license)).toMatchObject({ status: 404, body: { valid: false } });
});

test.each(responsesTo('deactivate').filter(([, { status }]) => status === 200))(
  'the response %s to a deactivate is replayed as it was',
  (_, response) => {
    const { value: license } = appliedOf(outcomeOfCall(response, readDeactivated));
    expect(deactivateAnswer(license)).toEqual({ status: 200, body: response.body });
  },
);

test.each(responsesTo('instances'))('the list %s shows instances', (_, response) => {
  expect(appliedOf(outcomeOfCall(response, readInstances)).value).toEqual([
    {
      id: 'f70a79fa-6054-433e-9c1b-6075344292e4',
      name: 'example.com',
      createdAt: Date.parse('2022-11-14T11:45:39Z'),
    },
  ]);
});
