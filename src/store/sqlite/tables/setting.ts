import type { DatabaseSync } from 'node:sqlite';
import type { SettingReads, SettingTable } from '../../../service/tables.ts';
import { prepareChange, prepareQuery } from '../statements.ts';

export function settingReads(database: DatabaseSync): SettingReads {
  const get = prepareQuery(
    database,
    'SELECT value FROM setting WHERE name = ?',
    (row: { value: string }) => row.value,
  );
  return { get: (name) => get.first(name) };
}

export function settingTable(database: DatabaseSync): SettingTable {
  const set = prepareChange(database, 'INSERT OR REPLACE INTO setting (name, value) VALUES (:name, :value)');
  return {
    ...settingReads(database),
    set(name, value) {
      set({ name, value });
    },
  };
}
