import { randomBytes } from 'node:crypto';
import { Webhook } from 'standardwebhooks';
import { expect, test } from 'vitest';
import { signedHeaders } from '../../../src/features/webhooks/signature.ts';

const secret = `whsec_${randomBytes(32).toString('base64')}`;
const oldSecret = `whsec_${randomBytes(32).toString('base64')}`;
const body = '{"type":"license.issued","timestamp":"2026-11-27T04:00:00+00:00","data":{}}';

function messageAt(timestampS: number) {
  return { id: '0192f3c4-0000-7000-8000-000000000001', timestampS, body };
}

const nowS = (): number => Math.floor(Date.now() / 1000);

test('the signature is that of the example in the specification of Standard Webhooks', () => {
  const message = {
    id: 'msg_p5jXN8AQM9LWM0D4loKWxJek',
    timestampS: 1_614_265_330,
    body: '{"test": 2432232314}',
  };
  expect(signedHeaders(message, ['whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'])).toEqual({
    'webhook-id': 'msg_p5jXN8AQM9LWM0D4loKWxJek',
    'webhook-timestamp': '1614265330',
    'webhook-signature': 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=',
  });
});

test('the library of Standard Webhooks accepts an event', () => {
  const headers = signedHeaders(messageAt(nowS()), [secret]);
  expect(new Webhook(secret).verify(body, headers)).toEqual(JSON.parse(body));
});

test('the library accepts an event with the new and with the old secret while a secret is rotated', () => {
  const headers = signedHeaders(messageAt(nowS()), [secret, oldSecret]);
  for (const each of [secret, oldSecret]) expect(new Webhook(each).verify(body, headers)).toBeDefined();
});

test('the library refuses a changed byte, another id, an old timestamp and another secret', () => {
  const headers = signedHeaders(messageAt(nowS()), [secret]);
  const refusal =
    (sent: string, how: Record<string, string>, by: string = secret) =>
    () =>
      new Webhook(by).verify(sent, how);
  expect(refusal(body.replace('issued', 'issuec'), headers)).toThrow('No matching signature');
  expect(refusal(body, { ...headers, 'webhook-id': 'other' })).toThrow('No matching signature');
  expect(refusal(body, headers, oldSecret)).toThrow('No matching signature');
  const old = signedHeaders(messageAt(nowS() - 6 * 60), [secret]);
  expect(refusal(body, old)).toThrow('too old');
});
