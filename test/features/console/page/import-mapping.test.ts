import { expect, test } from 'vitest';
import type { z } from 'zod';
import {
  couponImport,
  licenseImport,
  purchaseImport,
} from '../../../../src/features/bulk/wire/import-rows.ts';
import { importable } from '../../../../src/features/bulk/wire/mapping/importable.ts';
import { inWordsOfFile, kindsOf } from '../../../../src/features/console/page/pages/selling/import-errors.ts';
import {
  type Choice,
  type FileColumn,
  guessed,
  labels,
  mappingOf,
  openQuestion,
} from '../../../../src/features/console/page/pages/selling/import-mapping.ts';

function column(name: string, more: Partial<FileColumn> = {}): FileColumn {
  return {
    name,
    values: [],
    read_as: null,
    how: null,
    by_store: false,
    state: false,
    needs_order: false,
    words: [],
    ...more,
  };
}

const status = column('Status', {
  read_as: 'enabled',
  state: true,
  words: [
    { word: 'aktiv', enabled: true, refunded: null },
    { word: 'neu', enabled: null, refunded: null },
  ],
});

const choose = (as: string | null, more: Partial<Choice> = {}): Choice => ({
  as,
  how: null,
  words: {},
  ...more,
});

test.each<readonly [why: string, column: FileColumn, choice: Choice, question: string | null]>([
  [
    'a column that looks like a state',
    column('Sperre', { state: true }),
    choose(null),
    'It looks like a state of keys.',
  ],
  ['a word without a meaning', status, guessed(status), 'Say what “neu” means.'],
  ['words with meanings', status, choose('enabled', { words: { aktiv: true, neu: false } }), null],
  [
    'a date with days first or months first',
    column('Datum', { needs_order: true }),
    choose('date'),
    'Say the order',
  ],
  ['a date with its order', column('Datum', { needs_order: true }), choose('date', { how: 'D.M.Y' }), null],
  ['an amount without a unit', column('Betrag'), choose('amount_off'), 'Say whether it is money or cents.'],
  ['a column that is not imported', column('Notiz'), choose(''), null],
])('what a person must say before the check: %s', (_, each, choice, question) => {
  const asked = openQuestion(each, choice);
  expect(asked?.startsWith(question ?? '') ?? null).toBe(question === null ? null : true);
});

test.each(['license', 'purchase', 'coupon'] as const)(
  'the page names the columns of every import: %s',
  (noun) => {
    const { required, optional } = importable[noun];
    expect(Object.keys(labels[noun]).toSorted()).toEqual([...required, ...optional].toSorted());
  },
);

test.each([
  ['license', licenseImport.schema.shape.licenses],
  ['purchase', purchaseImport.schema.shape.purchases],
  ['coupon', couponImport.schema.shape.coupons],
] as const)('the columns that are mapped are those that a row has: %s', (noun, rows) => {
  const row = (rows as z.ZodArray<z.ZodObject>).element.shape;
  const { required, optional } = importable[noun];
  expect([...required, ...optional].toSorted()).toEqual(Object.keys(row).toSorted());
});

test('the choices become the parameters that the command has as options', () => {
  const decided = [
    [column('Schlüssel'), choose('license_key')],
    [column('buyer_email'), choose('buyer_email')],
    [column('Datum', { needs_order: true }), choose('date', { how: 'D.M.Y' })],
    [status, choose('enabled', { words: { aktiv: true, neu: true, '-': false } })],
    [column('Gesperrt', { state: true }), choose('')],
    [column('uses'), choose('')],
    [column('Notiz'), choose('')],
  ] as const;
  expect(mappingOf(decided, 'license')).toEqual({
    map: 'license_key=Schlüssel,date=Datum:D.M.Y,enabled=Status:aktiv,neu|-',
    ignore: 'Gesperrt,uses',
  });
});

test('errors of the same kind are one line, with the first row and the number of rows', () => {
  const wrong = (row: number, cell: string) => ({
    row,
    code: 'malformed',
    detail: `The row has "${cell}" in Status, which is not in aktiv|gesperrt.`,
  });
  const other = { row: 3, code: 'malformed', detail: 'buyer_email must be an e-mail address.', value: 'x' };
  expect(
    kindsOf([wrong(2, 'neu'), other, wrong(7, 'alt')]).map(({ first, rows }) => [first.row, rows]),
  ).toEqual([
    [2, 2],
    [3, 1],
  ]);
});

test('an error names the field as people see it, and the column of the file', () => {
  const columns = [[column('E-Mail'), choose('buyer_email')]] as const;
  expect(inWordsOfFile('buyer_email must be an e-mail address.', 'license', columns)).toBe(
    'E-mail address of the customer (E-Mail) must be an e-mail address.',
  );
  expect(inWordsOfFile('There is no such product.', 'license', columns)).toBe('There is no such product.');
});
