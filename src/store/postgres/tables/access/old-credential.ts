import type {
  OldCredential,
  OldCredentialReads,
  OldCredentialTable,
} from '../../../../service/access/tables.ts';
import type { AwaitableTable } from '../../../../service/tables.ts';
import { prepareQuery, prepareWrite, type Source, type WritingSource } from '../../statements.ts';

/** Makes the reads of credentials that were rolled and go on for a while. */
export function oldCredentialReads(source: Source): AwaitableTable<OldCredentialReads> {
  const byDigest = prepareQuery(
    source,
    `SELECT kind, id, until FROM ${source.names.oldCredential} WHERE kind = $1 AND digest = $2`,
    (row: OldCredential): OldCredential => row,
  );
  return { byDigest: (kind, digest) => byDigest.first(kind, digest) };
}

/** Makes the table of credentials that were rolled: one of an owner at most. */
export function oldCredentialTable(source: WritingSource): AwaitableTable<OldCredentialTable> {
  const { oldCredential } = source.names;
  const put = prepareWrite(
    source,
    `INSERT INTO ${oldCredential} (kind, id, digest, until) VALUES ($1, $2, $3, $4)
     ON CONFLICT (kind, id) DO UPDATE SET digest = excluded.digest, until = excluded.until`,
  );
  const remove = prepareWrite(source, `DELETE FROM ${oldCredential} WHERE kind = $1 AND id = $2`);
  const prune = prepareWrite(source, `DELETE FROM ${oldCredential} WHERE until <= $1`);
  return {
    ...oldCredentialReads(source),
    put: ({ kind, id, until }, digest) => put(kind, id, digest, until),
    remove: ({ kind, id }) => remove(kind, id),
    prune: (before) => prune(before),
  };
}
