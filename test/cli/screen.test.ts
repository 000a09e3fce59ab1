import * as fc from 'fast-check';
import stringWidth from 'string-width';
import { describe, expect, test } from 'vitest';
import { formatFields, formatTable, instant, type Shown, toned, whole } from '../../src/cli/format.ts';
import { createOutput, type Screen } from '../../src/cli/output.ts';
import { measureOf } from '../../src/cli/screen/width.ts';

const now = Date.parse('2026-03-01T12:00:00Z');
const pipe: Screen = { columns: null, hasColour: false };

async function show(shown: Shown, screen: Screen = pipe): Promise<string> {
  let out = '';
  const output = createOutput(
    (text) => void (out += text),
    () => {},
    { screen: () => screen, openRewrite: () => Promise.reject(new Error('not here')) },
  );
  await output.show(shown, now);
  return out;
}

const terminal = (columns: number): Screen => ({ columns, hasColour: false });

describe('a table', () => {
  const rows = [
    { id: whole('0192-aaaa-bbbb'), buyer: 'somebody.with.a.long.name@example.com', note: 'n'.repeat(60) },
    { id: whole('0192-cccc-dddd'), buyer: 'b@example.com', note: null },
  ];

  test('is cut at its widest columns where the terminal is narrower; ids stay whole', async () => {
    expect(await show(formatTable(rows), terminal(50))).toBe(
      [
        'ID              BUYER             NOTE',
        '0192-aaaa-bbbb  somebody.with.a…  nnnnnnnnnnnnnnn…',
        '0192-cccc-dddd  b@example.com     -',
        '',
      ].join('\n'),
    );
  });

  test('is not cut in a pipe', async () => {
    expect(await show(formatTable(rows))).toContain('n'.repeat(60));
  });

  test('that fits no terminal of this width is told record by record', async () => {
    expect(await show(formatTable(rows), terminal(30))).toBe(
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

  test('lines up under East Asian characters and emoji, and cuts none of them in two', async () => {
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

  test('shows times as they are in a pipe, and as a distance on a terminal', async () => {
    const table = formatTable([{ at: instant('2026-03-01T11:57:00+00:00') }]);
    expect(await show(table)).toBe('AT\n2026-03-01T11:57:00+00:00\n');
    expect(await show(table, terminal(80))).toBe('AT\n3 min ago\n');
  });

  test('without rows says so', async () => {
    expect(await show(formatTable([]))).toBe('none\n');
  });
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
])('%i seconds from now are told as %s, beside the instant itself', async (seconds, told) => {
  const at = new Date(now + seconds * 1000).toISOString();
  expect(await show(formatFields({ at: instant(at) }))).toBe(`at  ${at} (${told})\n`);
});

test('a long value is wrapped beside its name', async () => {
  expect(await show(formatFields({ note: 'one two three four five six' }), terminal(26))).toBe(
    'note  one two three four\n      five six\n',
  );
});

test('colour is added where the screen has it, and says nothing that the words do not', async () => {
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

test('whatever is in the cells, a terminal obeys none of it, and no row becomes two or is too wide', async () => {
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

test('whatever is in fields, texts and colours, only our own colours reach the terminal', async () => {
  await fc.assert(
    fc.asyncProperty(hostile, fc.integer({ min: 1, max: 120 }), async (text, columns) => {
      const shown = [formatFields({ plain: text, marked: toned(text, 'good'), at: instant(text) }), text];
      const out = await show(shown, { columns, hasColour: true });
      // oxlint-disable-next-line no-control-regex
      expect(out.replaceAll(/\u001B\[(?:32|39)m/g, '')).not.toMatch(obeyed);
    }),
  );
});

test('what is measured without a library is measured as by it', async () => {
  const codes = Array.from({ length: 0x2500 - 0x20 }, (_, index) => index + 0x20);
  const characters = codes.map((code) => String.fromCodePoint(code)).filter((each) => !/\p{Cc}/u.test(each));
  const measured = await Promise.all(
    characters.map(async (each) => [each, (await measureOf([each]))(each)] as const),
  );
  expect(measured).toEqual(characters.map((each) => [each, stringWidth(each)]));
});
