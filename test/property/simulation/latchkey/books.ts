import { AsyncLocalStorage } from 'node:async_hooks';
import type { DatabaseSync } from 'node:sqlite';

/** The request that is carried out. `isAnswered`: its caller was answered by the agent before. */
type Carried = { operation: string | null; isAnswered: boolean };

const carried = new AsyncLocalStorage<Carried>();

/** Carries out a request, so that the books know its operation. */
export function carryOut<Value>(request: Carried, work: () => Promise<Value>): Promise<Value> {
  return carried.run(request, work);
}

const columns = 'operation, event, subject, change, revision, at';

/*
 * A line for each change of a license, a coupon or a redemption. Nothing of the product decides here, so that a fault of the
 * product cannot excuse itself: triggers write the lines. A rollback or a restore takes back the lines with the changes.
 */
const schema = `
  CREATE TABLE booked (
    number INTEGER PRIMARY KEY, operation TEXT, event TEXT NOT NULL, subject TEXT NOT NULL, change INTEGER NOT NULL,
    revision INTEGER, at INTEGER NOT NULL
  );
  CREATE INDEX booked_operation ON booked (operation);
  CREATE INDEX booked_subject ON booked (subject);
  CREATE TRIGGER book_count AFTER UPDATE OF uses ON license WHEN new.uses <> old.uses BEGIN
    INSERT INTO booked (${columns})
    VALUES (carried('operation'), 'count', new.license_key, new.uses - old.uses, new.revision, carried('at'));
  END;
  CREATE TRIGGER book_state AFTER UPDATE OF enabled ON license WHEN new.enabled <> old.enabled BEGIN
    INSERT INTO booked (${columns})
    VALUES (carried('operation'), 'state', new.license_key, new.enabled - old.enabled, new.revision, carried('at'));
  END;
  CREATE TRIGGER book_refund AFTER UPDATE OF refunded_at ON purchase BEGIN
    INSERT INTO booked (${columns}) VALUES (carried('operation'), 'state', new.license_key, -1, NULL, carried('at'));
  END;
  CREATE TRIGGER book_coupon AFTER INSERT ON coupon BEGIN
    INSERT INTO booked (${columns}) VALUES (carried('operation'), 'coupon', new.code, new.id, NULL, carried('at'));
  END;
  CREATE TRIGGER book_redemption AFTER INSERT ON redemption BEGIN
    INSERT INTO booked (${columns})
    VALUES (carried('operation'), 'redemption', new.order_id, 1, NULL, carried('at'));
    INSERT INTO booked (${columns})
    SELECT carried('operation'), 'limit', new.order_id, is_over - new.over_limit, NULL, carried('at') FROM (
      SELECT coalesce((SELECT count(*) FROM redemption WHERE coupon_id = new.coupon_id) > usage_limit, 0) AS is_over
      FROM coupon WHERE id = new.coupon_id
    ) WHERE is_over <> new.over_limit OR (is_over AND NOT carried('isAnswered'));
  END;
  CREATE TRIGGER book_void AFTER DELETE ON redemption BEGIN
    INSERT INTO booked (${columns})
    VALUES (carried('operation'), 'redemption', old.order_id, -1, NULL, carried('at'));
  END;`;

export type Line = {
  operation: string | null;
  event: 'count' | 'state' | 'coupon' | 'redemption' | 'limit';
  subject: string;
  change: number;
  revision: number | null;
  at: number;
};

/** What has happened at an authority. */
export class Books {
  readonly #database: DatabaseSync;

  /** `isNew`: the database has no books yet. `now`: ms of virtual time. */
  constructor(database: DatabaseSync, isNew: boolean, now: () => number) {
    this.#database = database;
    database.function('carried', (name) => {
      const { operation = null, isAnswered = false } = carried.getStore() ?? {};
      return name === 'at' ? now() : name === 'operation' ? operation : Number(isAnswered);
    });
    if (isNew) database.exec(schema);
  }

  /**
   * Says what no request may do; null: nothing. `decided`: operations that a person has retried. `since` (ms of virtual time):
   * nothing is counted twice since then.
   */
  fault(decided: ReadonlySet<string>, since: number): string | null {
    const twice = this.#all(
      `SELECT * FROM booked WHERE operation IS NOT NULL AND event IN ('count', 'coupon', 'redemption') AND at >= ?
       GROUP BY operation, subject HAVING count(*) > 1`,
      since,
    ).find(({ operation }) => operation !== null && !decided.has(operation));
    if (twice !== undefined)
      return `count: ${twice.operation} of ${twice.subject} was carried out more than once`;
    const [beyond] = this.#all("SELECT * FROM booked WHERE event = 'limit'");
    if (beyond !== undefined) return `limit: the redemption of ${beyond.subject} is beyond the limit`;
    const [miscounted] = this.#database
      .prepare(
        `SELECT coupon_id AS id FROM redemption_count AS counted WHERE count <>
           (SELECT count(*) FROM redemption WHERE redemption.coupon_id = counted.coupon_id)`,
      )
      .all();
    return miscounted === undefined ? null : `count: the coupon ${String(miscounted['id'])} is miscounted`;
  }

  /** The lines of an operation. */
  of(operation: string): Line[] {
    return this.#all('SELECT * FROM booked WHERE operation = ? ORDER BY number', operation);
  }

  about(event: Line['event'], subject: string): Line[] {
    return this.#all('SELECT * FROM booked WHERE event = ? AND subject = ? ORDER BY number', event, subject);
  }

  #all(sql: string, ...parameters: (string | number)[]): Line[] {
    return this.#database.prepare(sql).all(...parameters) as Line[];
  }
}
