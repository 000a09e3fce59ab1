import type { AwaitableTable, SettingReads, SettingTable } from '../../../service/tables.ts';
import { prepareQuery, prepareWrite, type Source, type WritingSource } from '../statements.ts';

export function settingReads(source: Source): AwaitableTable<SettingReads> {
  const get = prepareQuery(
    source,
    `SELECT value FROM ${source.names.setting} WHERE name = $1`,
    ({ value }: { value: string }) => value,
  );
  return { get: (name) => get.first(name) };
}

export function settingTable(source: WritingSource): AwaitableTable<SettingTable> {
  const set = prepareWrite(
    source,
    `INSERT INTO ${source.names.setting} (name, value) VALUES ($1, $2)
     ON CONFLICT (name) DO UPDATE SET value = excluded.value`,
  );
  return { ...settingReads(source), set: (name, value) => set(name, value) };
}
