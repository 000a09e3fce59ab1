import { describe, expect, test } from 'vitest';
import { change } from '../support/harness/dialect-calls.ts';
import { secret, startDialectHarness } from '../support/harness/dialect-harness.ts';
import { sendRaw, type Listener } from '../support/network/raw-http.ts';

const headers = { 'product-secret-key': secret };
const verify = (key: string) => ({
  method: 'GET',
  path: `/api/v2/license/verify?license_key=${key}`,
  headers,
});

/** The bytes of a verify that leaves the connection open. */
function bytesOf(key: string, more = ''): string {
  return `GET /api/v2/license/verify?license_key=${key} HTTP/1.1\r\nHost: localhost\r\nproduct-secret-key: ${secret}\r\n${more}\r\n`;
}

describe.each(['specification', 'payhip'])('an agent in the dialect %s with `unknown: reset`', (dialect) => {
  test.each(['tcp', 'socket'] as const)(
    'an agent closes the connection of a verify of an unseen key while its upstream is down, over %s',
    async (name) => {
      await using harness = await startDialectHarness('agent', name, { dialect, unknown: 'reset' });
      const { tcp, socket } = harness.addresses;
      const listener: Listener = name === 'tcp' ? { tcp: tcp ?? '' } : { socket: socket ?? '' };
      // The upstream is up: an unknown key is answered as unknown.
      const no = dialect === 'payhip' ? '400' : '404';
      expect((await harness.send(verify('KEY-1')))[0]).toBe('200');
      expect((await harness.send(verify('NONE')))[0]).toBe(no);
      await harness.closeUpstream();
      expect((await harness.send(verify('KEY-1')))[0]).toBe('200');
      expect(await harness.send(verify('UNSEEN'))).toEqual(['ECONNRESET']);
      for (const kind of ['usage', 'decrease', 'enable', 'disable']) {
        expect(await harness.send(change(kind, headers, 'UNSEEN'))).toEqual(['ECONNRESET']);
      }
      // The connection closes without a byte, even if the caller wants to keep it.
      for (const more of ['', 'Connection: keep-alive\r\n', 'Connection: close\r\n']) {
        const { raw, ending } = await sendRaw(listener, bytesOf('UNSEEN', more));
        expect([raw, ending]).toEqual(['', 'closed']);
      }
      // A caller that understands problems gets one: another agent, or a caller that accepts the problem
      // type.
      for (const more of ['Latchkey-Instance: another\r\n', 'Accept: application/problem+json\r\n']) {
        const told = await sendRaw(listener, bytesOf('UNSEEN', `${more}Connection: close\r\n`));
        expect(told.status).toBe(503);
      }
      // Earlier requests on the same connection are answered.
      const both = await sendRaw(listener, `${bytesOf('KEY-1')}${bytesOf('UNSEEN')}${bytesOf('KEY-1')}`);
      expect(both.raw.match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 200']);
      expect(both.ending).toBe('closed');
      // Requests that are not about a license key are answered normally.
      expect((await harness.send({ ...verify('UNSEEN'), headers: {} }))[0]).toBe('401');
      expect((await harness.send({ ...verify('UNSEEN'), method: 'POST' }))[0]).toBe('405');
      const coupons = {
        method: 'GET',
        path: '/api/v2/coupons',
        headers: { 'service-api-key': harness.credentials.apiKey },
      };
      expect((await harness.send(coupons))[0]).toBe('503');
      expect((await harness.send(verify('KEY-1')))[0]).toBe('200');
    },
  );
});

test.each(['specification', 'payhip'])(
  'an agent in the dialect %s closes the connection if a credential misses too often or its lookups fill the queue',
  async (dialect) => {
    await using harness = await startDialectHarness(
      'agent',
      'tcp',
      { dialect, unknown: 'reset' },
      // One lookup is sent at once, and four may wait.
      { limits: { misses: 0.001, connections: 8 } },
    );
    const url = `${harness.addresses.tcp ?? ''}/api/v2/license/verify?license_key=`;
    /**
     * Verifies seven keys at once and returns the responses to three of them; the other callers disconnect.
     */
    const askAtOnce = async (name: string, more: Record<string, string>): Promise<string[]> => {
      const leaving = new AbortController();
      const answered: string[] = [];
      const ask = async (key: string): Promise<void> => {
        try {
          const answer = await fetch(url + key, { headers: { ...headers, ...more }, signal: leaving.signal });
          answered.push(`${answer.status}, Retry-After: ${answer.headers.get('retry-after') ?? 'none'}`);
        } catch {
          if (!leaving.signal.aborted) answered.push('closed');
        }
      };
      const asked = Array.from({ length: 7 }, (_, index) => ask(`${name}-${index}`));
      // More are answered while connections are refused.
      await expect.poll(() => answered.length).toBeGreaterThanOrEqual(3);
      leaving.abort();
      await Promise.all(asked);
      return answered;
    };
    expect((await harness.send(verify('NONE')))[0]).toBe(dialect === 'payhip' ? '400' : '404');
    expect(await askAtOnce('MORE', {})).toEqual(['closed', 'closed', 'closed']);
    // A caller that accepts problems gets one.
    const told = { accept: 'application/problem+json' };
    // Connections are refused until the server has noticed that the callers before have left.
    await expect
      .poll(() => askAtOnce('TOLD', told))
      .toEqual(Array(3).fill(expect.stringMatching(/^429, Retry-After: \d+$/)));
  },
);

test('a verify above limits.rate closes the connection, even if its head was sent earlier', async () => {
  await using harness = await startDialectHarness(
    'agent',
    'tcp',
    { unknown: 'reset' },
    { limits: { rate: 0.001 } },
  );
  expect((await harness.send(verify('KEY-1')))[0]).toBe('200');
  for (let time = 0; time < 3; time += 1) expect(await harness.send(verify('KEY-1'))).toEqual(['ECONNRESET']);
});

test('a verify of a key whose grace period is over closes the connection', async () => {
  await using harness = await startDialectHarness(
    'agent',
    'tcp',
    { unknown: 'reset' },
    {
      freshness: { fresh: '1s', stale: '1s', grace: '1s', refresh: '1h' },
    },
  );
  expect((await harness.send(verify('KEY-1')))[0]).toBe('200');
  await harness.closeUpstream();
  await expect.poll(() => harness.send(verify('KEY-1'))).toEqual(['ECONNRESET']);
});
