import { describe, expect, test } from 'vitest';
import type { Outcome } from '../../src/domain/outbox/outcome.ts';
import { received as dialects } from '../support/stores/dialects.ts';
import {
  classify,
  type ResponseContext,
  messageOf,
  parseHttpDate,
  parseRetryAfter,
} from '../../src/upstream/classification.ts';

const now = Date.UTC(2026, 0, 1);

function outcomeOf(
  status: number,
  text: string,
  headers: Record<string, string | string[]> = {},
  isRead: boolean = true,
): Outcome<string> {
  return classify({ type: 'answered', status, headers, text }, context(isRead));
}

function context(isRead: boolean): ResponseContext<string> {
  return {
    read: (body) =>
      typeof body['data'] === 'string' ? { value: body['data'] } : { fault: 'no such member' },
    request: isRead ? 'verify' : 'change',
    dialect: dialects.specification,
    self: null,
    hidden: ['KEY-1'],
    now,
    confirmed: now,
  };
}

describe('a response', () => {
  test.each([200, 201, 202])('a response %i in the right shape is applied', (status) => {
    expect(outcomeOf(status, '{"data":"x"}')).toEqual({
      outcome: 'applied',
      value: 'x',
      confirmedAt: now,
      isCached: false,
    });
  });

  test.each([
    ['2025-12-31T23:00:00+00:00', now - 3_600_000],
    ['2026-01-01T01:00:00+00:00', now],
    ['yesterday', now],
  ])(
    'a response that an agent confirmed at %s counts from there, never from the future',
    (text, confirmedAt) => {
      expect(outcomeOf(200, '{"data":"x"}', { 'latchkey-confirmed-at': text })).toMatchObject({
        confirmedAt,
      });
    },
  );

  test.each([
    ['2', { isPending: true }],
    ['0', {}],
  ])('a response of an agent with %s pending changes of the key says so', (pending, said) => {
    const whole = { outcome: 'applied', value: 'x', confirmedAt: now, isCached: false, ...said };
    expect(outcomeOf(200, '{"data":"x"}', { 'latchkey-pending': pending })).toEqual(whole);
  });

  test.each([
    ['</api/v2/coupons?limit=100&cursor=abc_-1>; rel="next"', { nextCursor: 'abc_-1' }],
    ['</api/v2/coupons?limit=100&offset=100>; rel="next"', {}],
    ['</api/v2/coupons?cursor=>; rel="next"', {}],
    ['</api/v2/coupons?cursor=abc>; rel="prev"', {}],
    [`</api/v2/coupons?cursor=${'x'.repeat(1_025)}>; rel="next"`, {}],
  ])('a page whose Link is %s has the cursor of the next page, if there is one', (link, said) => {
    const whole = { outcome: 'applied', value: 'x', confirmedAt: now, isCached: false, ...said };
    expect(outcomeOf(200, '{"data":"x"}', { link })).toEqual(whole);
  });

  test.each([
    [400, 'refused'],
    [422, 'refused'],
    [401, 'unauthorized'],
    [403, 'unauthorized'],
    [404, 'missing'],
    [429, 'throttled'],
    [402, 'rejected'],
    [409, 'rejected'],
    [499, 'rejected'],
  ])('a response %i with a JSON object is not applied: %s', (status, reason) => {
    expect(outcomeOf(status, '{"error":"KEY-1 is bad"}')).toEqual({
      outcome: 'not_applied',
      reason,
      status,
      detail: `HTTP ${status}: *** is bad`,
      message: '*** is bad',
      retryAfterMs: null,
    });
  });

  test('a refusal of a Latchkey carries the code and the reasons of its problem, but no other text as a code', () => {
    const problem = { code: 'coupon_not_redeemable', reasons: ['usage_limit_reached', 'Key KEY-1', 7] };
    expect(outcomeOf(409, JSON.stringify(problem), {}, false)).toMatchObject({
      reason: 'rejected',
      code: 'coupon_not_redeemable',
      reasons: ['usage_limit_reached'],
    });
    expect(outcomeOf(409, '{"code":"Key KEY-1"}', {}, false)).not.toHaveProperty('code');
  });

  test('an answer that an earlier attempt is under way does not refuse the change: the agent waits', () => {
    const inUse = outcomeOf(409, '{"code":"idempotency_key_in_use"}', { 'retry-after': '2' }, false);
    expect(inUse).toMatchObject({ outcome: 'not_applied', reason: 'throttled', retryAfterMs: 2_000 });
    expect(outcomeOf(422, '{"code":"idempotency_key_reused"}', {}, false)).toMatchObject({
      reason: 'refused',
    });
  });

  const epoch = '0123456789abcdef'.repeat(2);

  test('the answer of a Latchkey carries its epoch and the revisions of the license, also a refusal its epoch', () => {
    const headers = { 'latchkey-epoch': epoch, 'latchkey-revision': '12; applied=9' };
    expect(outcomeOf(200, '{"data":"x"}', headers)).toMatchObject({
      epoch,
      revision: 12,
      appliedRevision: 9,
    });
    const unchanged = outcomeOf(200, '{"data":"x"}', { ...headers, 'latchkey-revision': '12' });
    expect(unchanged).toMatchObject({ revision: 12 });
    expect(unchanged).not.toHaveProperty('appliedRevision');
    expect(outcomeOf(409, '{"code":"other_store"}', headers, false)).toMatchObject({
      epoch,
      code: 'other_store',
    });
  });

  test.each([
    [{ 'latchkey-epoch': epoch, 'latchkey-revision': '1', age: '5' }],
    [{ 'latchkey-epoch': 'none', 'latchkey-revision': 'last' }],
  ])('no epoch and no revision is taken from a cache, or from what is none: %j', (headers) => {
    const outcome = outcomeOf(200, '{"data":"x"}', headers);
    expect(outcome).toMatchObject({ outcome: 'applied' });
    expect(outcome).not.toHaveProperty('epoch');
    expect(outcome).not.toHaveProperty('revision');
  });

  test.each([
    ['', 'the response is empty'],
    ['[]', 'the response is not a JSON object'],
    ['"no"', 'the response is not a JSON object'],
    ['null', 'the response is not a JSON object'],
    ['404', 'the response is not a JSON object'],
    ['{"error":', 'the response is not JSON'],
    ['not found', 'the response is not JSON'],
    ['\n<!doctype html><p>', 'the response is HTML, not JSON: a firewall or proxy?'],
  ])('a response 4xx or 2xx with %j is ambiguous: %s', (text, fault) => {
    expect(outcomeOf(404, text)).toMatchObject({ outcome: 'ambiguous', detail: `HTTP 404: ${fault}` });
    expect(outcomeOf(200, text)).toMatchObject({ outcome: 'ambiguous', detail: `HTTP 200: ${fault}` });
  });

  test.each(['', 'slow down', '[]', '\n<!doctype html><p>', '{"error":'])(
    'a response 429 with %j is throttled, whatever its body',
    (text) => {
      const detail = 'HTTP 429';
      expect(outcomeOf(429, text)).toMatchObject({ outcome: 'not_applied', reason: 'throttled', detail });
    },
  );

  test.each(['gzip', 'br'])(
    'a response in %s, which was not requested, is ambiguous, and the detail says so',
    (coding) => {
      const compressed = { outcome: 'ambiguous', detail: expect.stringContaining('is compressed') };
      expect(outcomeOf(200, '\u001f\ufffd', { 'content-encoding': coding })).toMatchObject(compressed);
      expect(outcomeOf(404, '\u001f\ufffd', { 'content-encoding': coding })).toMatchObject(compressed);
      expect(outcomeOf(200, '{"data":"x"}', { 'content-encoding': coding })).toMatchObject({ value: 'x' });
      expect(outcomeOf(200, 'x', { 'content-encoding': 'identity' })).toMatchObject({
        detail: 'HTTP 200: the response is not JSON',
      });
    },
  );

  test('a response 2xx in another shape is ambiguous, and the detail says what is wrong', () => {
    expect(outcomeOf(200, '{}')).toMatchObject({ outcome: 'ambiguous', detail: 'HTTP 200: no such member' });
  });

  test.each([300, 301, 304, 307, 308, 500, 502, 503, 504, 599, 600, 999])(
    'a response %i is ambiguous',
    (status) => {
      expect(outcomeOf(status, '{"data":"x"}')).toMatchObject({ outcome: 'ambiguous' });
    },
  );

  test.each([
    ['https://shop.example/api?license_key=KEY-1', ': this one leads to https://shop.example'],
    ['http://user:word@127.0.0.1:8080/', ': this one leads to http://127.0.0.1:8080'],
    ['https://key-1.example/', ': this one leads to https://***.example'],
    ['/login', ''],
    ['urn:x', ''],
  ])('a response that redirects to %s shows the target, but nothing of the request', (location, where) => {
    const detail = `HTTP 301: redirects are not followed${where}`;
    expect(outcomeOf(301, '', { location })).toMatchObject({ outcome: 'ambiguous', detail });
  });

  test('a response 304 is reported as a cache’s, because it redirects nowhere', () => {
    const detail = 'HTTP 304: a cache answered 304 to an unconditional request';
    expect(outcomeOf(304, '')).toMatchObject({ outcome: 'ambiguous', detail });
  });

  test('a response 5xx contains the message of its JSON object', () => {
    expect(outcomeOf(502, '<html>')).toMatchObject({ detail: 'HTTP 502' });
    expect(outcomeOf(503, '{"message":"down"}')).toMatchObject({ detail: 'HTTP 503: down' });
  });

  test.each([429, 503, 200, 302])('a response %i carries Retry-After', (status) => {
    expect(outcomeOf(status, '{}', { 'retry-after': '7' })).toMatchObject({ retryAfterMs: 7_000 });
  });

  test.each([
    ['{"error":"quiet, please"}', 86_400_000],
    ['<html>busy</html>', 900_000],
    ['', 900_000],
    ['[]', 900_000],
  ])('a response with %j asks for a limited wait: %i ms', (text, retryAfterMs) => {
    const headers = { 'retry-after': '999999' };
    expect(outcomeOf(503, text, headers)).toMatchObject({ retryAfterMs });
    expect(outcomeOf(429, text, headers)).toMatchObject({ retryAfterMs });
  });

  test('a response with an incomplete body asks for 15 minutes at most, because a gateway may have sent it', () => {
    const exchange = {
      type: 'failed',
      sent: true,
      error: new Error('cut'),
      headers: { 'retry-after': '999999' },
    } as const;
    expect(classify(exchange, context(true))).toMatchObject({
      outcome: 'ambiguous',
      retryAfterMs: 900_000,
    });
  });

  test('a date in Retry-After counts from the clock of the response, else from ours', () => {
    const retry = { 'retry-after': 'Thu, 01 Jan 2026 00:01:00 GMT' };
    expect(outcomeOf(503, '', retry)).toMatchObject({ retryAfterMs: 60_000 });
    const dated = { ...retry, date: 'Thu, 01 Jan 2026 00:00:50 GMT' };
    expect(outcomeOf(503, '', dated)).toMatchObject({ retryAfterMs: 10_000 });
  });
});

describe('a cached response', () => {
  const ok = '{"data":"x"}';
  const second = 1_000;

  test.each([
    ['60', 60 * second],
    [' 7 ', 7 * second],
    [['0', '5'], 5 * second],
    ['0, 9', 9 * second],
    ['99999999999999', 2 ** 31 * second],
  ])('a cached response with Age %j is as old as that, and marked as cached', (age, olderMs) => {
    expect(outcomeOf(200, ok, { age })).toEqual({
      outcome: 'applied',
      value: 'x',
      confirmedAt: now - olderMs,
      isCached: true,
    });
  });

  test('a cached response is no newer than its Date, if our clock is ahead', () => {
    const date = new Date(now - 60 * 86_400 * second).toUTCString();
    expect(outcomeOf(200, ok, { age: '5', date })).toMatchObject({ confirmedAt: Date.parse(date) });
  });

  test.each(['0', '', 'x', '-5', '1.5'])('a response is not cached with Age %j', (age) => {
    expect(outcomeOf(200, ok, { age })).toMatchObject({ confirmedAt: now, isCached: false });
    expect(outcomeOf(404, '{}', { age })).toMatchObject({ reason: 'missing' });
  });

  test('a response of an upstream agent is not cached, because its Age is the age of its snapshot', () => {
    const agent = {
      age: '60',
      'latchkey-freshness': 'fresh',
      'latchkey-confirmed-at': '2025-12-31T23:59:00Z',
    };
    expect(outcomeOf(200, ok, agent)).toMatchObject({ isCached: false, confirmedAt: now - 60 * second });
    expect(outcomeOf(200, ok, agent, false)).toMatchObject({ outcome: 'applied' });
    expect(outcomeOf(404, '{}', agent)).toMatchObject({ reason: 'missing' });
  });

  test.each([400, 401, 403, 404, 422, 429])(
    'a cached response %i is no verdict of the upstream',
    (status) => {
      expect(outcomeOf(status, '{"error":"no"}', { age: '1' })).toEqual({
        outcome: 'not_applied',
        reason: 'cached',
        status,
        detail: `HTTP ${status}: a cache answered, not the upstream`,
        retryAfterMs: null,
      });
    },
  );

  test('a cached response is dated by the confirmed time, not by a clock that may be ahead', () => {
    const ahead = { ...context(true), now: now + 60 * 86_400_000 };
    const exchange = { type: 'answered', status: 200, headers: { age: '60' }, text: ok } as const;
    expect(classify(exchange, ahead)).toMatchObject({ confirmedAt: now - 60_000, isCached: true });
  });

  test('a cached response is not used before the upstream itself has sent a date', () => {
    const exchange = { type: 'answered', status: 200, headers: { age: '60' }, text: ok } as const;
    expect(classify(exchange, { ...context(true), confirmed: null })).toEqual({
      outcome: 'not_applied',
      reason: 'cached',
      status: 200,
      detail: 'HTTP 200: a cache answered, not the upstream',
      retryAfterMs: null,
    });
  });

  test.each([200, 404])(
    'a cached response %i to a change is ambiguous, because a cache cannot count',
    (status) => {
      expect(outcomeOf(status, ok, { age: '1' }, false)).toEqual({
        outcome: 'ambiguous',
        status,
        detail: `HTTP ${status}: a cache answered a request to change something`,
        retryAfterMs: null,
      });
    },
  );
});

describe('the upstream’s own message', () => {
  test.each([
    [{ error: 'c', message: 'b', detail: 'a' }, 'a'],
    [{ error: 'c', message: 'b', detail: null }, 'b'],
    [{ error: 'c', message: 7 }, 'c'],
    [{ error: { message: 'nested' } }, null],
    [{ error: '' }, null],
    [{ error: '\u0000\n' }, null],
    [{}, null],
    [
      { detail: 'Not valid: a, b.', errors: [{ detail: 'a is odd.' }, { detail: 'b is even.' }] },
      'Not valid: a, b. a is odd. b is even.',
    ],
    [{ detail: 'a', errors: ['b', null, {}, { detail: 7 }, [{ detail: 'c' }]] }, 'a'],
    [{ detail: 'a', errors: 'b' }, 'a'],
    [{ detail: 'a', errors: [{ detail: 'a' }] }, 'a'],
  ])('the upstream’s own message of %j is %j', (body, expected) =>
    expect(messageOf(body, [])).toBe(expected),
  );

  test('the upstream’s own message is one line without control characters, cut to 200 characters', () => {
    expect(messageOf({ error: 'a\r\nb\u001B[31m\u202Ec' }, [])).toBe('a b [31m c');
    expect(messageOf({ error: 'x'.repeat(500) }, [])).toHaveLength(200);
  });

  test('the upstream’s own message never contains a hidden text, ignoring case, even where the cut would divide it', () => {
    expect(messageOf({ error: 'no key ab(1)* here' }, ['AB(1)*', ''])).toBe('no key *** here');
    expect(messageOf({ detail: 'a', errors: [{ detail: 'AB(1)* is odd' }] }, ['AB(1)*'])).toBe(
      'a *** is odd',
    );
    const quoted = 'a=Old%20key%2F%C3%A9 b=Old+key%2F%C3%A9 c=Old%20key/%C3%A9';
    expect(messageOf({ error: quoted }, ['Old key/é'])).toBe('a=*** b=*** c=***');
    expect(messageOf({ error: `${'x'.repeat(195)}SECRET-1` }, ['SECRET-1'])).not.toContain('SECRE');
  });
});

const instant = Date.UTC(1994, 10, 6, 8, 49, 37);

describe('an HTTP date', () => {
  test.each(['Sun, 06 Nov 1994 08:49:37 GMT', 'Sunday, 06-Nov-94 08:49:37 GMT', 'Sun Nov  6 08:49:37 1994'])(
    'an HTTP date is parsed in the form %s',
    (text) => expect(parseHttpDate(text)).toBe(instant),
  );

  test.each(['', '1994', '-5', 'tomorrow', 'Sunday', '1994-11-06T08:49:37Z'])(
    'an HTTP date is not %j',
    (text) => expect(parseHttpDate(text)).toBeNull(),
  );
});

describe('Retry-After', () => {
  const day = 86_400_000;
  test.each([
    ['120', 120_000],
    [' 0 ', 0],
    ['-5', 0],
    ['999999999999', day],
    ['9'.repeat(400), day],
    ['Sun, 06 Nov 1994 08:50:37 GMT', 60_000],
    ['Sun, 06 Nov 1994 08:00:00 GMT', 0],
    ['Sun, 06 Nov 2050 08:00:00 GMT', day],
    ['', null],
    ['soon', null],
    ['1.5e3', null],
    ['12, 13', null],
  ])('Retry-After %j is a wait of %j ms', (text, expected) =>
    expect(parseRetryAfter(text, instant)).toBe(expected),
  );
});
