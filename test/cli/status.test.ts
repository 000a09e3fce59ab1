import { expect, test } from 'vitest';
import { latchkey } from '../support/process/command-line.ts';
import { startFakeDaemon } from '../support/process/fake-daemon.ts';

const status = {
  role: 'agent',
  version: '0.1.0',
  instance: 'i',
  uptime_s: 60,
  listeners: {
    tcp: 'http://127.0.0.1:8787',
    other_tcp: [],
    socket: null,
    sockets: [],
    lost: [],
    public: null,
    tls: null,
  },
  upstream: {
    state: 'down',
    since: '2026-03-01T11:57:00+00:00',
    protocol: 'plain',
    follows: [],
    breaker: 'closed',
    last_success_at: '2026-03-01T12:00:00+00:00',
    last_error: null,
    last_error_at: null,
    recovered_at: null,
    retry_after: null,
    next_attempt_at: '2026-03-01T12:00:25+00:00',
    proxy: null,
    paused_products: [],
    coupons_paused: false,
  },
  outbox: {
    pending: 100,
    in_flight: 0,
    uncertain: 0,
    held: 0,
    inferred: 0,
    conflicted: 0,
    dead: 0,
    delivered: 0,
    oldest_age_s: 9,
  },
  preload: null,
  store_events: null,
  leases: null,
  issuer: null,
  storage: 'ok',
  records: { fresh: 1, stale: 0, grace: 0, expired: 0, disabled: 0 },
  clock: {
    now: '2026-03-01T12:00:00+00:00',
    suspect: false,
    store_ahead_s: null,
    high_water: '2026-03-01T12:00:00+00:00',
  },
  webhooks: null,
  agents: null,
  totals: { verifies: 0, uses: 0 },
};

test('status tells times by the clock of the daemon, and in an outage when the next attempt is', async () => {
  await using daemon = await startFakeDaemon();
  daemon.answer({ body: status });
  const { code, out, err } = await latchkey('status', '--state-dir', daemon.stateDir);
  expect({ code, err }).toEqual({ code: 0, err: '' });
  expect(out).toMatch(/^upstream +down since \S+ \(3 min ago\)/m);
  expect(out).toMatch(/^next attempt +2026-03-01T12:00:25\+00:00 \(in 25 sec\)$/m);
});
