import type { LicenseChange } from '../../service/authority/tables.ts';
import type { Connection } from './connection.ts';
import { isAnswered } from './faults.ts';
import type { Names } from './names.ts';
import type { Row, Statement } from './statements.ts';
import { changesAsked, changesMade, changeStatement, type ChangedLicense } from './tables/license-change.ts';

/** How many changes are committed together at most. */
const most = 128;

/** Lends a connection of the pool. */
type Lend = (work: (connection: Connection) => Promise<readonly Row[]>) => Promise<readonly Row[]>;

type Waiting = PromiseWithResolvers<ChangedLicense | null> & { readonly change: LicenseChange };

/**
 * Changes of licenses, those that come while others are being committed in one statement: many share one commit, and
 * those of one license do not wait for one another (src/store/postgres/README.md, Uses together).
 */
export class GroupedChanges {
  readonly #lend: Lend;
  readonly #statement: Statement;
  readonly #waiting: Waiting[] = [];
  #isBusy = false;

  constructor(names: Names, lend: Lend) {
    this.#lend = lend;
    this.#statement = changeStatement(names);
  }

  /** Gives what `LicenseTable.change` does; rejects as `Connection.autocommit` and `lend` do. */
  change(change: LicenseChange): Promise<ChangedLicense | null> {
    const waiting = { change, ...Promise.withResolvers<ChangedLicense | null>() };
    this.#waiting.push(waiting);
    if (!this.#isBusy) void this.#commitAll();
    return waiting.promise;
  }

  async #commitAll(): Promise<void> {
    this.#isBusy = true;
    while (this.#waiting.length > 0) await this.#commit(this.#waiting.splice(0, most));
    this.#isBusy = false;
  }

  /** A license that another transaction is changing is not waited for by all: its change is made alone. */
  async #commit(group: readonly Waiting[]): Promise<void> {
    try {
      const changes = group.map(({ change }) => change);
      const made = await this.#send(changes, true);
      for (const [index, each] of group.entries()) {
        const changed = made[index] ?? null;
        if (changed === null) void this.#commitAlone(each);
        else each.resolve(changed);
      }
    } catch (error) {
      for (const each of group) {
        // What the server has refused because of one change, it may accept of the others.
        if (isAnswered(error)) void this.#commitAlone(each);
        else each.reject(error);
      }
    }
  }

  async #commitAlone({ change, resolve, reject }: Waiting): Promise<void> {
    try {
      const [made = null] = await this.#send([change], false);
      resolve(made);
    } catch (error) {
      reject(error);
    }
  }

  async #send(changes: readonly LicenseChange[], skipsLocked: boolean): Promise<(ChangedLicense | null)[]> {
    const rows = await this.#lend((connection) =>
      connection.autocommit(this.#statement, changesAsked(changes, skipsLocked)),
    );
    return changesMade(changes.length, rows);
  }
}
