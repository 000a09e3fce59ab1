import { DatabaseSync } from 'node:sqlite';
import type { OperationState, UnfinishedState } from '../../../domain/outbox/operation.ts';
import { findDatabase } from './database-file.ts';
import { findReplaced } from './restore.ts';
import { databaseIn } from './state-directory.ts';

/** How many operations are in each state in which one is not finished. */
export type UnfinishedCounts = Readonly<Record<UnfinishedState | 'conflicted' | 'dead', number>>;

/** What a state directory holds that may be nowhere else. */
export interface Contents {
  /** Null: there is no database, or one of a version that did not store its role. */
  readonly role: string | null;
  readonly unfinished: UnfinishedCounts;
  /** Those that an authority sells. */
  readonly products: number;
  /** Databases that a restore has put aside: changes may be in them alone. */
  readonly replaced: readonly string[];
}

/**
 * Reads what a state directory holds, also beside a process that uses it, and changes nothing. By statements of
 * its own, since a database of an older schema is not to be migrated for it. Throws `DatabaseRefused`, or the
 * error of SQLite or of the system.
 */
export function readContents(directory: string): Contents {
  const path = databaseIn(directory);
  const replaced = findReplaced(directory);
  if (!findDatabase(path)) return { role: null, unfinished: countEach(() => 0), products: 0, replaced };
  using database = new DatabaseSync(path, { readOnly: true, timeout: 1000 });
  const role = database.prepare("SELECT value FROM setting WHERE name = 'role'").get()?.['value'];
  const products = database.prepare('SELECT count(*) AS count FROM product').get()?.['count'];
  const depth = database.prepare('SELECT count FROM outbox_depth WHERE state = ?');
  return {
    role: typeof role === 'string' ? role : null,
    unfinished: countEach((state) => Number(depth.get(state)?.['count'])),
    products: Number(products),
    replaced,
  };
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
