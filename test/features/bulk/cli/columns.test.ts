import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { latchkey } from '../../../support/process/command-line.ts';
import { startFakeDaemon } from '../../../support/process/fake-daemon.ts';

type Outcome = Awaited<ReturnType<typeof latchkey>> & { sent: unknown[] };

/** Imports lines of CSV with options; `sent`: the rows that arrived. */
async function importLines(noun: string, lines: readonly string[], ...options: string[]): Promise<Outcome> {
  await using daemon = await startFakeDaemon();
  const file = join(daemon.stateDir, 'file.csv');
  await writeFile(file, lines.join('\n'));
  daemon.answer({ body: { data: { imported: 1, unchanged: 0, ignored: [], rejected: [] } } });
  const outcome = await latchkey(noun, 'import', file, '--state-dir', daemon.stateDir, ...options);
  const sent = daemon.received.flatMap(({ body }) => {
    return (JSON.parse(body) as Record<string, unknown[]>)[`${noun}s`] ?? [];
  });
  return { ...outcome, err: outcome.err.replaceAll(file, 'FILE'), sent };
}

const states = [
  'status',
  'disabled',
  'Refunded?',
  'isActive',
  'Valid until',
  'revoked_on',
  // Databases write names without quotes in lower case.
  'isdisabled',
  'refundedat',
  'expirydate',
  'orderstatus',
  'validuntil',
];

test.each(states)('a column that looks like a state is not ignored without a word: %s', async (name) => {
  const lines = [`license_key,buyer_email,${name}`, 'A,a@example.com,x'];
  for (const option of [[], ['--dry-run'], ['--json']]) {
    const refused = await importLines('license', lines, ...option);
    expect([refused.code, refused.out, refused.sent]).toEqual([1, '', []]);
    expect(refused.err).toContain(`look like states, and are not imported: ${name}.`);
    expect(refused.err).toContain(`--ignore '${name}'`);
  }
  const dismissed = await importLines('license', lines, '--ignore', name);
  expect(dismissed).toMatchObject({
    code: 0,
    out: `1 imported, 0 unchanged, 0 rejected\nIgnored columns: ${name}\n`,
  });
});

test('ignored columns are named in JSON, and also in a dry run', async () => {
  const lines = ['license_key,buyer_email,Note,Order id', 'A,a@example.com,x,7'];
  const { out } = await importLines('license', lines, '--json');
  expect(JSON.parse(out)).toMatchObject({ imported: 1, ignored: ['Note', 'Order id'] });
  const tried = await importLines('license', lines, '--dry-run');
  expect(tried.out).toContain('Ignored columns: Note, Order id\n');
});

const header = 'license_key,buyer_email';

test.for<readonly [map: string, column: string, cells: Record<string, string | null>]>([
  ['enabled=status:active|inactive', 'status', { active: 'true', Inactive: 'false', paused: null, '': null }],
  ['enabled=status:1,2|0,3,4', 'status', { 1: 'true', 2: 'true', 0: 'false', 3: 'false', 5: null }],
  ['enabled=disabled:no,-|yes', 'disabled', { no: 'true', yes: 'false', '': 'true', 'N/A': 'true' }],
  ['enabled=status:active|*', 'status', { active: 'true', whatever: 'false', '': 'false' }],
  [
    'enabled=revoked_on:-|*',
    'revoked_on',
    {
      '2020-01-01': 'false',
      '0000-00-00': 'true',
      // Programs write the first instant of their calendar for no date.
      '0001-01-01T00:00:00Z': 'true',
      '1970-01-01': 'true',
    },
  ],
  ['refunded=Refund state:done|none', 'Refund state', { done: 'true', none: 'false', asked: null }],
])('a map of values reads the words of a file: %j', async ([map, column, cells]) => {
  for (const [cell, value] of Object.entries(cells)) {
    const lines = [`${header},${column}`, `A,a@example.com,${cell}`];
    const { sent, err } = await importLines('license', lines, '--map', map);
    const [name = ''] = map.split('=');
    const row = { license_key: 'A', buyer_email: 'a@example.com', [name]: value };
    expect(sent).toEqual([value === null ? null : row]);
    const why = `line 2: The row has ${JSON.stringify(cell)} in ${column}, which is not in `;
    expect(err.includes(why)).toBe(value === null);
  }
});

test('of several columns that decide, one that says no is enough', async () => {
  const lines = [
    `${header},status,locked`,
    'A,a@x.de,active,no',
    'B,b@x.de,active,yes',
    'C,c@x.de,off,no',
    'D,d@x.de,expired,yes',
  ];
  const map = 'enabled=status:active|off,expired,enabled=locked:no|yes';
  const { sent } = await importLines('license', lines, '--map', map);
  expect(sent.map((row) => (row as { enabled: string }).enabled)).toEqual([
    'true',
    'false',
    'false',
    'false',
  ]);
});

test.each([
  'Valid until',
  'valid_until',
  'validuntil',
  'valid to',
  'expires',
  'expiresAt',
  'Expiry date',
  'expired_on',
  'Paid until',
  'end_date',
  'Subscription ends',
  'Ablaufdatum',
  'Gültig bis',
  'läuft ab',
  'Enddatum',
  'Vertragsende',
])('a column with the end of keys is offered as the end of the licenses: %s', async (name) => {
  const lines = [`${header},status,${name}`, 'A,a@example.com,active,2998-01-01'];
  const refused = await importLines('license', lines);
  expect([refused.code, refused.sent]).toEqual([1, []]);
  const map = `expires_at=${name},enabled=status:active|inactive`;
  expect(refused.err).toContain(
    `are not imported: status, ${name}. Map them, such as --map '${map}', or dismiss them`,
  );
  const { sent } = await importLines('license', lines, '--map', map);
  expect(sent).toMatchObject([{ expires_at: '2998-01-01', enabled: 'true' }]);
});

test('only a column that can still be mapped is offered', async () => {
  const known = await importLines('license', [`${header},expires_at,Valid until`, 'A,a@x.de,,']);
  expect(known.err).toContain(`are not imported: Valid until. Dismiss them: --ignore 'Valid until'.`);
  const coupon = await importLines('coupon', ['code,coupon_type,status,Expires', 'A,multi,,']);
  expect(coupon.err).toContain(
    `such as --map 'end_date=Expires', or dismiss them: --ignore 'status,Expires'.`,
  );
});

test.each(['Expired', 'Support ended?', 'vendor_status', 'Legend state', 'Resend date disabled'])(
  'a column with a state is not offered as an end: %s',
  async (name) => {
    const { err } = await importLines('license', [`${header},${name}`, 'A,a@x.de,x']);
    expect(err).toContain(`--map 'enabled=${name}:active|inactive'`);
  },
);

test('dates in a column of a state are rejected, and the message says how ends are mapped', async () => {
  const lines = [`${header},Valid until`, 'A,a@x.de,2998-01-01', 'B,b@x.de,31.12.2090', 'C,c@x.de,soon'];
  const { sent, err } = await importLines('license', lines, '--map', 'enabled=Valid until:future,-|past');
  expect(sent).toEqual([null, null, null]);
  expect(err).toContain(
    'line 2: The row has "2998-01-01" in Valid until, which is not in future,-|past: map the end of keys as expires_at=Valid until.',
  );
  expect(err).toContain('line 4: The row has "soon" in Valid until, which is not in future,-|past.');
  const bare = await importLines('license', lines, '--map', 'enabled=Valid until');
  expect(bare.err).toContain('--map enabled=Valid until: use expires_at=Valid until for dates, or add');
});

test.each([
  ['--map', 'enabled=status:active|disabled,expired,expires_at=until'],
  ['--map', 'enabled=status:active|*,expires_at=until'],
  ['--map', 'enabled=status:aktiv,active|abgelaufen,*,expires_at=until:D.M.Y'],
])('a key that is called expired is only disabled if no end says so: %s %s', async (...options) => {
  const isGerman = options[1]?.endsWith('D.M.Y') === true;
  const [expired, past, later] = isGerman
    ? ['Abgelaufen', '1.2.2020', '1.2.2998']
    : ['Expired', '2020-02-01', '2998-02-01'];
  const rows = [
    `A,a@x.de,${expired},${past}`,
    `B,b@x.de,${expired},`,
    `C,c@x.de,${expired},${later}`,
    `D,d@x.de,disabled,${past}`,
    `E,e@x.de,active,${past}`,
  ];
  const { sent } = await importLines('license', [`${header},status,until`, ...rows], ...options);
  const enabled = sent.map((row) => (row as { enabled: string }).enabled);
  expect(enabled).toEqual(['true', 'false', 'false', 'false', 'true']);
});

test('words for a license without an end are sent as they are, also in a file with an order of dates', async () => {
  const lines = [`${header},Gültig bis`, 'A,a@x.de,31.12.2090', 'B,b@x.de,Unbegrenzt', 'C,c@x.de,bald'];
  const { sent } = await importLines('license', lines, '--map', 'expires_at=Gültig bis:D.M.Y');
  expect(sent).toEqual([
    { license_key: 'A', buyer_email: 'a@x.de', expires_at: '2090-12-31' },
    { license_key: 'B', buyer_email: 'b@x.de', expires_at: 'Unbegrenzt' },
    null,
  ]);
});

test('a refund date of another store disables the key, whatever its other columns say', async () => {
  const lines = [`${header},enabled,Refunded on`, 'A,a@x.de,true,2024-01-01', 'B,b@x.de,true,-'];
  const { sent } = await importLines('purchase', lines, '--map', 'refunded_at=Refunded on');
  expect(sent).toEqual([
    { license_key: 'A', buyer_email: 'a@x.de', enabled: 'true', refunded: 'true', refunded_at: '2024-01-01' },
    { license_key: 'B', buyer_email: 'b@x.de', enabled: 'true', refunded_at: '-' },
  ]);
});

test.for<readonly [noun: string, columns: string, map: string, complaint: string]>([
  ['license', 'status', 'enabled=status', '--map enabled=status: add :active|inactive'],
  ['license', 'disabled', 'enabled=disabled', '--map enabled=disabled: add :active|inactive'],
  ['license', 'not_active', 'enabled=not_active', '--map enabled=not_active: add :active|inactive'],
  ['license', 'status', 'enabled=status:on|on', '--map enabled=status:on|on: use the words'],
  ['license', 'status', 'enabled=status:a|b|c', '--map enabled=status:a|b|c: use the words'],
  ['license', 'status', 'enabled=state:a|b', '--map enabled=state:a|b: the header has'],
  ['license', 'status', 'uses=status:a|b', '--map uses=status:a|b: the header has'],
  ['coupon', 'Amount', 'amount_off=Amount', '--map amount_off=Amount: add :money'],
])('a map that leaves open what cells mean is a usage error: %j', async ([noun, column, map, complaint]) => {
  const own = noun === 'coupon' ? 'code,coupon_type' : header;
  const { code, err, sent } = await importLines(noun, [`${own},${column}`, 'A,multi,1'], '--map', map);
  expect([code, sent]).toEqual([2, []]);
  expect(err).toContain(`latchkey: ${complaint}`);
});

test('an unknown column cannot be dismissed', async () => {
  const { code, err } = await importLines('license', [header, 'A,a@x.de'], '--ignore', 'Status');
  expect(code).toBe(2);
  expect(err).toContain('--ignore Status: the header has license_key, buyer_email');
});

test('the amounts of coupons of another store are read as money or as cents', async () => {
  const lines = [
    'code,coupon_type,Amount,Minimum',
    'A,multi,5,5000',
    'B,multi,"4,95",',
    'C,multi,5.005,1',
    'D,multi,1,1.5',
  ];
  const map = 'amount_off=Amount:money,minimum_purchase_amount=Minimum:cents';
  const { sent, err } = await importLines('coupon', lines, '--map', map);
  expect(sent).toEqual([
    { code: 'A', coupon_type: 'multi', amount_off: '500', minimum_purchase_amount: '5000' },
    { code: 'B', coupon_type: 'multi', amount_off: '495' },
    null,
    null,
  ]);
  expect(err).toContain('line 4: The row has "5.005" in Amount, which is no amount.');
});
