import { expect, test } from 'vitest';
import { importEach, type ImportedRow } from '../../../../src/features/bulk/service/import.ts';

/** Imports rows into an asynchronous map, which rejects a row if its key has another value. */
async function importInto(stored: Map<string, number>, rows: readonly { key: string; value: number }[]) {
  let underWay = 0;
  let most = 0;
  const importOne = async ({ key, value }: { key: string; value: number }): Promise<ImportedRow> => {
    underWay += 1;
    most = Math.max(most, underWay);
    const before = stored.get(key);
    await Promise.resolve();
    if (before === undefined) stored.set(key, value);
    underWay -= 1;
    if (before === undefined) return 'imported';
    return before === value ? 'unchanged' : { code: 'taken', detail: 'It is taken.' };
  };
  const numbered = rows.map((row, index) => ({ ...row, row: index + 1 }));
  const report = await importEach(
    { rows: numbered, rejected: [], isAtomic: false, isDryRun: false },
    { importOne, identitiesOf: ({ key }) => [key] },
  );
  return { report, most };
}

test('independent rows are imported concurrently, up to a limit', async () => {
  const rows = Array.from({ length: 1_200 }, (_, index) => ({ key: `K${index}`, value: index }));
  const { report, most } = await importInto(new Map(), rows);
  expect(report).toMatchObject({ ok: true, value: { imported: 1_200, unchanged: 0, rejected: [] } });
  expect(most).toBe(500);
});

test('rows are imported in the order of their keys, and errors are reported in the order of the file', async () => {
  const stored = new Map([
    ['A', 0],
    ['C', 0],
  ]);
  const { report } = await importInto(stored, [
    { key: 'D', value: 1 },
    { key: 'C', value: 2 },
    { key: 'B', value: 3 },
    { key: 'A', value: 4 },
  ]);
  expect([...stored.keys()]).toEqual(['A', 'C', 'B', 'D']);
  expect(report).toMatchObject({ ok: true, value: { imported: 2, rejected: [{ row: 2 }, { row: 4 }] } });
});

test('a row that repeats an earlier row finds the result of the earlier row', async () => {
  const stored = new Map<string, number>();
  const { report } = await importInto(stored, [
    { key: 'A', value: 1 },
    { key: 'B', value: 2 },
    { key: 'A', value: 1 },
    { key: 'A', value: 3 },
  ]);
  const rejected = [{ row: 4, code: 'taken', detail: 'It is taken.' }];
  expect(report).toMatchObject({ ok: true, value: { imported: 2, unchanged: 1, rejected } });
  expect([...stored]).toEqual([
    ['A', 1],
    ['B', 2],
  ]);
});
