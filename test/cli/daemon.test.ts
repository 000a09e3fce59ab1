import { expect, test } from 'vitest';
import { latchkey } from '../support/process/command-line.ts';
import { isWindows } from '../support/platform.ts';
import { problem, startFakeDaemon } from '../support/process/fake-daemon.ts';

const operation = {
  id: '0192-a',
  kind: 'usage',
  amount: 1,
  license_key: 'K',
  subject: 'K',
  state: 'dead',
  held: false,
  attempts: 3,
  base_uses: 4,
  created_at: '2024-02-22T11:23:05+00:00',
  request_id: null,
  credential: null,
  next_at: null,
  last_error: 'HTTP 404',
  explanation: {
    meaning: 'It was not applied: the store refused it.',
    waits: [],
    expected_uses: 5,
    shown: { uses: 7, enabled: true, at: '2026-03-01T11:57:00+00:00' },
    decisions: { retry: 'It is sent again.', drop: 'It is not sent.', confirm: null },
  },
};

const status = {
  role: 'agent',
  version: '0.1.0',
  instance: 'i',
  uptime_s: 11_530,
  listeners: {
    tcp: 'http://127.0.0.1:8787',
    other_tcp: ['http://[::1]:8787'],
    socket: '/run/l.sock',
    sockets: ['/run/till.sock'],
    lost: [],
    public: null,
    tls: null,
  },
  upstream: {
    state: 'down',
    since: '2024-02-22T11:23:05+00:00',
    protocol: 'unknown',
    follows: [],
    breaker: 'open',
    last_success_at: null,
    last_error: 'connection refused',
    last_error_at: '2024-02-22T13:23:05+00:00',
    recovered_at: null as string | null,
    retry_after: null as string | null,
    next_attempt_at: null,
    proxy: null,
    paused_products: [],
    coupons_paused: false,
  },
  outbox: {
    pending: 12,
    in_flight: 0,
    uncertain: 1,
    held: 1,
    inferred: 0,
    conflicted: 2,
    dead: 0,
    delivered: 7,
    oldest_age_s: 61,
  },
  preload: { done: 2, failed: 1, left: 0 },
  store_events: null,
  leases: null,
  issuer: null,
  storage: 'ok',
  records: { fresh: 3, stale: 0, grace: 1, expired: 0, disabled: 0 },
  clock: {
    now: '2024-02-22T13:24:05+00:00',
    suspect: false,
    store_ahead_s: null,
    high_water: '2024-02-22T11:23:05+00:00',
  },
  webhooks: null,
  agents: null,
  totals: { verifies: 100, uses: 10 },
};

test('status prints the fields of an agent', async () => {
  await using daemon = await startFakeDaemon();
  daemon.answer({ body: status });
  const { code, out } = await latchkey('status', '--state-dir', daemon.stateDir);
  expect(code).toBe(0);
  expect(out).toBe(
    [
      'latchkey   0.1.0, agent, up 3h 12m',
      'listening  http://127.0.0.1:8787, http://[::1]:8787, /run/l.sock, /run/till.sock',
      'upstream   down since 2024-02-22T11:23:05+00:00 (2 hr ago), not known yet whether it is a Latchkey, breaker open, no success yet',
      'problem    connection refused, 1 min ago',
      'outbox     12 pending, 1 uncertain, oldest 1m 1s',
      'preload    2 fetched, 1 unknown',
      'records    3 fresh, 1 grace',
      '',
      `warn  the upstream has been unavailable since 2024-02-22T11:23:05+00:00: connection refused  →  changes wait, and are sent by themselves; the doctor says what is wrong: latchkey --state-dir ${daemon.stateDir} doctor`,
      `warn  1 change may have been applied: a person must decide  →  see what each decision would do, and decide: latchkey --state-dir ${daemon.stateDir} outbox list --state uncertain`,
      `warn  2 changes were not applied: the upstream had changed before  →  see what each decision would do, and decide: latchkey --state-dir ${daemon.stateDir} outbox list --state conflicted`,
      '',
    ].join('\n'),
  );
});

test('status says how many license keys the store does not know any more, and since when', async () => {
  await using daemon = await startFakeDaemon();
  const missing_keys = { count: 3, since: '2024-02-22T12:24:05+00:00' };
  daemon.answer({ body: { ...status, missing_keys } });
  const { out } = await latchkey('status', '--state-dir', daemon.stateDir);
  expect(out).toMatch(
    /^warn {2}the store has answered 404 since 2024-02-22T12:24:05\+00:00 for 3 license keys that it knew: /m,
  );
});

test('status of an idle agent is short', async () => {
  await using daemon = await startFakeDaemon();
  const none = { pending: 0, in_flight: 0, uncertain: 0, held: 0, conflicted: 0, oldest_age_s: null };
  const upstream = {
    ...status.upstream,
    state: 'up',
    protocol: 'plain',
    breaker: 'closed',
    last_success_at: '2024-02-22T13:23:05+00:00',
    last_error: null,
    last_error_at: null,
  };
  const outbox = { ...status.outbox, ...none };
  const listeners = {
    tcp: 'https://127.0.0.1:8787',
    other_tcp: [],
    socket: null,
    sockets: [],
    lost: [],
    public: null,
    tls: { not_after: '2024-04-22T13:24:05+00:00' },
  };
  daemon.answer({ body: { ...status, upstream, outbox, listeners, preload: null, records: null } });
  const { out } = await latchkey('status', '--state-dir', daemon.stateDir);
  expect(out).toBe(
    [
      'latchkey     0.1.0, agent, up 3h 12m',
      'listening    https://127.0.0.1:8787',
      'certificate  valid until 2024-04-22T13:24:05+00:00 (in 2 mo)',
      'upstream     up since 2024-02-22T11:23:05+00:00 (2 hr ago), no Latchkey, last success 1 min ago',
      'outbox       empty',
      '',
    ].join('\n'),
  );
});

test('status counts waiting, sent and undecided changes, and reports a wrong clock', async () => {
  await using daemon = await startFakeDaemon();
  const outbox = { ...status.outbox, pending: 0, in_flight: 3, dead: 4, held: 0, conflicted: 0 };
  daemon.answer({
    body: { ...status, outbox, clock: { ...status.clock, suspect: true, store_ahead_s: -7200 } },
  });
  const { out } = await latchkey('status', '--state-dir', daemon.stateDir);
  expect(out).toMatch(/^outbox +3 in flight, 1 uncertain, oldest 1m 1s$/m);
  expect(out).toMatch(/^warn {2}4 changes were refused by the upstream {2}→ /m);
  expect(out).toMatch(
    /^fail {2}this machine and the store differ by 2 hours; one of the two is wrong {2}→ {2}compare /m,
  );
});

test('status shows until when the store asked for a pause', async () => {
  await using daemon = await startFakeDaemon();
  const asked = { state: 'up', last_error: null, last_error_at: null };
  const upstream = { ...status.upstream, ...asked, retry_after: '2024-02-23T13:24:05+00:00' };
  daemon.answer({ body: { ...status, upstream } });
  const { out } = await latchkey('status', '--state-dir', daemon.stateDir);
  expect(out).toMatch(
    /^slowed down +ends 2024-02-23T13:24:05\+00:00 \(in 24 hr\), as the store asked; nothing is sent before$/m,
  );
});

test('status distinguishes a past error from a current one', async () => {
  await using daemon = await startFakeDaemon();
  const upstream = { ...status.upstream, state: 'up', recovered_at: '2024-02-22T13:23:35+00:00' };
  daemon.answer({ body: { ...status, upstream } });
  const { out } = await latchkey('status', '--state-dir', daemon.stateDir);
  expect(out).toMatch(/^last error +connection refused, 1 min ago; recovered 30 sec ago$/m);
  expect(out).not.toContain('problem  ');
});

test.each([
  [
    'full',
    /^fail {2}the disk of the database is full: changes are refused, verify keeps working {2}→ {2}free /m,
  ],
  [
    'damaged',
    /^fail {2}the database is damaged: nothing is changed or sent {2}→ .+: latchkey .+ restore FILE$/m,
  ],
  ['read_only', /^fail {2}the database is read-only: changes are refused, verify keeps working {2}→ /m],
  ['unavailable', /^fail {2}the database cannot be reached {2}→ {2}the doctor says .+: latchkey .+ doctor$/m],
  ['slow', /^fail {2}the database does not answer in time {2}→ {2}the doctor says .+: latchkey .+ doctor$/m],
  [
    'refused',
    /^fail {2}this process cannot use the database {2}→ {2}the doctor says .+: latchkey .+ doctor$/m,
  ],
])('status reports that the storage is %s', async (storage, told) => {
  await using daemon = await startFakeDaemon();
  daemon.answer({ body: { ...status, storage } });
  const { out } = await latchkey('status', '--state-dir', daemon.stateDir);
  expect(out).toMatch(told);
});

const calm = {
  ...status,
  upstream: { ...status.upstream, state: 'up' },
  outbox: { ...status.outbox, held: 0, conflicted: 0 },
};

// Under Wine, doctor also warns that it cannot check access rights.
test.skipIf(isWindows).each<[what: string, changes: object, lines: readonly RegExp[]]>([
  ['nothing where all is well', {}, []],
  [
    'a full disk',
    { storage: 'full' },
    [/^fail {2}the disk of the database is full: changes are refused, verify keeps working {2}→ /],
  ],
  [
    'a database without writes',
    { storage: 'read_only' },
    [/^fail {2}the database is read-only: changes are ref/],
  ],
  [
    'a clock that was set back',
    { clock: { ...status.clock, suspect: true } },
    [
      /^fail {2}the clock of this machine has jumped or was set back {2}→ {2}compare this machine with another clock; .* by NTP$/,
    ],
  ],
  [
    'a clock that differs from that of the store',
    { clock: { ...status.clock, suspect: true, store_ahead_s: 1_728_000 } },
    [
      /^fail {2}this machine and the store differ by 20 days; one of the two is wrong {2}→ {2}compare this machine with/,
    ],
  ],
  [
    'what waits for a person',
    { outbox: { ...status.outbox, held: 1, conflicted: 2, dead: 3 } },
    [
      /^warn {2}1 change may have been applied: a person must decide {2}→ .* outbox list --state uncertain$/,
      /^warn {2}2 changes were not applied: the upstream had changed before {2}→ .* --state conflicted$/,
      /^warn {2}3 changes were refused by the upstream {2}→ .* outbox list --state dead$/,
    ],
  ],
  [
    'that the upstream is away',
    { upstream: status.upstream },
    [/^warn {2}the upstream has been unavailable since 2024-02-22T11:23:05\+00:00: connection refused {2}→ /],
  ],
  [
    'that sync is paused',
    { upstream: { ...calm.upstream, state: 'paused' } },
    [/^warn {2}sync has been paused since .+: no change is sent {2}→ {2}resume it: latchkey .+ sync resume$/],
  ],
])('doctor reports the status of the daemon: %s', async (_, changes, lines) => {
  await using daemon = await startFakeDaemon();
  daemon.answer({ body: { ...calm, ...changes, status: 'ok', reasons: [] } });
  const { code, out } = await latchkey('doctor', '--state-dir', daemon.stateDir);
  const told = out.split('\n').filter((line) => /^(?:warn|fail)/.test(line));
  expect(told).toEqual(lines.map((line) => expect.stringMatching(line) as string));
  expect(code).toBe(told.some((line) => line.startsWith('fail')) ? 1 : 0);
});

test('doctor reports only the remedy for a damaged store', async () => {
  await using daemon = await startFakeDaemon();
  daemon.answer({ status: 503, body: { status: 'unavailable', reasons: ['store_damaged'] } });
  const { code, out } = await latchkey('doctor', '--state-dir', daemon.stateDir);
  expect(code).toBe(1);
  expect(out).toMatch(/^fail +the daemon is not ready: store_damaged .+ restore FILE$/m);
  // Its status is read from the very store that is damaged.
  expect(daemon.received.map(({ line }) => line)).toEqual(['GET /readyz']);
});

test('status of an authority shows no upstream', async () => {
  await using daemon = await startFakeDaemon();
  daemon.answer({ body: { ...status, role: 'authority', upstream: null, outbox: null } });
  const { out } = await latchkey('status', '--state-dir', daemon.stateDir);
  expect(out).toMatch(/^latchkey .*authority/);
  expect(out).not.toMatch(/upstream|outbox/);
});

test('status --json prints the whole status', async () => {
  await using daemon = await startFakeDaemon();
  daemon.answer({ body: status });
  const { out } = await latchkey('status', '--json', '--state-dir', daemon.stateDir);
  expect(JSON.parse(out)).toEqual(status);
});

test('status --check succeeds when the daemon is ready, and sends no token', async () => {
  await using daemon = await startFakeDaemon();
  daemon.answer({ body: { status: 'ok', reasons: [] } });
  expect(await latchkey('status', '--check', '--state-dir', daemon.stateDir)).toMatchObject({
    code: 0,
    out: 'ok\n',
  });
  expect(daemon.received[0]?.line).toBe('GET /readyz');
  expect(daemon.received[0]?.headers).not.toHaveProperty('authorization');
});

test('status --check fails when the daemon is not ready, and prints the reasons', async () => {
  await using daemon = await startFakeDaemon();
  daemon.answer({ status: 503, body: { status: 'unavailable', reasons: ['draining'] } });
  expect(await latchkey('status', '--check', '--state-dir', daemon.stateDir)).toMatchObject({
    code: 1,
    out: 'unavailable\ndraining\n',
  });
});

test('outbox list prints a table', async () => {
  await using daemon = await startFakeDaemon();
  daemon.answer({ body: { data: { operations: [operation] } } });
  const { code, out } = await latchkey('outbox', 'list', '--state', 'dead', '--state-dir', daemon.stateDir);
  expect(code).toBe(0);
  expect(out).toBe(
    [
      'ID      CHANGE  ABOUT  STATE  ATTEMPTS  WAITS FOR      UNTIL  LAST ERROR',
      '0192-a  usage   K      dead   3         your decision  -      HTTP 404',
      '',
    ].join('\n'),
  );
  expect(daemon.received[0]?.line).toBe('GET /admin/v1/outbox?state=dead&explain=true&limit=100&offset=0');
});

test('outbox list --key lists the changes of a license key and marks held changes', async () => {
  await using daemon = await startFakeDaemon();
  const held = { ...operation, state: 'uncertain', held: true, next_at: '2026-03-01T12:00:40+00:00' };
  daemon.answer({ body: { data: { operations: [held] } } });
  const { out } = await latchkey('outbox', 'list', '--key', 'K 1', '--state-dir', daemon.stateDir);
  expect(out).toMatch(/^0192-a +usage +K +uncertain, held +3 +your decision +- +HTTP 404$/m);
  expect(daemon.received[0]?.line).toBe(
    'GET /admin/v1/outbox?license_key=K+1&explain=true&limit=100&offset=0',
  );
});

test.each([
  ['upstream_away', 'the store'],
  ['behind', 'an earlier change'],
  ['reconcile_delay', 'the reconcile delay'],
  ['turn', 'its turn \\(sync.rate\\)'],
])('outbox list prints why a change waits, and until when: %s', async (cause, words) => {
  await using daemon = await startFakeDaemon();
  const waits = [{ cause, detail: 'A sentence.', until: '2026-03-01T12:00:40+00:00' }];
  const explanation = { ...operation.explanation, waits };
  const waiting = { ...operation, state: 'pending', explanation };
  daemon.answer({ body: { data: { operations: [waiting] } } });
  const { out } = await latchkey('outbox', 'list', '--state-dir', daemon.stateDir);
  expect(out).toMatch(new RegExp(`pending +3 +${words} +2026-03-01T12:00:40\\+00:00.* +HTTP 404$`, 'm'));
});

test.each([
  [{ pending: 3 }, { rate: 5 }, '3 pending, at least 1 s at 5 requests a second (sync.rate)'],
  [{ pending: 900, in_flight: 1 }, { rate: 5 }, 'at least 3 min at 5 requests a second (sync.rate)'],
  [{ pending: 90_000 }, { rate: 5 }, 'at least 5 h at 5 requests a second (sync.rate)'],
  [{ pending: 3 }, { rate: 5, protocol: 'latchkey' }, '3 pending'],
  [{}, { rate: 5 }, 'empty'],
  [{ pending: 3 }, {}, '3 pending'],
])('status says how long the outbox takes at least: %j, %j', async (outbox, upstream, expected) => {
  await using daemon = await startFakeDaemon();
  const none = { pending: 0, in_flight: 0, uncertain: 0, oldest_age_s: null };
  const body = {
    ...status,
    outbox: { ...status.outbox, ...none, ...outbox },
    upstream: { ...status.upstream, protocol: 'plain', ...upstream },
  };
  daemon.answer({ body });
  const { out } = await latchkey('status', '--state-dir', daemon.stateDir);
  expect(/^outbox +(.*)$/m.exec(out)?.[1]).toMatch(new RegExp(`${RegExp.escape(expected)}$`));
});

test('status says that the upstream is failing before it is down', async () => {
  await using daemon = await startFakeDaemon();
  const shown = async (upstream: object): Promise<string | undefined> => {
    daemon.answer({ body: { ...status, upstream: { ...status.upstream, ...upstream } } });
    const { out } = await latchkey('status', '--state-dir', daemon.stateDir);
    return /^upstream +(.*)$/m.exec(out)?.[1];
  };
  const failing = {
    state: 'up',
    breaker: 'closed',
    protocol: 'plain',
    last_success_at: '2024-02-22T13:22:45+00:00',
    last_error_at: '2024-02-22T13:24:00+00:00',
    recovered_at: null,
  };
  expect(await shown(failing)).toBe('failing, no Latchkey, last success 1 min ago');
  expect(await shown({ ...failing, state: 'unknown', protocol: 'unknown', last_success_at: null })).toBe(
    'failing, not known yet whether it is a Latchkey, no success yet',
  );
  // Another request succeeded: only one credential is refused, for example.
  expect(await shown({ ...failing, paused_products: ['RGsF'] })).toContain('up since ');
  expect(await shown({ ...failing, last_error_at: '2024-02-22T13:22:00+00:00' })).toContain('up since ');
});

test('outbox show of a change without a license key prints its subject', async () => {
  await using daemon = await startFakeDaemon();
  const explanation = {
    ...operation.explanation,
    expected_uses: null,
    shown: { uses: 1, enabled: false, at: '2026-03-01T11:57:00+00:00' },
  };
  const coupon = {
    kind: 'create_coupon',
    license_key: null,
    subject: 'SPRING',
    base_uses: null,
    last_error: null,
  };
  daemon.answer({ body: { data: { ...operation, ...coupon, explanation } } });
  const { out } = await latchkey('outbox', 'show', '0192/a', '--state-dir', daemon.stateDir);
  expect(out).toMatch(/^change +create_coupon\nabout +SPRING\n/m);
  expect(out).toMatch(/^store said +1 use, disabled, 3 min ago$/m);
  expect(out).not.toMatch(/^(?:sent on|last error)/m);
  expect(daemon.received[0]?.line).toBe('GET /admin/v1/outbox/0192%2Fa');
});

test('outbox show prints one change', async () => {
  await using daemon = await startFakeDaemon();
  daemon.answer({ body: { data: operation } });
  const { out } = await latchkey('outbox', 'show', '0192-a', '--state-dir', daemon.stateDir);
  expect(out).toBe(
    [
      'id           0192-a',
      'change       usage',
      'license key  K',
      'state        dead',
      'meaning      It was not applied: the store refused it.',
      'created      2024-02-22T11:23:05+00:00 (2 yr ago)',
      'attempts     3',
      'sent on      4 uses; applied alone, it makes 5 uses',
      'store said   7 uses, enabled, 3 min ago',
      'last error   HTTP 404',
      '',
      'What you can do (recorded in the audit log):',
      '',
      'retry  It is sent again.',
      'drop   It is not sent.',
      '',
      `latchkey --state-dir ${daemon.stateDir} outbox retry 0192-a`,
      `latchkey --state-dir ${daemon.stateDir} outbox drop 0192-a`,
      '',
    ].join('\n'),
  );
  expect(daemon.received[0]?.line).toBe('GET /admin/v1/outbox/0192-a');
});

test('outbox show prints what a change waits for, and how long', async () => {
  await using daemon = await startFakeDaemon();
  const waits = [
    { cause: 'upstream_away', detail: 'The store is away', until: '2026-03-01T12:00:40+00:00' },
    { cause: 'behind', detail: 'Earlier changes go first', until: null },
  ];
  const explanation = {
    ...operation.explanation,
    waits,
    decisions: { retry: null, drop: null, confirm: null },
  };
  daemon.answer({ body: { data: { ...operation, state: 'pending', explanation } } });
  const { out } = await latchkey('outbox', 'show', '0192-a', '--state-dir', daemon.stateDir);
  expect(out).toContain('waits for    The store is away: in 40 sec\n             Earlier changes go first\n');
  expect(out).not.toContain('decided');
});

test('outbox decide names each change whose decision is refused, and then exits with 1', async () => {
  await using daemon = await startFakeDaemon();
  const [title, detail] = ['The change is not open', 'The change is delivered.'];
  daemon.answer(
    { body: { data: { operations: [operation] } } },
    { status: 409, body: { title, code: 'operation_not_open', detail } },
  );
  const { code, out } = await latchkey('outbox', 'decide', 'retry', '--all', '--state-dir', daemon.stateDir);
  expect({ code, out }).toEqual({ code: 1, out: `retry: 0 changes.\n0192-a: ${detail}\n` });
});

test.each(['retry', 'drop', 'confirm'])(
  'outbox %s is sent for the change, which is shown after it',
  async (word) => {
    await using daemon = await startFakeDaemon();
    daemon.answer({ body: { data: { ...operation, state: 'uncertain', held: true } } });
    const { code, out } = await latchkey('outbox', word, '0192-a', '--state-dir', daemon.stateDir);
    expect(code).toBe(0);
    expect(out).toContain('state        uncertain, held');
    expect(daemon.received[0]?.line).toBe(`POST /admin/v1/outbox/0192-a/${word}`);
  },
);

test.each(['now', 'pause', 'resume'])('sync %s shows how the way up stands after it', async (word) => {
  await using daemon = await startFakeDaemon();
  const { upstream, outbox } = status;
  daemon.answer({ body: { data: { upstream: { ...upstream, state: 'paused' }, outbox } } });
  const { code, out } = await latchkey('sync', word, '--state-dir', daemon.stateDir);
  expect(code).toBe(0);
  expect(out).toBe(
    [
      'upstream  paused since 2024-02-22T11:23:05+00:00 (2 yr ago), not known yet whether it is a Latchkey, breaker open, no success yet',
      'outbox    12 pending, 1 uncertain, oldest 1m 1s',
      `note      nothing is sent to the store until: latchkey --state-dir ${daemon.stateDir} sync resume`,
      '',
    ].join('\n'),
  );
  expect(daemon.received[0]?.line).toBe(`POST /admin/v1/sync/${word}`);
});

test('status shows the refused credentials, the inferred changes, and what to do', async () => {
  await using daemon = await startFakeDaemon();
  const upstream = {
    ...status.upstream,
    state: 'paused',
    paused_products: ['RGsF', 'Xy'],
    coupons_paused: true,
  };
  const outbox = { ...status.outbox, held: 0, conflicted: 0, inferred: 4 };
  daemon.answer({ body: { ...status, upstream, outbox } });
  const { out } = await latchkey('status', '--state-dir', daemon.stateDir);
  const resume = `: latchkey --state-dir ${daemon.stateDir} sync resume`;
  expect(out.split('\n').filter((line) => line.endsWith(resume))).toEqual([
    expect.stringContaining(
      'fail  the upstream refuses the secret of the product RGsF: its changes wait  →  put',
    ),
    expect.stringContaining(
      'fail  the upstream refuses the secret of the product Xy: its changes wait  →  put',
    ),
    expect.stringContaining('fail  the upstream refuses the API key: changes of coupons wait  →  put'),
    expect.stringContaining('warn  sync has been paused since 2024-02-22T11:23:05+00:00: no change is sent'),
  ]);
  expect(out).toContain(
    `inferred   4 probably applied, without proof: see latchkey --state-dir ${daemon.stateDir} outbox list --state inferred`,
  );
  expect(out).not.toContain('outbox list --state dead');
});

test('an error of the daemon is printed with title, detail and parameters, and as JSON with --json', async () => {
  await using daemon = await startFakeDaemon();
  const errors = [
    { parameter: 'limit', code: 'out_of_range', detail: 'must be 1 to 100' },
    { parameter: 'offset', code: 'out_of_range', detail: 'offset must not be negative.' },
  ];
  daemon.answer(problem(422, 'parameters_invalid', { detail: 'Not valid: limit, offset.', errors }));
  const argv = ['coupon', 'list', '--limit', '0', '--offset', '-1', '--state-dir', daemon.stateDir];
  const refused = await latchkey(...argv);
  expect(refused).toEqual({
    code: 1,
    out: '',
    err: [
      'latchkey: Title of parameters_invalid (parameters_invalid)',
      'Not valid: limit, offset.',
      '  limit: must be 1 to 100',
      '  offset must not be negative.',
      '',
    ].join('\n'),
  });
  const machine = await latchkey(...argv, '--json');
  expect(machine).toMatchObject({ code: 1, out: '' });
  expect(JSON.parse(machine.err)).toEqual({
    error: {
      code: 'parameters_invalid',
      detail: 'Not valid: limit, offset.',
      exit_code: 1,
      answer: expect.objectContaining({ code: 'parameters_invalid', errors }) as unknown,
    },
  });
});

test('a response of another program is reported', async () => {
  await using daemon = await startFakeDaemon();
  daemon.answer({ status: 502, body: '<html>' });
  expect(await latchkey('status', '--state-dir', daemon.stateDir)).toMatchObject({
    code: 1,
    err: expect.stringContaining('502') as string,
  });
  daemon.answer({ body: '<html>' });
  expect(await latchkey('status', '--state-dir', daemon.stateDir)).toMatchObject({
    code: 1,
    err: expect.stringContaining('cannot read the daemon') as string,
  });
});

test('text of buyers cannot control the terminal', async () => {
  await using daemon = await startFakeDaemon();
  const hostile = '\u001B]0;owned\u0007\u009B31m\u202Etxt\nfake';
  daemon.answer({ body: { data: { ...operation, last_error: hostile } } });
  const text = await latchkey('outbox', 'show', 'x', '--state-dir', daemon.stateDir);
  expect(text.out).not.toMatch(/(?!\n)[\p{Cc}\p{Bidi_Control}]/u);
  const machine = await latchkey('outbox', 'show', 'x', '--json', '--state-dir', daemon.stateDir);
  expect(machine.out).not.toMatch(/(?!\n)\p{Cc}/u);
  expect(JSON.parse(machine.out)).toMatchObject({ last_error: hostile });
});
