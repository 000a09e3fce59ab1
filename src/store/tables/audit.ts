import type { DatabaseSync } from 'node:sqlite';
import type { AuditTable } from '../../service/access/tables.ts';
import { prepareChange } from './statements.ts';

/** Prepares the record of people's acts; the schema lets nothing change or remove one. */
export function auditTable(database: DatabaseSync): AuditTable {
  const add = prepareChange(
    database,
    'INSERT INTO audit (at, actor, act, subject, detail) VALUES (:at, :actor, :act, :subject, :detail)',
  );
  return {
    add({ at, actor, act, subject, detail }) {
      add({ at, actor, act, subject, detail });
    },
  };
}
