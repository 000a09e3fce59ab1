import { expect, test } from 'vitest';
import { CommandError } from '../../src/cli/command.ts';
import { createOutput, type Output } from '../../src/cli/output.ts';
import {
  watchStatus,
  addSample,
  formatDrain,
  formatRates,
  ratesOf,
  type Sample,
  secondsLeft,
} from '../../src/cli/commands/status/watch.ts';
import { latchkey } from '../support/process/command-line.ts';
import { type FakeDaemon, startFakeDaemon } from '../support/process/fake-daemon.ts';

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
    state: 'up',
    since: '2026-03-01T11:57:00+00:00',
    protocol: 'plain',
    follows: [],
    breaker: 'closed',
    last_success_at: '2026-03-01T12:00:00+00:00',
    last_error: null,
    last_error_at: null,
    recovered_at: null,
    retry_after: null,
    next_attempt_at: null,
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

/** After each look: 20 verifies, 4 uses, and 10 deliveries more than came. */
const later = (looks: number): typeof status => ({
  ...status,
  uptime_s: status.uptime_s + 2 * looks,
  outbox: { ...status.outbox, pending: 100 - 20 * looks, delivered: 24 * looks },
  webhooks: null,
  totals: { verifies: 40 * looks, uses: 8 * looks },
});

interface Watched {
  readonly code: number;
  readonly out: string;
  readonly err: string;
  /** What stood on the terminal, one after the other. */
  readonly frames: readonly string[];
  readonly isClosed: boolean;
}

/** Watches a daemon that changes before each look; looks are two seconds apart. */
async function watched(
  daemon: FakeDaemon,
  looks: readonly (() => void)[],
  { isTerminal = false, json = false }: { isTerminal?: boolean; json?: boolean } = {},
): Promise<Watched> {
  let out = '';
  let err = '';
  let isClosed = false;
  const frames: string[] = [];
  const rewrite = Object.assign((text: string) => void frames.push(text), {
    done: () => {
      isClosed = true;
    },
  });
  const output: Output = createOutput(
    (text) => void (out += text),
    (text) => void (err += text),
    {
      screen: () => ({ columns: isTerminal ? 100 : null, hasColour: false }),
      openRewrite: () => Promise.resolve(rewrite),
    },
  );
  const end = new AbortController();
  const left = [...looks];
  let passed = 0;
  left.shift()?.();
  const code = await watchStatus({ stateDir: daemon.stateDir, json }, output, {
    intervalMs: 2000,
    signal: end.signal,
    clock: () => passed,
    pause: (ms) => {
      passed += ms;
      const next = left.shift();
      if (next === undefined) end.abort();
      else next();
      return Promise.resolve();
    },
  }).catch((error: unknown) => {
    if (!(error instanceof CommandError)) throw error;
    output.printError(error.lines);
    return error.code;
  });
  return { code, out, err, frames, isClosed };
}

const answers = (daemon: FakeDaemon, looks: number) => (): void => daemon.answer({ body: later(looks) });

test('status --watch on a terminal replaces the screen and shows rates', async () => {
  await using daemon = await startFakeDaemon();
  const { code, out, frames, isClosed } = await watched(daemon, [answers(daemon, 0), answers(daemon, 1)], {
    isTerminal: true,
  });
  expect({ code, out, isClosed, count: frames.length }).toEqual({
    code: 0,
    out: '',
    isClosed: true,
    count: 2,
  });
  // By the clock of the daemon.
  expect(frames[0]).toMatch(/^upstream +up since \S+ \(3 min ago\)/m);
  expect(frames[0]).toMatch(/^drain +100 changes waiting$/m);
  expect(frames[1]).toMatch(/^rates +20\.0 verifies\/s, 4\.0 uses\/s, 12\.0 deliveries\/s$/m);
  expect(frames[1]).toMatch(/^drain +80 changes waiting, sending 10\.0\/s, about 8s left$/m);
  expect(frames[1]).toMatch(/^Refreshing every 2 s\. Press Ctrl-C to quit\.$/m);
});

test('in an outage each line of status --watch says when the next attempt is', async () => {
  await using daemon = await startFakeDaemon();
  const upstream = { ...status.upstream, state: 'down', next_attempt_at: '2026-03-01T12:01:05+00:00' };
  const { out } = await watched(daemon, [() => daemon.answer({ body: { ...later(0), upstream } })]);
  expect(out).toContain('upstream down, next attempt in 1m 5s, ');
});

test('in an outage the screen of status --watch says when the next attempt is', async () => {
  await using daemon = await startFakeDaemon();
  const upstream = { ...status.upstream, state: 'down', next_attempt_at: '2026-03-01T12:00:25+00:00' };
  const looks = [() => daemon.answer({ body: { ...later(0), upstream } })];
  const { frames } = await watched(daemon, looks, { isTerminal: true });
  expect(frames[0]).toMatch(/^next attempt +2026-03-01T12:00:25\+00:00 \(in 25 sec\)$/m);
});

test('status --watch in a pipe prints a line for each update, without control characters', async () => {
  await using daemon = await startFakeDaemon();
  const looks = [answers(daemon, 0), answers(daemon, 1), () => daemon.answer(undefined)];
  const { out, frames } = await watched(daemon, looks);
  expect(frames).toEqual([]);
  expect(out.replace(/\S+ (unavailable: the daemon) .*/, '$1')).toBe(
    [
      '2026-03-01T12:00:00+00:00 agent, upstream up, after the next refresh, 100 changes waiting',
      '2026-03-01T12:00:00+00:00 agent, upstream up, 20.0 verifies/s, 4.0 uses/s, 12.0 deliveries/s, 80 changes waiting, sending 10.0/s, about 8s left',
      'unavailable: the daemon',
      '',
    ].join('\n'),
  );
});

test('status --watch --json prints one object on each line', async () => {
  await using daemon = await startFakeDaemon();
  const { out } = await watched(
    daemon,
    [answers(daemon, 0), answers(daemon, 1), () => daemon.answer(undefined)],
    { json: true },
  );
  const lines = out
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as object);
  expect(lines).toMatchObject([
    { away: false, role: 'agent', rates: null, drain: { waiting: 100, left_s: null } },
    {
      rates: { verifies_per_s: 20, uses_per_s: 4, deliveries_per_s: 12, drained_per_s: 10 },
      drain: { waiting: 80, left_s: 8 },
    },
    { away: true, detail: expect.stringMatching(/^the daemon .* did not answer/) as string },
  ]);
});

test('status --watch of an authority shows no outbox', async () => {
  await using daemon = await startFakeDaemon();
  const authority = { role: 'authority', upstream: null, outbox: null };
  const looks = [0, 1].map((count) => () => daemon.answer({ body: { ...later(count), ...authority } }));
  expect((await watched(daemon, looks)).out).toBe(
    [
      '2026-03-01T12:00:00+00:00 authority, after the next refresh',
      '2026-03-01T12:00:00+00:00 authority, 20.0 verifies/s, 4.0 uses/s',
      '',
    ].join('\n'),
  );
  const { frames } = await watched(daemon, looks, { isTerminal: true });
  expect(frames[1]).toMatch(/^rates +20\.0 verifies\/s, 4\.0 uses\/s$/m);
  expect(frames[1]).not.toMatch(/^drain/m);
});

test('status --watch counts changes in flight as waiting, and held changes not', async () => {
  await using daemon = await startFakeDaemon();
  const look =
    (seconds: number, outbox: object): (() => void) =>
    () =>
      daemon.answer({
        body: { ...status, uptime_s: 60 + seconds, outbox: { ...status.outbox, ...outbox } },
      });
  const { out } = await watched(daemon, [
    look(0, { pending: 10, in_flight: 20, uncertain: 40, held: 30, delivered: 4, inferred: 0 }),
    look(2, { pending: 0, in_flight: 20, uncertain: 40, held: 30, delivered: 8, inferred: 6 }),
    // What was delivered is forgotten after some days.
    look(4, { pending: 0, in_flight: 0, uncertain: 30, held: 30, delivered: 0, inferred: 0 }),
  ]);
  expect(out.match(/uses\/s, .*$/gm)).toEqual([
    'uses/s, 5.0 deliveries/s, 30 changes waiting, sending 5.0/s, about 6s left',
    'uses/s, 0.0 deliveries/s, no changes waiting',
  ]);
  expect(out).toMatch(/ after the next refresh, 40 changes waiting$/m);
});

test('status --watch reports a stopped daemon and continues when it is back', async () => {
  await using daemon = await startFakeDaemon();
  const looks = [
    answers(daemon, 3),
    () => daemon.answer(undefined),
    () => daemon.answer({ body: status }),
    answers(daemon, 1),
  ];
  const { code, err, frames } = await watched(daemon, looks, { isTerminal: true });
  expect({ code, err }).toEqual({ code: 0, err: '' });
  expect(frames[1]).toMatch(
    /^latchkey +unavailable, last seen 2s ago\nreason +the daemon .* did not\s+answer at/,
  );
  // Totals that began anew make no rate.
  expect(frames[2]).toMatch(/^rates +after the next refresh$/m);
  expect(frames[3]).toMatch(/^rates +20\.0 verifies\/s/m);
});

test('status --watch fails if no daemon runs at the start', async () => {
  await using daemon = await startFakeDaemon();
  const { code, err, isClosed } = await watched(daemon, [() => daemon.answer(undefined)], {
    isTerminal: true,
  });
  expect({ code, isClosed }).toEqual({ code: 69, isClosed: true });
  expect(err).toContain('did not answer');
});

test.each([
  [['--interval', '199ms', '--watch'], '--interval must be a duration from 200ms to 1h'],
  [['--interval', '3601s', '--watch'], '--interval must be a duration from 200ms to 1h'],
  [['--watch', '--check'], '--watch and --check cannot be combined'],
])('status %j is a usage error', async (argv, message) => {
  const { code, err } = await latchkey('status', ...argv);
  expect(code).toBe(2);
  expect(err).toContain(message);
});

const sample = (at: number, waiting: number): Sample => ({
  at,
  uptime: at / 1000,
  verifies: at / 100,
  uses: 0,
  delivered: 0,
  waiting,
});

test('rates are averages of the last ten seconds', () => {
  const at = [0, 4000, 8000, 10_000, 11_000, 16_000, 20_000];
  const kept = at.reduce<readonly Sample[]>((all, each) => addSample(all, sample(each, 0)), []);
  expect(kept.map((each) => each.at)).toEqual([10_000, 11_000, 16_000, 20_000]);
  expect(ratesOf(kept)).toMatchObject({ verifies: 10, uses: 0 });
});

test.each([
  [0, 'no changes waiting'],
  [10, '10 changes waiting, sending 5.0/s, about 2s left'],
  [1, '1 change waiting, sending 9.5/s, about 1s left'],
  [20, '20 changes waiting; none are being sent'],
  [40, '40 changes waiting, growing by 10.0/s'],
])('with %i left of 20 after two seconds it says: %s', (waiting, words) => {
  expect(formatDrain(waiting, ratesOf([sample(0, 20), sample(2000, waiting)]))).toBe(words);
});

test('rates need two samples', () => {
  expect(ratesOf([sample(0, 1)])).toBeNull();
  expect(formatRates(null, true)).toBe('after the next refresh');
  expect(secondsLeft(1, null)).toBeNull();
  expect(secondsLeft(0, null)).toBe(0);
});
