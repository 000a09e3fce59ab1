import { isSameState } from '../../../domain/license.ts';
import type {
  LicenseChange,
  LicenseTable,
  IdempotencyTable,
  AuthorityTransaction,
  Awaitable,
  AwaitableTable,
} from '../../../service/tables.ts';
import type { Idempotency } from '../../../service/ports.ts';
import type { Connection } from './connection.ts';
import { collectEvents } from '../../../store/changes.ts';
import { isAnswered } from './faults.ts';
import { inSchema, type Names } from './names.ts';
import { statementOf, type Statement } from './statements.ts';
import {
  changeValues,
  changesFrom,
  changeStatement,
  keyedChangeStatement,
  keyedChangeValues,
  type ChangedLicense,
} from './tables/license.ts';

/** The maximum number of changes in one commit. */
const maxGroup = 128;

/** A response to store under its key. */
type ResponseToStore = Idempotency & { value: string; until: number; unchanged: boolean };

/** Stores many responses. It fails if one of the keys has a response already. */
const storeResponses = `INSERT INTO latchkey.idempotency (credential, key, fingerprint, value, kept_until, unchanged)
  SELECT credential, key, fingerprint, value, until, unchanged FROM json_to_recordset($1)
    AS answer (credential text, key text, fingerprint text, value text, until bigint, unchanged boolean)`;

/** Lends a connection of the pool. */
type Lend = <Value>(work: (connection: Connection) => Promise<Value>) => Promise<Value>;

/** A change that waits for a group commit. The commit ends with one call of `done`, `fail` or `leave`. */
type GroupedChange = {
  readonly change: LicenseChange;
  /** Null: it has no idempotency key. */
  readonly idempotency: Idempotency | null;
  /**
   * The response to store under the idempotency key; null: the change must not be made. `unchangedCount`: how many stored
   * responses of the credential belong to requests that changed nothing, without this group. It is read only if the
   * group has a change of the credential without effect, and is 0 otherwise.
   */
  answer(changed: ChangedLicense, unchangedCount: number): Promise<ResponseToStore | null>;
  done(changed: ChangedLicense): void;
  fail(error: unknown): void;
  /** Nothing was changed. The change must be tried alone. */
  leave(): void;
};

type Results = readonly (ChangedLicense | null)[];

/**
 * Group commit for changes of licenses. The changes that arrive during a commit share the next commit. So changes of the
 * same license do not wait for each other (src/features/postgres/store/README.md, Grouped uses).
 */
export class GroupedChanges {
  readonly #lend: Lend;
  readonly #statements: { change: Statement; changeKeyed: Statement; keep: Statement };
  readonly #waiting: GroupedChange[] = [];
  #isBusy = false;

  constructor(names: Names, lend: Lend) {
    this.#lend = lend;
    this.#statements = {
      change: changeStatement(names),
      changeKeyed: keyedChangeStatement(names),
      keep: statementOf(inSchema(names, storeResponses)),
    };
  }

  /** Makes a change without an idempotency key, like `LicenseTable.change`. Rejects like `join`. */
  change(change: LicenseChange): Promise<ChangedLicense | null> {
    const { promise, resolve, reject } = Promise.withResolvers<ChangedLicense | null>();
    this.join({
      change,
      idempotency: null,
      answer: () => Promise.resolve(null),
      done: resolve,
      fail: reject,
      leave: () => {
        this.#changeAll([change], false).then(([changed = null]) => resolve(changed), reject);
      },
    });
    return promise;
  }

  /** `fail` gets the errors of `Connection.autocommit`, `Connection.commit` and `lend`. */
  join(change: GroupedChange): void {
    this.#waiting.push(change);
    if (!this.#isBusy) void this.#commitAll();
  }

  async #commitAll(): Promise<void> {
    this.#isBusy = true;
    while (this.#waiting.length > 0) await this.#commit(this.#waiting.splice(0, maxGroup));
    this.#isBusy = false;
  }

  async #commit(group: readonly GroupedChange[]): Promise<void> {
    const isKeyed = group.some(({ idempotency }) => idempotency !== null);
    try {
      const results = await (isKeyed ? this.#transact(group) : this.#changeAll(changesOf(group), true));
      for (const [index, each] of group.entries()) {
        const changed = results[index] ?? null;
        if (changed === null) each.leave();
        else each.done(changed);
      }
    } catch (error) {
      for (const each of group) {
        // The server rejected the group because of one change. It may accept the others.
        if (isAnswered(error)) each.leave();
        else each.fail(error);
      }
    }
  }

  async #changeAll(changes: readonly LicenseChange[], skipsLocked: boolean): Promise<Results> {
    const values = changeValues(changes, skipsLocked);
    const rows = await this.#lend((connection) => connection.autocommit(this.#statements.change, values));
    return changesFrom(changes.length, rows);
  }

  async #transact(group: readonly GroupedChange[]): Promise<Results> {
    const { changeKeyed, keep } = this.#statements;
    const values = keyedChangeValues(group);
    return await this.#lend(async (connection) => {
      await connection.begin(null, []);
      connection.waitBriefly();
      const results = changesFrom(group.length, await connection.rows(changeKeyed, values));
      const counts = await unchangedCounts(connection, group, results);
      const answers = await Promise.all(responsesOf(group, results, counts));
      const responses = answers.flatMap(({ answer }) => answer ?? []);
      // A refused change has no response: roll back, and try each change alone. A change without effect may stay.
      if (answers.some(({ answer, isUnchanged }) => answer === null && !isUnchanged)) {
        await connection.rollback();
        return [];
      }
      connection.send(keep, [JSON.stringify(responses)]);
      await connection.commit();
      return results;
    });
  }
}

function changesOf(group: readonly GroupedChange[]): LicenseChange[] {
  return group.map(({ change }) => change);
}

type UnchangedCounts = ReadonlyMap<string, number>;

/** The `unchangedCount` of each credential that has a change without effect in the group. */
async function unchangedCounts(
  { transaction }: Connection,
  group: readonly GroupedChange[],
  results: Results,
): Promise<UnchangedCounts> {
  const credentials = group.flatMap(({ idempotency }, index) => {
    const changed = results[index] ?? null;
    return idempotency !== null && changed !== null && isSame(changed) ? [idempotency.credential] : [];
  });
  const counts = new Map<string, number>();
  for (const credential of new Set(credentials)) {
    counts.set(credential, await transaction.idempotency.unchangedCount(credential));
  }
  return counts;
}

function isSame({ before, after }: ChangedLicense): boolean {
  return isSameState(before, after);
}

type GroupedResponse = { answer: ResponseToStore | null; isUnchanged: boolean };

function responsesOf(
  group: readonly GroupedChange[],
  results: Results,
  counts: UnchangedCounts,
): Promise<GroupedResponse>[] {
  return group.flatMap((each, index) => {
    const changed = results[index] ?? null;
    if (each.idempotency === null || changed === null) return [];
    const answered = each.answer(changed, counts.get(each.idempotency.credential) ?? 0);
    return [answered.then((answer) => ({ answer, isUnchanged: isSame(changed) }))];
  });
}

/** The tables that a use case of `runInGroup` may use. */
type Tables = {
  events: AuthorityTransaction['events'];
  licenses: Pick<AwaitableTable<LicenseTable>, 'change'>;
  idempotency: Pick<AwaitableTable<IdempotencyTable>, 'get' | 'put' | 'unchangedCount'>;
};

/**
 * Runs a use case that only changes one license, with an idempotency key, in a group commit. Null: nothing was changed,
 * and the use case must run in its own transaction, which finds the reason. Rejects with the error of
 * `GroupedChanges.join`.
 */
export async function runInGroup<Result>(
  group: GroupedChanges,
  idempotency: Idempotency,
  run: (transaction: AuthorityTransaction) => Awaitable<Result>,
): Promise<{ result: Result } | null> {
  const changed = Promise.withResolvers<ChangedLicense | null>();
  let unchangedCount = 0;
  const answer = Promise.withResolvers<ResponseToStore | null>();
  const isDone = Promise.withResolvers<boolean>();
  // If the use case fails, nothing awaits this promise.
  isDone.promise.catch(() => undefined);
  const tables: Tables = {
    events: collectEvents(),
    licenses: {
      change(change) {
        group.join({
          change,
          idempotency,
          answer(result, unchangedBefore) {
            unchangedCount = unchangedBefore;
            changed.resolve(result);
            return answer.promise;
          },
          done: () => isDone.resolve(true),
          fail(error) {
            changed.reject(error);
            isDone.reject(error);
          },
          leave() {
            changed.resolve(null);
            isDone.resolve(false);
          },
        });
        return changed.promise;
      },
    },
    idempotency: {
      // The change itself finds a stored response.
      get: () => null,
      unchangedCount: () => unchangedCount,
      put: (_credential, _key, { value, until, unchanged }) =>
        answer.resolve({ ...idempotency, value: JSON.stringify(value), until, unchanged }),
    },
  };
  let result: Result;
  try {
    result = await run(tables as AuthorityTransaction);
  } finally {
    // Without a response by now, the use case was refused or has failed. The group must not wait for it.
    answer.resolve(null);
  }
  return (await isDone.promise) ? { result } : null;
}
