import type { DatabaseSync } from 'node:sqlite';
import { adminTokenId, defaultAccountId } from '../../../domain/access/principal.ts';
import type { OperationState, UnfinishedState } from '../../../domain/outbox/operation.ts';
import { findDatabase } from './database-file.ts';
import { openReadOnly } from '../database.ts';
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
  /** The uses of a holder that the issuer has not confirmed. */
  readonly unconfirmedUses: number;
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
    const nothing = { unfinished: countEach(() => 0), unconfirmedUses: 0, records: countRecords(() => 0) };
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
    unconfirmedUses: countUnconfirmed(database),
    records: countRecords((noun) => countIn(database, noun, now)),
    replaced,
  };
}

/** What a database has, and its upstream or issuer may not have: operations of an agent, and uses of a holder. */
export type UnsentCounts = { readonly operations: UnfinishedCounts; readonly uses: number };

/** Counts what only one database can still send, and another database cannot. */
export function countMissing(databasePath: string, otherPath: string): UnsentCounts {
  using database = openReadOnly(databasePath);
  using other = openReadOnly(otherPath);
  const find = other.prepare('SELECT 1 FROM outbox WHERE id = ?');
  const idsOf = database.prepare('SELECT id FROM outbox WHERE state = ?');
  const operations = countEach((state) => {
    let count = 0;
    for (const { id = null } of idsOf.iterate(state)) if (find.get(id) === undefined) count += 1;
    return count;
  });
  return { operations, uses: countUnconfirmed(database, other) };
}

const heldUses = `SELECT license_key AS licenseKey, activation_id AS activation, uses_recorded AS recorded,
  uses_returned AS returned, confirmed_recorded AS confirmedRecorded, confirmed_returned AS confirmedReturned FROM held_lease`;

/** Counts the uses that the issuer has not confirmed, except those that another database of the same device has as well. */
function countUnconfirmed(database: DatabaseSync, other: DatabaseSync | null = null): number {
  // An older schema has no leases.
  if (!hasTable(database, tables.leases)) return 0;
  // Totals of another activation are no part of the same history.
  const find = other?.prepare(`${heldUses} WHERE license_key = ? AND activation_id IS ?`);
  let count = 0;
  for (const { licenseKey = null, activation = null, ...uses } of database.prepare(heldUses).iterate()) {
    const known = find?.get(licenseKey, activation);
    for (const [total, confirmed] of [
      ['recorded', 'confirmedRecorded'],
      ['returned', 'confirmedReturned'],
    ] as const)
      count += Math.max(
        0,
        Number(uses[total]) - Math.max(Number(uses[confirmed]), Number(known?.[total] ?? 0)),
      );
  }
  return count;
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
