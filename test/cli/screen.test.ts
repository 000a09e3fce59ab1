import * as fc from 'fast-check';
import stringWidth from 'string-width';
import { expect, test } from 'vitest';
import { formatFields, formatTable, instant, type Shown, toned, whole } from '../../src/cli/format.ts';
import { createOutput, type Screen } from '../../src/cli/output.ts';
import { measureOf } from '../../src/cli/screen.ts';

const now = Date.parse('2026-03-01T12:00:00Z');
const pipe: Screen = { columns: null, hasColour: false };

async function show(shown: Shown, screen: Screen = pipe): Promise<string> {
  let out = '';
  const output = createOutput(
    (text) => void (out += text),
    () => {},
    () => screen,
  );
  await output.show(shown, now);
  return out;
}

const terminal = (columns: number): Screen => ({ columns, hasColour: false });

const licenses = [
  { id: whole('0192-aaaa-bbbb'), buyer: 'somebody.with.a.long.name@example.com', note: 'n'.repeat(60) },
  { id: whole('0192-cccc-dddd'), buyer: 'b@example.com', note: null },
];

test('a table is cut at its widest columns on a narrow terminal, but ids are never cut', async () => {
  expect(await show(formatTable(licenses), terminal(50))).toBe(
    [
      'ID              BUYER             NOTE',
      '0192-aaaa-bbbb  somebody.with.a…  nnnnnnnnnnnnnnn…',
      '0192-cccc-dddd  b@example.com     -',
      '',
    ].join('\n'),
  );
});

test('a table is not cut in a pipe', async () => {
  expect(await show(formatTable(licenses))).toContain('n'.repeat(60));
});

test('a table that does not fit is printed record by record', async () => {
  expect(await show(formatTable(licenses), terminal(30))).toBe(
    [
      'id     0192-aaaa-bbbb',
      'buyer  somebody.with.a.long.name@example.com',
      `note   ${'n'.repeat(60)}`,
      '',
      'id     0192-cccc-dddd',
      'buyer  b@example.com',
      '',
    ].join('\n'),
  );
});

test('a table aligns East Asian characters and emoji, and never splits one', async () => {
  const wide = [
    { name: '山田太郎', uses: 1 },
    { name: '👩‍👩‍👧‍👦 family', uses: 2 },
    { name: 'é́', uses: 3 },
  ];
  expect(await show(formatTable(wide))).toBe(
    ['NAME       USES', '山田太郎   1', '👩‍👩‍👧‍👦 family  2', 'é́          3', ''].join('\n'),
  );
  const cut = await show(formatTable([{ name: '山田太郎山田太郎', note: 'x'.repeat(9) }]), terminal(19));
  expect(cut).toBe(['NAME      NOTE', '山田太…   xxxxxxxxx', ''].join('\n'));
});

test('a table shows datetimes in a pipe, and distances from now on a terminal', async () => {
  const table = formatTable([{ at: instant('2026-03-01T11:57:00+00:00') }]);
  expect(await show(table)).toBe('AT\n2026-03-01T11:57:00+00:00\n');
  expect(await show(table, terminal(80))).toBe('AT\n3 min ago\n');
});

test('a table without rows prints none', async () => {
  expect(await show(formatTable([]))).toBe('none\n');
});

test.each([
  [0, 'now'],
  [-1, 'now'],
  [-59, '59 sec ago'],
  [40, 'in 40 sec'],
  [-180, '3 min ago'],
  [7100, 'in 118 min'],
  [-3 * 3600, '3 hr ago'],
  [3 * 86_400, 'in 3 days'],
  [14 * 86_400 - 1, 'in 14 days'],
  [-90 * 86_400, '3 mo ago'],
  [-800 * 86_400, '2 yr ago'],
])('a point in time %i seconds from now is printed with %s', async (seconds, told) => {
  const at = new Date(now + seconds * 1000).toISOString();
  expect(await show(formatFields({ at: instant(at) }))).toBe(`at  ${at} (${told})\n`);
});

test('a long value is wrapped beside its name', async () => {
  expect(await show(formatFields({ note: 'one two three four five six' }), terminal(26))).toBe(
    'note  one two three four\n      five six\n',
  );
});

test('colours are added only on a colour terminal, and the text stays the same', async () => {
  const fields = formatFields({ upstream: ['is ', toned('down', 'bad')] });
  const plain = await show(fields);
  const coloured = await show(fields, { columns: 80, hasColour: true });
  expect(plain).toBe('upstream  is down\n');
  expect(coloured).toBe('upstream  is \u001B[31mdown\u001B[39m\n');
});

const hostile = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 60 }),
  fc.string({
    unit: fc.constantFrom(
      '\u001B[31m',
      '\u001B]0;x\u0007',
      '\n',
      '\r',
      '\t',
      '\u009B',
      '\u202E',
      '\u2028',
      '字',
      '👩‍👩‍👧‍👦',
      'a',
      ' ',
    ),
    maxLength: 40,
  }),
);
const obeyed = /(?!\n)[\p{Cc}\p{Bidi_Control}\u2028\u2029\p{Surrogate}]/u;

test('no text in a table cell controls the terminal, breaks its row or exceeds the width', async () => {
  const cell = fc.oneof(
    hostile,
    hostile.map(whole),
    hostile.map((text) => toned(text, 'bad')),
  );
  const table = fc.array(fc.record({ buyer: cell, note: cell, code: hostile }), {
    minLength: 1,
    maxLength: 5,
  });
  await fc.assert(
    fc.asyncProperty(table, fc.option(fc.integer({ min: 10, max: 120 })), async (rows, columns) => {
      const out = await show(formatTable(rows), { columns, hasColour: false });
      expect(out).not.toMatch(obeyed);
      const lines = out.trimEnd().split('\n');
      if (!out.startsWith('BUYER')) return;
      expect(out.split('\n')).toHaveLength(rows.length + 2);
      for (const line of lines) expect(stringWidth(line)).toBeLessThanOrEqual(columns ?? Infinity);
    }),
  );
});

test('no text in fields controls the terminal', async () => {
  await fc.assert(
    fc.asyncProperty(hostile, fc.integer({ min: 1, max: 120 }), async (text, columns) => {
      const shown = [formatFields({ plain: text, marked: toned(text, 'good'), at: instant(text) }), text];
      const out = await show(shown, { columns, hasColour: true });
      // oxlint-disable-next-line no-control-regex
      expect(out.replaceAll(/\u001B\[(?:32|39)m/g, '')).not.toMatch(obeyed);
    }),
  );
});

test('the width without string-width equals the width by string-width', async () => {
  const codes = Array.from({ length: 0x2500 - 0x20 }, (_, index) => index + 0x20);
  const characters = codes.map((code) => String.fromCodePoint(code)).filter((each) => !/\p{Cc}/u.test(each));
  const measured = await Promise.all(
    characters.map(async (each) => [each, (await measureOf([each]))(each)] as const),
  );
  expect(measured).toEqual(characters.map((each) => [each, stringWidth(each)]));
});
