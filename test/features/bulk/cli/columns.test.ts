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
    'enabled=expires_at:future,-|past',
    'expires_at',
    {
      '2020-01-01': 'false',
      '2998-01-01 10:00': 'true',
      '0000-00-00': 'true',
      // Programs write the first instant of their calendar for no date.
      '0001-01-01T00:00:00Z': 'true',
      '1970-01-01': 'true',
      soon: null,
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
    `${header},status,locked,end`,
    'A,a@x.de,active,no,2998-01-01',
    'B,b@x.de,active,yes,',
    'C,c@x.de,off,no,',
  ];
  const map = 'enabled=status:active|off,enabled=locked:no|yes,enabled=end:future,-|past';
  const { sent, out } = await importLines('license', lines, '--map', map);
  expect(sent).toMatchObject([{ enabled: 'true' }, { enabled: 'false' }, { enabled: 'false' }]);
  expect(out).toContain('Keys have no end date here: disable 1 key of the file when their date has passed\n');
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
