import type { Account } from '../../../domain/account.ts';
import type { AccountReads, AccountTable } from '../../../service/authority/tables.ts';
import type { AwaitableTable } from '../../../service/tables.ts';
import { prepareList, prepareQuery, prepareWrite, type Source, type WritingSource } from '../statements.ts';
import { ofAccount } from './tenant.ts';

const columns = 'account_id AS "accountId", name, created_at AS "createdAt"';
const fromRow = (row: Account): Account => row;

export function accountReads(source: Source): AwaitableTable<AccountReads> {
  const { account } = source.names;
  const get = prepareQuery(source, `SELECT ${columns} FROM ${account} WHERE account_id = $1`, fromRow);
  const byKeyDigest = prepareQuery(
    source,
    `SELECT ${columns} FROM ${account} WHERE key_digest = $1`,
    fromRow,
  );
  const listed = prepareList(source, { select: columns, from: account, key: ['account_id'] }, fromRow);
  return {
    get: (accountId) => get.first(accountId),
    byKeyDigest: (digest) => byKeyDigest.first(digest),
    list: ({ tenant }, page) => listed.list([ofAccount(tenant)], page),
    count: ({ tenant }) => listed.count([ofAccount(tenant)]),
  };
}

export function accountTable(source: WritingSource): AwaitableTable<AccountTable> {
  const { account } = source.names;
  const add = prepareWrite(
    source,
    `INSERT INTO ${account} (account_id, name, key_digest, created_at) VALUES ($1, $2, $3, $4)`,
  );
  const keyDigest = prepareQuery(
    source,
    `SELECT key_digest AS digest FROM ${account} WHERE account_id = $1`,
    ({ digest }: { digest: string }) => digest,
  );
  const setKeyDigest = prepareWrite(source, `UPDATE ${account} SET key_digest = $2 WHERE account_id = $1`);
  return {
    ...accountReads(source),
    add: ({ accountId, name, createdAt }, digest) => add(accountId, name, digest, createdAt),
    keyDigest: (accountId) => keyDigest.first(accountId),
    setKeyDigest: (accountId, digest) => setKeyDigest(accountId, digest),
  };
}
