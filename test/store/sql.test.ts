import { DatabaseSync } from 'node:sqlite';
import { expect, test } from 'vitest';
import { columns } from '../../src/store/sql.ts';
import { sqlOn } from '../../src/store/sqlite/statements.ts';

type Device = { deviceId: string; isOld: boolean | null; moves: readonly number[] | null };
const device = columns<Device>('device_id, old AS isOld BOOL, moves JSON');

test('declared columns make the texts of statements', () => {
  expect(device.list).toBe('device_id AS "deviceId", old AS "isOld", moves');
  expect(columns<Device>('device_id, moves JSON', 'd').list).toBe('d.device_id AS "deviceId", d.moves');
  expect(device.insert('device', 'note')).toBe(
    'INSERT INTO latchkey.device (device_id, old, moves, note) VALUES ($1, $2, $3, $4)',
  );
  expect(device.upsert('device', ['device_id'], ['old'])).toBe(
    `${device.insert('device')} ON CONFLICT (device_id) DO UPDATE SET moves = excluded.moves`,
  );
  expect(device.set(['device_id'])).toBe('old = $2, moves = $3');
  expect(device.place('moves')).toBe('$3');
});

test('declared columns convert truth values and JSON, but not null, and refuse a row without a member', () => {
  const rows: Device[] = [
    { deviceId: 'a', isOld: true, moves: [1, 2] },
    { deviceId: 'b', isOld: null, moves: null },
  ];
  expect(rows.map(device.values)).toEqual([
    ['a', true, '[1,2]'],
    ['b', null, null],
  ]);
  const stored = [
    { deviceId: 'a', isOld: 1, moves: '[1,2]' },
    { deviceId: 'b', isOld: null, moves: null },
  ];
  expect(stored.map((row) => device.from(row as never))).toEqual(rows);
  expect(() => device.values({ deviceId: 'a', isOld: true } as Device)).toThrow('moves is missing');
});

test('a list leaves out a condition without a value, numbers the parameters, and goes on after its cursor', () => {
  using database = new DatabaseSync(':memory:');
  database.exec(`CREATE TABLE item (id INTEGER PRIMARY KEY, size INTEGER, name TEXT);
    INSERT INTO item (size, name) VALUES (1, 'a'), (2, 'b'), (2, 'a'), (3, 'a')`);
  const items = sqlOn(database).list<{ id: number }>({
    select: 'id',
    from: 'latchkey.item',
    key: ['size', 'id'],
    isLatestFirst: true,
  });
  const page = { limit: 2, offset: 0 };
  const idsOf = (rows: readonly { id: number }[]): number[] => rows.map(({ id }) => id);
  expect(idsOf(items.list([['name = $1', undefined]], page))).toEqual([4, 3]);
  const named = [
    ['name = $1', 'a'],
    ['size BETWEEN $1 AND $2', 1, 2],
  ] as const;
  expect(idsOf(items.list(named, page))).toEqual([3, 1]);
  expect(idsOf(items.list(named, { ...page, cursor: [2, 3] }))).toEqual([1]);
  expect([items.count([]), items.count(named)]).toEqual([4, 2]);
});
