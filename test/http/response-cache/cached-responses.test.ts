import { expect, test } from 'vitest';
import { CachedResponses, type CachedResponse } from '../../../src/http/response-cache/cached-responses.ts';
import { lasting } from '../../../src/service/access/credential.ts';
import { adminPrincipal } from './admin-principal.ts';

/** The response about a license key, which is also its body. */
function responseOf(licenseKey: string, from = 0, until = Infinity): CachedResponse {
  const cacheable = { licenseKey, confirmedAt: null, since: from, until, onServed: () => undefined };
  return {
    headers: [],
    body: licenseKey,
    route: '/',
    knownCredential: lasting(adminPrincipal),
    cacheable,
  };
}

function isCached(responses: CachedResponses, licenseKey: string): boolean {
  return responses.get(`verify ${licenseKey}`, 0) !== null;
}

/** Requests a license key as a client does, and returns whether the cache answered. */
function request(responses: CachedResponses, licenseKey: string): boolean {
  if (isCached(responses, licenseKey)) return true;
  responses.set(`verify ${licenseKey}`, licenseKey, responseOf(licenseKey), responses.generation);
  return false;
}

test('a response is cached from its second request on', () => {
  const responses = new CachedResponses();
  const requests = ['KEY', 'KEY', 'KEY', 'OTHER'];
  expect(requests.map((licenseKey) => request(responses, licenseKey))).toEqual([false, false, true, false]);
});

test('a response that was read before an invalidation is not cached', () => {
  const responses = new CachedResponses();
  const before = responses.generation;
  responses.invalidate([{ licenseKey: 'OTHER' }]);
  for (let time = 0; time < 2; time += 1) responses.set('verify KEY', 'KEY', responseOf('KEY'), before);
  expect(isCached(responses, 'KEY')).toBe(false);
});

test('a cached response is valid from its first instant to its last', () => {
  const responses = new CachedResponses();
  const response = responseOf('KEY', 10, 20);
  for (let time = 0; time < 2; time += 1) responses.set('verify KEY', 'KEY', response, responses.generation);
  const valid = [9, 10, 20, 21].map((now) => responses.get('verify KEY', now) !== null);
  expect(valid).toEqual([false, true, true, false]);
});

test('a response to a target of more than a thousand characters is not cached', () => {
  const responses = new CachedResponses();
  const targets = ['q'.repeat(1_000), 'q'.repeat(1_001)];
  for (const target of [...targets, ...targets]) {
    responses.set(target, target, responseOf('KEY'), responses.generation);
  }
  expect(targets.map((target) => responses.get(target, 0) !== null)).toEqual([true, false]);
});

test('a client that requests 100,000 keys once each evicts no response that others repeat', () => {
  const responses = new CachedResponses();
  const repeated = Array.from({ length: 5_000 }, (_, index) => `REPEATED-${index}`);
  for (const licenseKey of [...repeated, ...repeated]) request(responses, licenseKey);
  for (let index = 0; index < 100_000; index += 1) request(responses, `ONCE-${index}`);
  expect(repeated.filter((licenseKey) => isCached(responses, licenseKey))).toHaveLength(5_000);
});

test('hardly any response to a key that was requested once is cached', () => {
  const responses = new CachedResponses();
  const keys = Array.from({ length: 100_000 }, (_, index) => `ONCE-${index}`);
  for (const licenseKey of keys) request(responses, licenseKey);
  expect(keys.filter((licenseKey) => isCached(responses, licenseKey)).length).toBeLessThan(100);
});

test('all responses to 10,000 keys that are requested in turn come from the cache in the third round', () => {
  const responses = new CachedResponses();
  const keys = Array.from({ length: 10_000 }, (_, index) => `KEY-${index}`);
  for (const licenseKey of [...keys, ...keys]) request(responses, licenseKey);
  expect(keys.filter((licenseKey) => request(responses, licenseKey))).toHaveLength(10_000);
});

test.each([
  ['that license', [{ licenseKey: 'KEY' }], false],
  ['another license', [{ licenseKey: 'OTHER' }], true],
  ['anything', ['anything'], false],
  ['credentials', ['credentials'], false],
] as const)(
  'after a commit that changed %s, whether the response is still cached is as listed',
  (_, changes, cached) => {
    const responses = new CachedResponses();
    for (let time = 0; time < 2; time += 1) request(responses, 'KEY');
    responses.invalidate(changes);
    expect(isCached(responses, 'KEY')).toBe(cached);
  },
);
