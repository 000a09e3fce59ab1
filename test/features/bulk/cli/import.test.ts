import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { latchkey } from '../../../support/process/command-line.ts';
import { startFakeDaemon } from '../../../support/process/fake-daemon.ts';

test('if a file cannot be read to its end, the rows before are imported and both are reported', async () => {
  await using daemon = await startFakeDaemon();
  const file = join(daemon.stateDir, 'licenses.csv');
  const rows = ['license_key,buyer_email,note', 'A,a@example.com,', `B,b@example.com,${'x'.repeat(70_000)}`];
  await writeFile(file, rows.join('\n'));
  daemon.answer({ body: { data: { imported: 1, unchanged: 0, ignored: [], rejected: [] } } });
  const outcome = await latchkey('license', 'import', file, '--state-dir', daemon.stateDir);
  expect(outcome).toEqual({
    code: 1,
    out: '1 imported, 0 unchanged, 0 rejected\nIgnored columns: note\n',
    err: `latchkey: cannot read ${file}: After line 2, a quote is not closed, or a row has more than 65536 characters.\n`,
  });
  expect(daemon.received).toMatchObject([
    { body: '{"licenses":[{"license_key":"A","buyer_email":"a@example.com"}]}' },
  ]);
});

test("an import of many requests prints the daemon's error once", async () => {
  await using daemon = await startFakeDaemon();
  const file = join(daemon.stateDir, 'licenses.csv');
  const rows = Array.from({ length: 5_000 }, (_, number) => `K-${number},a@example.com`);
  await writeFile(file, ['license_key,buyer_email', ...rows].join('\n'));
  daemon.answer({ status: 507, body: { title: 'The storage is full', code: 'storage_full' } });
  const outcome = await latchkey('license', 'import', file, '--state-dir', daemon.stateDir);
  expect(outcome).toEqual({ code: 1, out: '', err: 'latchkey: The storage is full (storage_full)\n' });
});

test.for(['license', 'purchase', 'coupon'])(
  'an import of %ss from a file with only a header reports zero rows',
  async (noun) => {
    await using daemon = await startFakeDaemon();
    const file = join(daemon.stateDir, 'header.csv');
    await writeFile(file, noun === 'coupon' ? 'code,coupon_type\n' : 'license_key,buyer_email\n');
    const run = (...words: string[]) =>
      latchkey(noun, 'import', file, '--state-dir', daemon.stateDir, ...words);
    const told = { code: 0, out: '0 imported, 0 unchanged, 0 rejected\n', err: '' };
    expect(await run()).toEqual(told);
    expect(await run('--dry-run')).toEqual({
      ...told,
      out: told.out.replace('imported', 'would be imported'),
    });
    const { out } = await run('--json');
    expect(JSON.parse(out)).toEqual({
      imported: 0,
      unchanged: 0,
      without_key: 0,
      renewals: 0,
      ignored: [],
      rejected: [],
    });
  },
);

const sale = {
  license_key: 'A',
  buyer_email: 'a@example.com',
  product_key: 'P',
  uses: '2',
  enabled: 'false',
};

test.each<[noun: string, scope: [option: string, parameter: string], row: Record<string, string>]>([
  ['license', ['--product', 'product_key'], { ...sale, date: '2026-01-01' }],
  [
    'purchase',
    ['--product', 'product_key'],
    { ...sale, purchase_id: 'p1', date: '2026-01-01', refunded: 'true', refunded_at: '2026-02-01' },
  ],
  [
    'coupon',
    ['--account', 'account_id'],
    {
      code: 'C',
      coupon_type: 'multi',
      id: '7',
      percent_off: '5',
      amount_off: '6',
      start_date: '2026-01-01',
      end_date: '2026-02-01',
      product_key: 'P',
      collection_id: 'c',
      minimum_purchase_amount: '8',
      usage_limit: '9',
      notes: 'n',
    },
  ],
])(
  'an import sends the known columns of a %s, and no other column',
  async (noun, [option, parameter], row) => {
    await using daemon = await startFakeDaemon();
    const file = join(daemon.stateDir, 'rows.csv');
    await writeFile(file, `theirs,${Object.keys(row).join(',')}\nx,${Object.values(row).join(',')}\n`);
    daemon.answer({ body: { data: { imported: 0, unchanged: 1, ignored: [], rejected: [] } } });
    const run = (...more: string[]) =>
      latchkey(noun, 'import', file, ...more, '--state-dir', daemon.stateDir);
    expect((await run()).out).toBe('0 imported, 1 unchanged, 0 rejected\nIgnored columns: theirs\n');
    await run(option, 'SCOPE', '--dry-run');
    const path = `POST /admin/v1/${noun}s/import`;
    expect(daemon.received.map(({ line }) => line)).toEqual([
      path,
      `${path}?dry_run=true&${parameter}=SCOPE`,
    ]);
    for (const { body } of daemon.received) expect(JSON.parse(body)).toEqual({ [`${noun}s`]: [row] });
  },
);

test('an import stops after too many rejected rows', async () => {
  await using daemon = await startFakeDaemon();
  const file = join(daemon.stateDir, 'licenses.csv');
  const rows = Array.from({ length: 60_000 }, (_, number) => `K-${number},a`);
  await writeFile(file, ['license_key,buyer_email', ...rows].join('\n'));
  const rejected = Array.from({ length: 2_000 }, (_, index) => ({
    row: index + 1,
    code: 'malformed',
    detail: 'No.',
  }));
  daemon.answer({ body: { data: { imported: 0, unchanged: 0, ignored: [], rejected } } });
  const { code, out, err } = await latchkey('license', 'import', file, '--state-dir', daemon.stateDir);
  expect(code).toBe(1);
  // Requests that were sent meanwhile count, too.
  expect(out).toMatch(/^0 imported, 0 unchanged, [12]\d000 rejected\n$/);
  expect(err).toMatch(
    /^latchkey: over 10000 rows are rejected: the rest was not read\nline 2: No\. The same in \d+ other rows\.\n/,
  );
  expect(daemon.received.length).toBeLessThan(20);
});

test('coupons without an id are imported last, so that they take no id of another row', async () => {
  await using daemon = await startFakeDaemon();
  const file = join(daemon.stateDir, 'coupons.csv');
  const rejected = [{ row: 1, code: 'coupon_code_taken', detail: 'It is taken.' }];
  daemon.answer({ body: { data: { imported: 0, unchanged: 0, ignored: [], rejected } } });
  const run = () => latchkey('coupon', 'import', file, '--state-dir', daemon.stateDir);
  await writeFile(file, 'code,coupon_type,id\nA,multi,\nB,multi,7\n');
  expect((await run()).err).toBe('line 2: It is taken. The same in 1 other row.\n');
  await writeFile(file, 'code,coupon_type\nA,multi\nB,multi\n');
  await run();
  const [a, b] = ['A', 'B'].map((code) => ({ code, coupon_type: 'multi' }));
  expect(daemon.received.map(({ body }) => JSON.parse(body) as unknown)).toEqual([
    { coupons: [{ ...b, id: '7' }] },
    { coupons: [a] },
    { coupons: [a, b] },
  ]);
});

test('an import reports semicolons between cells, with and without quotes', async () => {
  await using daemon = await startFakeDaemon();
  const file = join(daemon.stateDir, 'licenses.csv');
  for (const [text, map, reading] of [
    ['license_key;buyer_email\nA;a@example.com\n', [], 'license_key, buyer_email'],
    ['Key;Mail\nA;a@example.com\n', ['--map', 'license_key=Key,buyer_email=Mail'], 'Key, Mail'],
    ['"license_key";"buyer_email"\n"A";"a@example.com"\n', [], 'license_key, buyer_email'],
  ] as const) {
    await writeFile(file, text);
    expect(await latchkey('license', 'import', file, '--state-dir', daemon.stateDir, ...map)).toEqual({
      code: 1,
      out: '',
      err: `latchkey: cannot read ${file}: The header has semicolons between its cells: save the file with commas. Or, if this is right, add --separator semicolon: ${reading}\n`,
    });
  }
  expect(daemon.received).toEqual([]);
});

test('a row with several errors counts as one rejected row', async () => {
  await using daemon = await startFakeDaemon();
  const file = join(daemon.stateDir, 'licenses.csv');
  await writeFile(file, 'license_key,buyer_email,note\nA,a@example.com,\n,,x\n');
  const rejected = ['license_key', 'buyer_email'].map((name) => {
    return { row: 2, code: 'required', detail: `${name} is required.` };
  });
  daemon.answer({ body: { data: { imported: 1, unchanged: 0, ignored: [], rejected } } });
  expect(await latchkey('license', 'import', file, '--state-dir', daemon.stateDir)).toEqual({
    code: 1,
    out: '1 imported, 0 unchanged, 1 rejected\nIgnored columns: note\n',
    err: 'line 3: license_key is required.\nline 3: buyer_email is required.\n',
  });
});

test('a column name in wrong letter case is an error, unless --map names it', async () => {
  await using daemon = await startFakeDaemon();
  daemon.answer({ body: { data: { imported: 1, unchanged: 0, ignored: [], rejected: [] } } });
  const file = join(daemon.stateDir, 'licenses.csv');
  const run = (...words: string[]) =>
    latchkey('license', 'import', file, '--state-dir', daemon.stateDir, ...words);
  await writeFile(file, 'license_key,buyer_email,Enabled, USES ,Note\nA,a@example.com,false,3,x\n');
  const advice = '--map enabled=Enabled,uses=USES';
  expect(await run()).toEqual({
    code: 1,
    out: '',
    err: `latchkey: cannot read ${file}: The header has Enabled, USES, but column names are lower-case; use ${advice}, or rename them.\n`,
  });
  expect(daemon.received).toEqual([]);
  expect((await run(...advice.split(' '))).code).toBe(0);
  const sent = { license_key: 'A', buyer_email: 'a@example.com', enabled: 'false', uses: '3' };
  expect(daemon.received.map(({ body }) => JSON.parse(body) as unknown)).toEqual([{ licenses: [sent] }]);

  // Beside the one that is known it is a column of theirs.
  await writeFile(file, 'license_key,buyer_email,enabled,Enabled\nA,a@example.com,false,x\n');
  expect((await run('--ignore', 'Enabled')).code).toBe(0);
});

test('--map accepts column names with commas and =, and ignores another column with our name', async () => {
  await using daemon = await startFakeDaemon();
  const file = join(daemon.stateDir, 'licenses.csv');
  await writeFile(file, '"Key, a=b",license_key,Mail\nA,X,a@example.com\n');
  const run = (map: string) =>
    latchkey('license', 'import', file, '--state-dir', daemon.stateDir, '--map', map);
  daemon.answer({ body: { data: { imported: 1, unchanged: 0, ignored: [], rejected: [] } } });
  expect((await run('license_key=Key, a=b')).err).toBe(
    `latchkey: cannot read ${file}: The header does not name buyer_email. It has Key, a=b, license_key, Mail. Map the columns: --map buyer_email=THEIRS.\n`,
  );
  expect(daemon.received).toEqual([]);
  expect((await run('license_key=Key, a=b,buyer_email=Mail')).code).toBe(0);
  const sent = { license_key: 'A', buyer_email: 'a@example.com' };
  expect(daemon.received.map(({ body }) => JSON.parse(body) as unknown)).toEqual([{ licenses: [sent] }]);
});

test.for<readonly [map: string, complaint: string]>([
  ['foo=Key', '--map foo=Key: the columns are code, coupon_type, id, '],
  ['code', '--map code: use COLUMN=THEIRS'],
  ['code=Key', '--map code=Key: the header has code, coupon_type'],
  ['code=code,code=coupon_type', '--map code=coupon_type: code is named twice'],
  ['code=code,notes=code', '--map notes=code: code of the file is named twice'],
])('a wrong --map is a usage error: %j', async ([map, complaint]) => {
  await using daemon = await startFakeDaemon();
  const file = join(daemon.stateDir, 'coupons.csv');
  await writeFile(file, 'code,coupon_type\nSPRING,multi\n');
  const outcome = await latchkey('coupon', 'import', file, '--state-dir', daemon.stateDir, '--map', map);
  expect([outcome.code, outcome.out]).toEqual([2, '']);
  expect(outcome.err.startsWith(`latchkey: ${complaint}`)).toBe(true);
  expect(outcome.err).toContain('See: latchkey coupon import --help');
  expect(daemon.received).toEqual([]);
});

test('the command shows how a file with another separator or encoding would be read, and reads it so when told', async () => {
  await using daemon = await startFakeDaemon();
  daemon.answer({ body: { data: { imported: 1, unchanged: 0, ignored: [], rejected: [] } } });
  const file = join(daemon.stateDir, 'licenses.csv');
  const run = (...words: string[]) =>
    latchkey('license', 'import', file, '--state-dir', daemon.stateDir, ...words);
  await writeFile(
    file,
    Buffer.from('Schl\xfcssel;buyer_email;Aktiv;Datum\nA;"a;b"@example.com;WAHR;01.02.2025\n', 'latin1'),
  );
  expect((await run()).err).toBe(
    `latchkey: cannot read ${file}: The file is not UTF-8: save it as UTF-8. Or, if this is right, add --encoding windows-1252: Schlüssel\n`,
  );
  const encoding = ['--encoding', 'windows-1252'];
  expect((await run(...encoding)).err).toBe(
    `latchkey: cannot read ${file}: The header has semicolons between its cells: save the file with commas. Or, if this is right, add --separator semicolon: Schlüssel, buyer_email, Aktiv, Datum\n`,
  );
  expect(daemon.received).toEqual([]);
  const map = ['--map', 'license_key=Schlüssel,enabled=Aktiv:WAHR|FALSCH,date=Datum:D.M.Y'];
  const read = [...encoding, '--separator', 'semicolon', ...map];
  expect((await run(...read)).err).toContain('line 2: The row has a misplaced quote');
  await writeFile(
    file,
    'Schl\xfcssel;buyer_email;Aktiv;Datum\n"A;1";"a@example.com";falsch;1.2.2025 10:30\n',
    'latin1',
  );
  expect((await run(...read)).code).toBe(0);
  const [misquoted, sent] = daemon.received.map(({ body }) => JSON.parse(body) as unknown);
  expect(misquoted).toEqual({ licenses: [null] });
  const cells = {
    license_key: 'A;1',
    buyer_email: 'a@example.com',
    enabled: 'false',
    date: '2025-02-01 10:30',
  };
  expect(sent).toEqual({ licenses: [cells] });
});

test('each kind of error is one line, with its first line, the value there, and how often it occurs', async () => {
  await using daemon = await startFakeDaemon();
  const file = join(daemon.stateDir, 'licenses.csv');
  await writeFile(file, 'license_key,buyer_email,Sold on\nA,a,b\nB,b,01.02.2025\nC,c,3/4/2025\n');
  const email = { code: 'not_an_email', detail: 'buyer_email must be an e-mail address.' };
  const date = { code: 'not_a_datetime', detail: 'date must be a date or an RFC 3339 datetime.' };
  const rejected = [
    { row: 1, ...email, value: 'a' },
    { row: 2, ...date, value: '01.02.2025' },
    { row: 2, ...email, value: 'b' },
    { row: 3, ...email, value: 'c' },
  ];
  daemon.answer({ body: { data: { imported: 0, unchanged: 0, ignored: [], rejected } } });
  const options = ['--map', 'date=Sold on', '--state-dir', daemon.stateDir];
  expect((await latchkey('license', 'import', file, ...options)).err).toBe(
    [
      `line 2: ${email.detail} It is "a". The same in 2 other rows.`,
      `line 3: ${date.detail} It is "01.02.2025". To read it by day, month and year: --map 'date=Sold on:D.M.Y'.`,
      '',
    ].join('\n'),
  );
});

test('an unreadable CSV row is sent as null, so that the audit log counts it', async () => {
  await using daemon = await startFakeDaemon();
  const file = join(daemon.stateDir, 'licenses.csv');
  await writeFile(file, 'license_key,buyer_email\nA"B,a@example.com\nC,c@example.com\nD\nE,e\n');
  const rejected = [
    { row: 1, code: 'malformed', detail: 'The row is not an object.' },
    { row: 3, code: 'malformed', detail: 'The row is not an object.' },
    { row: 4, code: 'not_an_email', detail: 'buyer_email must be an e-mail address.' },
  ];
  daemon.answer({ body: { data: { imported: 1, unchanged: 0, ignored: [], rejected } } });
  const outcome = await latchkey('license', 'import', file, '--state-dir', daemon.stateDir);
  expect(outcome).toEqual({
    code: 1,
    out: '1 imported, 0 unchanged, 3 rejected\n',
    err: [
      'line 2: The row has a misplaced quote: a cell with quotes in it is quoted as a whole, and each in it doubled.',
      'line 4: The row has 1 cells, and the header 2.',
      'line 5: buyer_email must be an e-mail address.',
      '',
    ].join('\n'),
  });
  expect(daemon.received.map(({ body }) => JSON.parse(body) as unknown)).toEqual([
    {
      licenses: [
        null,
        { license_key: 'C', buyer_email: 'c@example.com' },
        null,
        { license_key: 'E', buyer_email: 'e' },
      ],
    },
  ]);
});
