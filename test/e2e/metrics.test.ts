import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { eventually, startHarness } from '../support/harness/agent-harness.ts';
import { startDaemonProcess } from '../support/process/daemon-process.ts';
import { httpClient, sendRaw } from '../support/network/raw-http.ts';
import { temporaryDirectory } from '../support/temporary.ts';

/** The value of a series in the Prometheus text; undefined if the series is missing. */
function valueOf(text: string, series: string): number | undefined {
  const line = text.split('\n').find((each) => each.startsWith(`${series} `));
  return line === undefined ? undefined : Number(line.slice(series.length + 1));
}

test('an agent exports metrics about requests by route, verdicts, the outbox, the upstream, commits and the process', async () => {
  // One failed request opens the breaker, and no probe closes it during the test.
  const sync = { breaker: { failures: 1, open: '1h' } };
  await using harness = await startHarness({ licenses: ['KEY', 'OFF'], configuration: { sync } });
  harness.upstream.setEnabled('OFF', false);
  const agent = await harness.startAgent();
  await agent.learn(['KEY', 'OFF']);
  await agent.change('usage', 'KEY');
  await agent.atRest();
  await harness.upstream.stop();
  await agent.change('usage', 'KEY', { prefer: 'wait=1' });
  await eventually(async () => (await agent.status()).upstream.breaker === 'open');
  expect((await agent.client.get('/nowhere/KEY-IN-A-PATH')).status).toBe(404);
  expect((await sendRaw({ tcp: agent.process.tcp }, 'HELLO\r\n\r\n')).status).toBe(400);
  const text = String(await agent.ask('/metrics'));

  const route = '/api/v2/license/verify';
  expect(valueOf(text, `latchkey_requests_total{route="${route}",status="200"}`)).toBeGreaterThanOrEqual(2);
  expect(valueOf(text, 'latchkey_requests_total{route="/api/v2/license/usage",status="200"}')).toBe(2);
  expect(valueOf(text, 'latchkey_requests_total{route="none",status="404"}')).toBe(1);
  expect(valueOf(text, 'latchkey_requests_total{route="none",status="400"}')).toBe(1);
  expect(text).not.toContain('KEY');
  expect(valueOf(text, 'latchkey_request_duration_seconds_count')).toBeGreaterThanOrEqual(5);
  expect(valueOf(text, 'latchkey_verdicts_total{freshness="fresh",enabled="true"}')).toBe(1);
  expect(valueOf(text, 'latchkey_verdicts_total{freshness="fresh",enabled="false"}')).toBe(1);
  const waiting = ['pending', 'in_flight', 'uncertain'].map((state) =>
    valueOf(text, `latchkey_outbox_operations{state="${state}"}`),
  );
  expect(waiting.toSorted((one = 0, other = 0) => one - other)).toEqual([0, 0, 1]);
  expect(valueOf(text, 'latchkey_outbox_operations{state="dead"}')).toBe(0);
  expect(valueOf(text, 'latchkey_outbox_oldest_age_seconds')).toBeGreaterThan(0.5);
  expect(valueOf(text, 'latchkey_upstream_requests_total{outcome="applied"}')).toBeGreaterThanOrEqual(3);
  // The machine decides whether the connection is refused or cut off.
  const failed = ['not_applied', 'ambiguous'].map((outcome) =>
    valueOf(text, `latchkey_upstream_requests_total{outcome="${outcome}"}`),
  );
  expect(failed.reduce((sum, count) => (sum ?? 0) + (count ?? 0), 0)).toBeGreaterThan(0);
  expect(valueOf(text, 'latchkey_upstream_last_success_timestamp_seconds')).toBeCloseTo(
    Date.now() / 1000,
    -2,
  );
  expect(valueOf(text, 'latchkey_upstream_breaker_state')).toBe(2);
  expect(valueOf(text, 'latchkey_upstream_up')).toBe(0);
  expect(valueOf(text, 'latchkey_unexpected_delta_total')).toBe(0);
  expect(valueOf(text, 'latchkey_commit_duration_seconds_count')).toBeGreaterThan(2);
  expect(valueOf(text, 'latchkey_commit_batch_size_count')).toBeGreaterThan(2);
  expect(valueOf(text, 'latchkey_records{freshness="fresh"}')).toBe(1);
  expect(valueOf(text, 'latchkey_clock_suspect')).toBe(0);
  expect(valueOf(text, 'latchkey_storage_full')).toBe(0);
});

test('a count that another writer changed is counted as an unexpected delta', async () => {
  await using harness = await startHarness({ licenses: ['KEY'] });
  const agent = await harness.startAgent();
  await agent.learn(['KEY']);
  harness.upstream.useElsewhere('KEY', 3);
  await agent.change('usage', 'KEY', { prefer: 'wait=30' });
  expect(valueOf(String(await agent.ask('/metrics')), 'latchkey_unexpected_delta_total')).toBe(1);
});

test('an authority exports no upstream metrics, and malformed requests do not corrupt its metrics', async () => {
  await using directory = temporaryDirectory();
  await using daemon = await startDaemonProcess(directory.path, {
    listen: { tcp: '127.0.0.1:0' },
    metrics: { open: true },
  });
  await using client = httpClient({ tcp: daemon.tcp });
  for (const bytes of [
    'nonsense\r\n\r\n',
    'GET /%zz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n',
  ]) {
    expect((await sendRaw({ tcp: daemon.tcp }, bytes)).status).toBe(400);
  }
  const { status, headers, body } = await client.get('/metrics');
  expect([status, headers['content-type']]).toEqual([200, 'text/plain; version=0.0.4; charset=utf-8']);
  expect(String(body)).not.toMatch(/latchkey_(?:upstream_(?:up|breaker)|outbox)/);
  expect(valueOf(String(body), `latchkey_info{version="${version()}",role="authority"}`)).toBe(1);
});

function version(): string {
  const text = readFileSync(join(import.meta.dirname, '../../package.json'), 'utf8');
  return (JSON.parse(text) as { version: string }).version;
}
