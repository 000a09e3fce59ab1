import type { DatabaseSync } from 'node:sqlite';
import { adminTokenId, defaultAccountId } from '../../../domain/access/principal.ts';
import type { OperationState, UnfinishedState } from '../../../domain/outbox/operation.ts';
import { findDatabase } from './database-file.ts';
import { openReadOnly } from '../connection.ts';
import { findReplaced } from './backup.ts';
import { databaseIn } from './state-directory.ts';

/** The number of operations in each state that is not final. */
export type UnfinishedCounts = Readonly<Record<UnfinishedState | 'conflicted' | 'dead', number>>;

type Noun =
  | 'products'
  | 'licenses'
  | 'purchases'
  | 'collections'
  | 'coupons'
  | 'redemptions'
  | 'accounts'
  | 'tokens'
  | 'leases';

/** Counts only tokens that have not expired. */
export type RecordCounts = Readonly<Record<Noun, number>>;

/** The table of each noun, without the records that a first start creates. An agent has only redemptions and tokens. */
const tables: Readonly<Record<Noun, string>> = {
  products: 'product',
  licenses: 'license',
  purchases: 'purchase',
  collections: 'collection',
  coupons: 'coupon',
  redemptions: 'redemption',
  accounts: `account WHERE account_id <> '${defaultAccountId}'`,
  leases: 'held_lease',
  tokens: `token WHERE token_id <> '${adminTokenId}'`,
};

/** The records in a state directory that may exist nowhere else. */
export interface Contents {
  /** Null: there is no database, or no process was ever started with it. */
  readonly role: string | null;
  /** Null: no process was ever started with it. */
  readonly instance: string | null;
  readonly unfinished: UnfinishedCounts;
  readonly records: RecordCounts;
  /** Databases that a restore has replaced. Only they may have the latest changes. */
  readonly replaced: readonly string[];
}

/**
 * Counts the records in a state directory, even while another process uses it. Has its own statements, because it must
 * not migrate a database with an older schema. Throws `DatabaseRefused`, or the error of SQLite or of the system.
 */
export function readContents(directory: string, now: number): Contents {
  const path = databaseIn(directory);
  const replaced = findReplaced(directory);
  if (!findDatabase(path)) {
    const nothing = { unfinished: countEach(() => 0), records: countRecords(() => 0) };
    return { role: null, instance: null, ...nothing, replaced };
  }
  using database = openReadOnly(path);
  const settings = database.prepare('SELECT value FROM setting WHERE name = ?');
  const settingOf = (name: string): string | null => {
    const value = settings.get(name)?.['value'];
    return typeof value === 'string' ? value : null;
  };
  const depth = database.prepare('SELECT count FROM outbox_count WHERE state = ?');
  return {
    role: settingOf('role'),
    instance: settingOf('instance'),
    unfinished: countEach((state) => Number(depth.get(state)?.['count'])),
    records: countRecords((noun) => countIn(database, noun, now)),
    replaced,
  };
}

/** Counts the operations of a database that are not final and that another database does not have. */
export function countMissing(databasePath: string, otherPath: string): UnfinishedCounts {
  using database = openReadOnly(databasePath);
  using other = openReadOnly(otherPath);
  const find = other.prepare('SELECT 1 FROM outbox WHERE id = ?');
  const idsOf = database.prepare('SELECT id FROM outbox WHERE state = ?');
  return countEach((state) => {
    let count = 0;
    for (const { id = null } of idsOf.iterate(state)) if (find.get(id) === undefined) count += 1;
    return count;
  });
}

function countIn(database: DatabaseSync, noun: Noun, now: number): number {
  // An older schema has no column `expires_at`, no redemptions and no leases.
  if (noun === 'tokens') {
    const tokens = database.prepare(`SELECT * FROM ${tables.tokens}`).all();
    return tokens.filter(({ expires_at: end = null }) => end === null || Number(end) > now).length;
  }
  if ((noun === 'redemptions' || noun === 'leases') && !hasTable(database, tables[noun])) return 0;
  return Number(database.prepare(`SELECT count(*) AS count FROM ${tables[noun]}`).get()?.['count']);
}

function hasTable(database: DatabaseSync, name: string): boolean {
  return database.prepare('SELECT 1 FROM sqlite_schema WHERE name = ?').get(name) !== undefined;
}

function countRecords(count: (noun: Noun) => number): RecordCounts {
  const nouns = Object.keys(tables) as Noun[];
  return Object.fromEntries(nouns.map((noun) => [noun, count(noun)])) as RecordCounts;
}

function countEach(count: (state: OperationState) => number): UnfinishedCounts {
  return {
    pending: count('pending'),
    in_flight: count('in_flight'),
    uncertain: count('uncertain'),
    conflicted: count('conflicted'),
    dead: count('dead'),
  };
}
