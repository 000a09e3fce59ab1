import type {
  IdempotencyReads,
  IdempotencyTable,
  StoredResponse,
} from '../../../../service/access/tables.ts';
import type { AuthorityTable, AwaitableTable } from '../../../../service/tables.ts';
import type { Idempotency } from '../../../../service/ports.ts';
import type { Names } from '../../names.ts';
import {
  epochMs,
  prepareQuery,
  prepareWrite,
  statementOf,
  type Source,
  type SqlValue,
  type Statement,
  type WritingSource,
} from '../../statements.ts';

export type StoredRow = { fingerprint: string; value: string | null };

/** The stored response; null: the request is still running. */
export function storedResponseOf({ fingerprint, value }: StoredRow): StoredResponse | null {
  return value === null ? null : { fingerprint, value: JSON.parse(value) };
}

/** A response to store under its key. */
export type KeptResponse = Idempotency & { value: string; unchanged: boolean };

/** The statement that stores many responses. It fails if one of the keys has a response already. */
export function keepStatement({ idempotency }: Names): Statement {
  return statementOf(
    `INSERT INTO ${idempotency} (credential, key, fingerprint, value, at, unchanged)
     SELECT credential, key, fingerprint, value, ${epochMs}, unchanged FROM json_to_recordset($1)
       AS answer (credential text, key text, fingerprint text, value text, unchanged boolean)`,
  );
}

export function keptValues(answers: readonly KeptResponse[]): SqlValue[] {
  return [JSON.stringify(answers)];
}

/** The values are JSON; null: the request is still running. */
export function idempotencyReads(source: Source): AwaitableTable<IdempotencyReads> {
  const { idempotency } = source.names;
  const get = prepareQuery(
    source,
    `SELECT fingerprint, value FROM ${idempotency} WHERE credential = $1 AND key = $2`,
    storedResponseOf,
  );
  const unchanged = prepareQuery(
    source,
    `SELECT count(*) AS count FROM ${idempotency} WHERE credential = $1 AND unchanged`,
    ({ count }: { count: number }) => count,
  );
  return {
    get: (credential, key) => get.first(credential, key),
    unchangedCount: async (credential) => (await unchanged.first(credential)) ?? 0,
  };
}

export function idempotencyTable(source: WritingSource): AuthorityTable<IdempotencyTable> {
  const { idempotency } = source.names;
  const put = prepareWrite(
    source,
    `INSERT INTO ${idempotency} (credential, key, fingerprint, value, at, unchanged)
     VALUES ($1, $2, $3, $4, $5, $6)
     ON CONFLICT (credential, key) DO UPDATE SET fingerprint = excluded.fingerprint, value = excluded.value,
       at = excluded.at, unchanged = excluded.unchanged`,
  );
  const replace = prepareWrite(
    source,
    `INSERT INTO ${idempotency} (credential, key, fingerprint, value, at) VALUES ($1, $2, $3, $4, $5)
     ON CONFLICT (credential, key) DO UPDATE SET fingerprint = excluded.fingerprint, value = excluded.value,
       at = excluded.at`,
  );
  const remove = prepareWrite(source, `DELETE FROM ${idempotency} WHERE credential = $1 AND key = $2`);
  const clampToNow = prepareQuery(
    source,
    `WITH dated AS (
       UPDATE ${idempotency} SET at = $1 WHERE (credential, key) IN
         (SELECT credential, key FROM ${idempotency} WHERE at > $1 LIMIT $2::bigint)
       RETURNING 1
     ) SELECT count(*) AS count FROM dated`,
    ({ count }: { count: number }) => count,
  );
  const prune = prepareQuery(
    source,
    `WITH pruned AS (
       DELETE FROM ${idempotency} WHERE (credential, key) IN
         (SELECT credential, key FROM ${idempotency} WHERE at < $1 ORDER BY at LIMIT $2::bigint)
       RETURNING 1
     ) SELECT count(*) AS count FROM pruned`,
    ({ count }: { count: number }) => count,
  );
  return {
    ...idempotencyReads(source),
    put: (credential, key, { fingerprint, value, at, unchanged }) =>
      put(credential, key, fingerprint, JSON.stringify(value), at, unchanged),
    replace: (credential, key, { fingerprint, value, at }) =>
      replace(credential, key, fingerprint, JSON.stringify(value), at),
    remove: (credential, key) => remove(credential, key),
    clampToNow: async (now, limit) => (await clampToNow.first(now, limit)) ?? 0,
    prune: async (before, limit) => (await prune.first(before, limit)) ?? 0,
  };
}
