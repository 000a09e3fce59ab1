import { expect, test } from 'vitest';
import { csvOf } from '../../../../src/features/console/page/csv.ts';

test('A list becomes CSV with all its members, quoted as needed, and no cell is a formula.', () => {
  const rows = [
    { id: 1, detail: 'a, "b"\nc', at: null },
    { id: 2, detail: '=1+1', subject_name: 'Léo' },
  ];
  expect(csvOf(rows)).toBe('id,detail,at,subject_name\r\n1,"a, ""b""\nc",,\r\n2,\'=1+1,,Léo\r\n');
  expect(csvOf([])).toBe('\r\n');
});
