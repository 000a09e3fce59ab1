import type { DatabaseSync } from 'node:sqlite';
import type {
  OldCredential,
  OldCredentialReads,
  OldCredentialTable,
} from '../../../../service/access/tables.ts';
import { prepareChange, prepareQuery } from '../../statements.ts';

/** Prepares the reads of credentials that were rolled and go on for a while. */
export function oldCredentialReads(database: DatabaseSync): OldCredentialReads {
  const byDigest = prepareQuery(
    database,
    'SELECT kind, id, until FROM old_credential WHERE kind = ? AND digest = ?',
    (row: OldCredential): OldCredential => ({ ...row }),
  );
  return { byDigest: (kind, digest) => byDigest.first(kind, digest) };
}

/** Prepares the table of credentials that were rolled: one of an owner at most. */
export function oldCredentialTable(database: DatabaseSync): OldCredentialTable {
  const put = prepareChange(
    database,
    'INSERT OR REPLACE INTO old_credential (kind, id, digest, until) VALUES (:kind, :id, :digest, :until)',
  );
  const remove = prepareChange(database, 'DELETE FROM old_credential WHERE kind = :kind AND id = :id');
  const prune = prepareChange(database, 'DELETE FROM old_credential WHERE until <= :before');
  return {
    ...oldCredentialReads(database),
    put({ kind, id, until }, digest) {
      put({ kind, id, until, digest });
    },
    remove({ kind, id }) {
      remove({ kind, id });
    },
    prune(before) {
      prune({ before });
    },
  };
}
