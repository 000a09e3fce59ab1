import { expect, test } from 'vitest';
import { latchkey } from '../support/process/command-line.ts';
import { startFakeDaemon } from '../support/process/fake-daemon.ts';

const act = {
  id: 7,
  at: '2026-01-02T03:04:05+00:00',
  actor: 'token:t1',
  act: 'purchase.refund',
  subject: 'p1',
  detail: '',
};

test('audit list prints a table of acts and passes its filters on', async () => {
  await using daemon = await startFakeDaemon();
  daemon.answer({ body: { data: { acts: [act] } } });
  const filters = ['--actor', 'token:t1', '--act', 'purchase.refund', '--subject', 'p1'];
  const times = ['--since', '2026-01-01', '--until', '2026-01-03T00:00:00+01:00'];
  const { code, out } = await latchkey('audit', 'list', ...filters, ...times, '--state-dir', daemon.stateDir);
  expect(code).toBe(0);
  expect(out).toBe(
    [
      'ID  AT                         ACTOR     ACT              SUBJECT  DETAIL',
      '7   2026-01-02T03:04:05+00:00  token:t1  purchase.refund  p1       -',
      '',
    ].join('\n'),
  );
  const { pathname, searchParams } = new URL(daemon.received[0]?.line.split(' ')[1] ?? '', 'http://x');
  expect([pathname, Object.fromEntries(searchParams)]).toEqual([
    '/admin/v1/audit',
    {
      actor: 'token:t1',
      act: 'purchase.refund',
      subject: 'p1',
      since: '2026-01-01T00:00:00+00:00',
      until: '2026-01-02T23:00:00+00:00',
      limit: '100',
      offset: '0',
    },
  ]);
});

test('audit list --since 24h starts a day ago', async () => {
  await using daemon = await startFakeDaemon();
  daemon.answer({ body: { data: { acts: [] } } });
  await latchkey('audit', 'list', '--since', '24h', '--state-dir', daemon.stateDir);
  const { searchParams } = new URL(daemon.received[0]?.line.split(' ')[1] ?? '', 'http://x');
  const ago = Date.now() - Date.parse(searchParams.get('since') ?? '');
  expect(Math.round(ago / 3_600_000)).toBe(24);
});

test.each(['yesterday', '2026-02-30', '24', '999999999d', '1000000d', '0000-01-01'])(
  'audit list --since %s is a usage error',
  async (since) => {
    const { code, err } = await latchkey('audit', 'list', '--since', since);
    expect([code, err]).toEqual([2, expect.stringContaining('--since must be a duration')]);
  },
);

test('audit show prints one act', async () => {
  await using daemon = await startFakeDaemon();
  daemon.answer({ body: { data: { ...act, detail: 'product P' } } });
  const { out } = await latchkey('audit', 'show', '7', '--state-dir', daemon.stateDir);
  expect(out).toContain('act      purchase.refund\nsubject  p1\ndetail   product P\n');
  expect(daemon.received[0]?.line).toBe('GET /admin/v1/audit/7');
});

test('license history prints a table of the changes of a key', async () => {
  await using daemon = await startFakeDaemon();
  const step = { at: act.at, credential: 'product:P', before: { uses: 1, enabled: true } };
  const changes = [
    { ...step, change: 'disable', after: { uses: 1, enabled: false } },
    { ...step, change: 'usage', after: { uses: 2, enabled: true } },
  ];
  daemon.answer({ body: { data: { changes } } });
  const { out } = await latchkey('license', 'history', '--state-dir', daemon.stateDir, '--', '-A/B');
  expect(out).toBe(
    [
      'AT                         CHANGE   BY CREDENTIAL  USES   STATE',
      '2026-01-02T03:04:05+00:00  disable  product:P      1      valid → disabled',
      '2026-01-02T03:04:05+00:00  usage    product:P      1 → 2  valid',
      '',
    ].join('\n'),
  );
  expect(daemon.received[0]?.line).toBe('GET /admin/v1/licenses/-A%2FB/history?limit=100&offset=0');
});
