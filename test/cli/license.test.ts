import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { latchkey } from '../support/process/command-line.ts';
import { startDaemonProcess } from '../support/process/daemon-process.ts';
import { license, problem, startFakeDaemon } from '../support/process/fake-daemon.ts';
import { temporaryDirectory } from '../support/temporary.ts';

test('verify prints that an enabled key is valid, and the freshness', async () => {
  await using daemon = await startFakeDaemon();
  daemon.answer({
    headers: {
      'latchkey-freshness': 'stale',
      'latchkey-confirmed-at': '2026-02-27T12:00:00+00:00',
      'latchkey-grace-until': '2026-03-13T12:00:00+00:00',
      'latchkey-pending': '1',
    },
    body: { data: license },
  });
  const outcome = await latchkey('verify', 'ABCDE FGHJK', '--state-dir', daemon.stateDir);
  expect(outcome).toEqual({
    code: 0,
    out: [
      'valid        ABCDE-FGHJK-LMNPQ-RSTUV',
      'uses         3',
      'product      RGsF',
      'buyer        buyer@example.com',
      'created      2024-02-22T11:23:05+00:00 (2 yr ago)',
      'freshness    stale',
      'confirmed    2026-02-27T12:00:00+00:00 (2 days ago)',
      'grace until  2026-03-13T12:00:00+00:00 (in 12 days)',
      'pending      1',
      '',
    ].join('\n'),
    err: '',
  });
  expect(daemon.received).toMatchObject([
    {
      line: 'GET /api/v2/license/verify?license_key=ABCDE+FGHJK',
      listener: 'socket',
      headers: { authorization: 'Bearer lk_admin_secret', host: 'localhost' },
    },
    { line: 'GET /admin/v1/outbox?license_key=ABCDE-FGHJK-LMNPQ-RSTUV&limit=100' },
  ]);
});

test('verify prints that a key is disabled, and exits with 1', async () => {
  await using daemon = await startFakeDaemon();
  daemon.answer({ body: { data: { ...license, enabled: false } } });
  const outcome = await latchkey('verify', 'K', '--state-dir', daemon.stateDir);
  expect(outcome.code).toBe(1);
  expect(outcome.out).toMatch(/^disabled {2}ABCDE/);
});

test('verify reports an unknown key, and exits with 1', async () => {
  await using daemon = await startFakeDaemon();
  daemon.answer(problem(404, 'license_not_found', { detail: 'There is no such key.' }));
  expect(await latchkey('verify', 'K', '--state-dir', daemon.stateDir)).toEqual({
    code: 1,
    out: '',
    err: 'latchkey: Title of license_not_found (license_not_found)\nThere is no such key.\n',
  });
});

test.each(['verify', 'use', 'unuse', 'disable'])(
  '%s joins the groups of a key, in any letter case',
  async (name) => {
    await using daemon = await startFakeDaemon();
    daemon.answer({ body: { data: license } });
    const groups = ['wtkp4', '66NL5', 'HMKQW', 'GFSCZ'];
    expect(await latchkey(name, ...groups, '--state-dir', daemon.stateDir)).toMatchObject({ code: 0 });
    const [asked] = daemon.received;
    expect(`${asked?.line} ${asked?.body}`).toContain('license_key=WTKP4-66NL5-HMKQW-GFSCZ');
  },
);

test.each([
  [['License', 'key:', 'KEY-1.'], 'KEY-1'],
  [['WTKP4', '\u2013', '66NL5', '-', 'HMKQW', 'GFSCZ'], 'WTKP4-66NL5-HMKQW-GFSCZ'],
])('verify reads the words %j as one key', async (words, licenseKey) => {
  await using daemon = await startFakeDaemon();
  daemon.answer({ body: { data: license } });
  expect(await latchkey('verify', ...words, '--state-dir', daemon.stateDir)).toMatchObject({ code: 0 });
  expect(daemon.received[0]?.line).toContain(`license_key=${licenseKey}`);
});

test('verify rejects words that are not the groups of one key', async () => {
  const outcome = await latchkey('verify', 'ABCDE-FGHJK-LMNPQ-RSTUV', 'WTKP4-66NL5-HMKQW-GFSCZ');
  expect(outcome).toMatchObject({ code: 2, err: expect.stringContaining('Give one license key') as string });
});

test('verify gets a problem, whatever dialect other software gets', async () => {
  await using directory = temporaryDirectory();
  await using _daemon = await startDaemonProcess(directory.path, {
    listen: { tcp: '127.0.0.1:0', dialect: 'payhip', unknown: 'reset' },
    upstream: { base_url: 'http://127.0.0.1:9' },
    products: [{ key: 'RGsF', secret: 'secret-of-the-product' }],
  });
  const { code, out, err } = await latchkey('verify', 'K', '--state-dir', join(directory.path, 'state'));
  expect([code, out]).toEqual([1, '']);
  expect(err).toContain('(upstream_unreachable)');
});

test('verify --json prints the data of the response', async () => {
  await using daemon = await startFakeDaemon();
  for (const enabled of [true, false]) {
    const data = { ...license, enabled, something_new: [1] };
    daemon.answer({ body: { data } });
    const { code, out } = await latchkey('verify', 'K', '--json', '--state-dir', daemon.stateDir);
    expect(JSON.parse(out)).toEqual(data);
    expect(code).toBe(enabled ? 0 : 1);
  }
});

test.each([['-K'], ['--help'], ['--version'], ['0012'], ['1e5']])(
  'verify -- %s verifies this key',
  async (key) => {
    await using daemon = await startFakeDaemon();
    daemon.answer({ body: { data: license } });
    await latchkey('verify', '--state-dir', daemon.stateDir, '--', key);
    expect(daemon.received.map(({ line }) => line)).toEqual([
      `GET /api/v2/license/verify?license_key=${key}`,
    ]);
  },
);

test.each([
  ['use', 'usage'],
  ['unuse', 'decrease'],
  ['enable --refunded', 'enable'],
  ['disable', 'disable'],
])('%s changes the license by its endpoint', async (command, endpoint) => {
  await using daemon = await startFakeDaemon();
  daemon.answer({ body: { data: license } });
  const { code, out } = await latchkey(...command.split(' '), 'A&B', '--state-dir', daemon.stateDir);
  expect(code).toBe(0);
  expect(out).toContain('uses     3');
  expect(daemon.received).toMatchObject([
    {
      line: `PUT /api/v2/license/${endpoint}`,
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      body: 'license_key=A%26B',
    },
  ]);
});

test('enable works on an agent, which knows no refunds', async () => {
  await using daemon = await startFakeDaemon();
  daemon.answer({ status: 409, body: { title: 'This is an agent', code: 'not_the_authority' } });
  await latchkey('enable', 'K', '--state-dir', daemon.stateDir);
  expect(daemon.received.map(({ line }) => line)).toEqual([
    'GET /admin/v1/licenses?license_key=K',
    'PUT /api/v2/license/enable',
  ]);
});

const purchase = {
  purchase_id: 'p1',
  date: license['date'],
  refunded: false,
  refunded_at: null,
  license,
};
const soldLicense = {
  ...license,
  purchase_id: 'p1',
  refunded_at: null,
  state: 'enabled',
  freshness: null,
  confirmed_at: null,
  pending: null,
};

/** As an agent has stored it. */
const stored = {
  ...soldLicense,
  purchase_id: null,
  freshness: 'stale',
  confirmed_at: license['date'],
  pending: 0,
};

test('license issue records a purchase', async () => {
  await using daemon = await startFakeDaemon();
  daemon.answer({ status: 201, body: { data: purchase } });
  const argv = ['license', 'issue', '--product', 'RGsF', '--email', 'buyer@example.com'];
  const { code, out } = await latchkey(...argv, '--state-dir', daemon.stateDir);
  expect(code).toBe(0);
  expect(out).toMatch(
    /^purchase {2}p1\nsold {6}2024-02-22T11:23:05\+00:00 \(2 yr ago\)\nrefunded {2}no\nvalid {5}ABCDE-FGHJK-LMNPQ-RSTUV\n/,
  );
  const [received] = daemon.received;
  expect(received?.line).toBe('POST /admin/v1/purchases');
  expect(JSON.parse(received?.body ?? '')).toEqual({ product_key: 'RGsF', buyer_email: 'buyer@example.com' });
});

test.each([
  ['2024-02-22', '2024-02-22T00:00:00+00:00', ''],
  ['2024-02-30', undefined, '--date must be a duration'],
])('license issue reads the date %s as the start of the day', async (date, sent, err) => {
  await using daemon = await startFakeDaemon();
  daemon.answer({ status: 201, body: { data: purchase } });
  const sale = ['--product', 'RGsF', '--email', 'buyer@example.com', '--date', date];
  const outcome = await latchkey('license', 'issue', ...sale, '--state-dir', daemon.stateDir);
  expect(outcome.err).toContain(err);
  const [received] = daemon.received.map(({ body }) => JSON.parse(body) as { date: string });
  expect(received?.date).toBe(sent);
});

test('license issue accepts date, uses and state of a purchase', async () => {
  await using daemon = await startFakeDaemon();
  daemon.answer({ status: 201, body: { data: purchase } });
  const sale = ['--product', 'RGsF', '--email', 'buyer@example.com', '--key', 'OLD-1'];
  const taken = ['--date', '2024-02-22T11:23:05Z', '--uses', '3', '--enabled', 'false'];
  const { code } = await latchkey('license', 'issue', ...sale, ...taken, '--state-dir', daemon.stateDir);
  expect(code).toBe(0);
  expect(JSON.parse(daemon.received[0]?.body ?? '')).toMatchObject({
    license_key: 'OLD-1',
    date: '2024-02-22T11:23:05+00:00',
    uses: 3,
    enabled: 'false',
  });
});

test('license list distinguishes refunded keys from disabled keys', async () => {
  await using daemon = await startFakeDaemon();
  const refunded_at = '2026-02-01T00:00:00+00:00';
  const licenses = [
    { ...soldLicense, license_key: 'A' },
    { ...soldLicense, license_key: 'B', enabled: false, state: 'disabled' },
    { ...soldLicense, license_key: 'C', enabled: false, state: 'refunded', refunded_at },
    { ...soldLicense, license_key: 'D', refunded_at },
  ];
  daemon.answer({ body: { data: { licenses } } });
  const { out } = await latchkey('license', 'list', '--state-dir', daemon.stateDir);
  const states = out.split('\n').map((line) => line.split(/ {2,}/).slice(0, 2).join(': '));
  expect(states.slice(1, 5)).toEqual(['A: valid', 'B: disabled', 'C: refunded', 'D: valid, refunded']);
});

test.each([
  ['not_offered_by_holder', ['/admin/v1/licenses', '/api/v2/license/verify']],
  ['scope_missing', ['/admin/v1/licenses']],
])('license show uses verify on a holder: %s', async (code, asked) => {
  await using daemon = await startFakeDaemon();
  daemon.answer({ status: 403, body: { title: 'No', code } });
  const shown = await latchkey('license', 'show', 'K', '--state-dir', daemon.stateDir);
  expect(shown).toMatchObject({ code: 1, out: '', err: expect.stringContaining(code) as string });
  expect(daemon.received.map(({ line }) => line)).toEqual(asked.map((path) => `GET ${path}?license_key=K`));
});

test('license show uses verify on an agent, which asks the upstream', async () => {
  await using daemon = await startFakeDaemon();
  daemon.answer({ body: { data: { ...license, licenses: [stored] } } });
  const shown = await latchkey('license', 'show', 'K', '--state-dir', daemon.stateDir);
  expect(shown).toMatchObject({ code: 0, err: '' });
  expect(daemon.received.map(({ line }) => line)).toEqual([
    'GET /admin/v1/licenses?license_key=K',
    'GET /api/v2/license/verify?license_key=K',
  ]);
});

describe('license show at an agent, for a key that the store has answered 404', () => {
  const since = '2026-02-28T09:00:00+00:00';
  const line = `The store has answered 404 for this key since ${since}.`;
  const missing = { ...stored, missing_since: since };
  const show = async (daemon: Awaited<ReturnType<typeof startFakeDaemon>>) =>
    await latchkey('license', 'show', 'K', '--state-dir', daemon.stateDir);

  test('license show says since when, after the answer that the agent still gives', async () => {
    await using daemon = await startFakeDaemon();
    const headers = { 'latchkey-confirmed-at': '2026-02-27T12:00:00+00:00' };
    daemon.answer({ headers, body: { data: { ...license, licenses: [missing] } } });
    const { code, out } = await show(daemon);
    expect(code).toBe(0);
    expect(out).toMatch(/^valid/);
    expect(out).toContain(line);
  });

  test('license show says nothing if the store has found the key again', async () => {
    await using daemon = await startFakeDaemon();
    const headers = { 'latchkey-confirmed-at': '2026-02-28T10:00:00+00:00' };
    daemon.answer({ headers, body: { data: { ...license, licenses: [missing] } } });
    expect((await show(daemon)).out).not.toContain('404');
  });

  test('license show says since when, also if the agent refuses the key', async () => {
    await using daemon = await startFakeDaemon();
    daemon.answer(
      { body: { data: { licenses: [{ ...missing, state: 'gone' }] } } },
      problem(404, 'license_not_found', { detail: 'There is no such key.' }),
    );
    const { code, err } = await show(daemon);
    expect(code).toBe(1);
    expect(err).toContain('There is no such key.');
    expect(err).toContain(line);
  });
});

test('license list shows the state and the freshness of the licenses that an agent has stored', async () => {
  await using daemon = await startFakeDaemon();
  const gone = { ...stored, state: 'gone', freshness: 'grace' };
  daemon.answer({ body: { data: { licenses: [gone] } } });
  const { out } = await latchkey('license', 'list', '--search', 'AB', '--state-dir', daemon.stateDir);
  const [head = '', row = ''] = out.split('\n').map((line) => line.split(/ {2,}/).join(' | '));
  expect(head).toMatch(/CREATED \| FRESHNESS$/);
  expect(row).toMatch(/^ABCDE-FGHJK-LMNPQ-RSTUV \| gone \|.* \| grace$/);
  expect(daemon.received[0]?.line).toBe('GET /admin/v1/licenses?search=AB&limit=100&offset=0');
});

test('license list passes its filters on and says how to continue', async () => {
  await using daemon = await startFakeDaemon();
  daemon.answer({ headers: { 'x-total-count': '42' }, body: { data: { licenses: [soldLicense] } } });
  const argv = ['license', 'list', '--enabled', 'true', '--product', 'RGsF', '--limit', '1', '--offset', '2'];
  const { code, out } = await latchkey(...argv, '--state-dir', daemon.stateDir);
  expect(code).toBe(0);
  expect(out).toBe(
    [
      'LICENSE KEY              STATE  USES  PRODUCT  BUYER              CREATED',
      'ABCDE-FGHJK-LMNPQ-RSTUV  valid  3     RGsF     buyer@example.com  2024-02-22T11:23:05+00:00',
      '',
      '3 of 42; continue with --offset 3, or show them all with --all',
      '',
    ].join('\n'),
  );
  expect(daemon.received.map(({ line }) => line)).toEqual([
    'GET /admin/v1/licenses?product_key=RGsF&enabled=true&limit=1&offset=2',
  ]);
  await latchkey('license', 'list', '--account', 'a1', '--email', 'A@x.org', '--state-dir', daemon.stateDir);
  expect(daemon.received.at(-1)?.line).toBe(
    'GET /admin/v1/licenses?account_id=a1&buyer_email=A%40x.org&limit=100&offset=0',
  );
});
