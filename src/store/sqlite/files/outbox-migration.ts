/**
 * Part of migration 5: the outbox has more kinds of operations and another queue. SQLite cannot change the CHECKs of a table,
 * so the table is copied; schema.sql explains its columns.
 */
export const outboxOf5: string = `CREATE TABLE new_outbox (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  kind TEXT NOT NULL CHECK (
    kind = 'usage' OR kind = 'decrease' OR kind = 'disable' OR kind = 'enable' OR kind = 'create_coupon'
    OR kind = 'redeem' OR kind = 'void'
  ),
  -- A license key, a coupon code, or the order of a redemption.
  subject TEXT NOT NULL,
  queue TEXT NOT NULL CHECK (
    queue = 'counter' OR queue = 'state' OR queue = 'coupon' OR queue = 'order'
  ),
  -- Null: a coupon or a redemption.
  product_key TEXT,
  state TEXT NOT NULL CHECK (
    state = 'pending' OR state = 'in_flight' OR state = 'uncertain' OR state = 'delivered' OR state = 'inferred'
    OR state = 'conflicted' OR state = 'dead' OR state = 'cancelled' OR state = 'dropped'
  ),
  maybe_applied INTEGER NOT NULL CHECK (
    maybe_applied = 0
    OR (maybe_applied = 1 AND (state = 'pending' OR state = 'in_flight' OR state = 'uncertain'))
  ),
  -- 1: it was sent under its id, and the upstream has not answered: it may have applied it.
  unanswered INTEGER NOT NULL DEFAULT 0 CHECK (
    unanswered = 0 OR (unanswered = 1 AND (state = 'pending' OR state = 'in_flight'))
  ),
  held INTEGER NOT NULL CHECK (held = 0 OR (held = 1 AND state = 'uncertain')),
  cause TEXT CHECK ((cause IS NOT NULL) = (state = 'dead') AND cause IN ('refused', 'missing')),
  base_uses INTEGER CHECK (base_uses IS NULL OR state IN ('in_flight', 'uncertain')),
  sent_at INTEGER CHECK ((sent_at IS NOT NULL) = (state = 'in_flight')),
  attempts INTEGER NOT NULL CHECK (attempts >= 0),
  failures INTEGER NOT NULL CHECK (failures >= 0),
  next_at INTEGER CHECK (
    next_at IS NULL OR (held = 0 AND (state = 'pending' OR state = 'in_flight' OR state = 'uncertain'))
  ),
  outage INTEGER NOT NULL CHECK (outage IN (0, 1)),
  reconcile_at INTEGER,
  upstream TEXT,
  last_error TEXT,
  seen_enabled INTEGER CHECK (seen_enabled IN (0, 1)),
  payload TEXT,
  created_at INTEGER NOT NULL,
  finished_at INTEGER CHECK (
    (finished_at IS NOT NULL)
    = (state = 'delivered' OR state = 'inferred' OR state = 'cancelled' OR state = 'dropped')
  ),
  request_id TEXT,
  credential TEXT,
  -- Of an enable: the revision at which its caller saw the license.
  seen_revision INTEGER,
  unfinished INTEGER NOT NULL AS (
    (queue = 'counter' OR queue = 'state') AND (state = 'pending' OR state = 'in_flight' OR state = 'uncertain')
  ),
  usages INTEGER NOT NULL AS (kind = 'usage' AND unfinished AND held = 0),
  decreases INTEGER NOT NULL AS (kind = 'decrease' AND unfinished AND held = 0),
  disables INTEGER NOT NULL AS (kind = 'disable' AND (unfinished OR state = 'conflicted' OR state = 'dead'))
) STRICT;
INSERT INTO new_outbox (
  seq, id, kind, subject, queue, product_key, state, maybe_applied, held, cause, base_uses, sent_at,
    attempts, failures, next_at, outage, reconcile_at, upstream, last_error, seen_enabled, payload,
    created_at, finished_at, request_id, credential
) SELECT
  seq, id, kind, subject, queue, product_key, state, maybe_applied, held, cause, base_uses, sent_at,
    attempts, failures, next_at, outage, reconcile_at, upstream, last_error, seen_enabled, payload,
    created_at, finished_at, request_id, credential
FROM outbox;
-- A number is never used again.
DELETE FROM sqlite_sequence WHERE name = 'new_outbox';
INSERT INTO sqlite_sequence (name, seq) SELECT 'new_outbox', seq FROM sqlite_sequence WHERE name = 'outbox';
DROP TABLE outbox;
ALTER TABLE new_outbox RENAME TO outbox;
CREATE INDEX outbox_state ON outbox (state);
CREATE INDEX outbox_held ON outbox (seq) WHERE held = 1;
CREATE INDEX outbox_queue ON outbox (subject, queue)
  WHERE (state = 'pending' OR state = 'in_flight' OR state = 'uncertain');
CREATE INDEX outbox_uncertain ON outbox (subject, queue) WHERE state = 'uncertain' AND held = 0;
CREATE INDEX outbox_dead ON outbox (subject) WHERE state IN ('conflicted', 'dead');
CREATE INDEX outbox_reconcile ON outbox (subject, queue, reconcile_at) WHERE reconcile_at IS NOT NULL;
CREATE INDEX outbox_due ON outbox (product_key, next_at) WHERE next_at IS NOT NULL;
CREATE INDEX outbox_outage ON outbox (next_at) WHERE outage = 1;
CREATE INDEX outbox_finished ON outbox (finished_at) WHERE finished_at IS NOT NULL;
CREATE TRIGGER outbox_count_insert AFTER INSERT ON outbox BEGIN
  UPDATE outbox_count SET count = count + 1 WHERE state = new.state;
END;
CREATE TRIGGER outbox_count_delete AFTER DELETE ON outbox BEGIN
  UPDATE outbox_count SET count = count - 1 WHERE state = old.state;
END;
CREATE TRIGGER outbox_count_update AFTER UPDATE OF state ON outbox WHEN new.state <> old.state BEGIN
  UPDATE outbox_count SET count = count - 1 WHERE state = old.state;
  UPDATE outbox_count SET count = count + 1 WHERE state = new.state;
END;
CREATE TRIGGER outbox_backlog_insert AFTER INSERT ON outbox WHEN new.unfinished OR new.disables BEGIN
  INSERT INTO outbox_backlog (subject, usages, decreases, disables, unfinished)
    VALUES (new.subject, new.usages, new.decreases, new.disables, new.unfinished)
    ON CONFLICT (subject) DO UPDATE SET
      usages = usages + excluded.usages,
      decreases = decreases + excluded.decreases,
      disables = disables + excluded.disables,
      unfinished = unfinished + excluded.unfinished;
END;
CREATE TRIGGER outbox_backlog_update AFTER UPDATE OF state, held ON outbox
WHEN new.unfinished <> old.unfinished
  OR new.usages <> old.usages
  OR new.decreases <> old.decreases
  OR new.disables <> old.disables BEGIN
  INSERT INTO outbox_backlog (subject, usages, decreases, disables, unfinished)
    VALUES (
      new.subject,
      new.usages - old.usages,
      new.decreases - old.decreases,
      new.disables - old.disables,
      new.unfinished - old.unfinished
    )
    ON CONFLICT (subject) DO UPDATE SET
      usages = usages + excluded.usages,
      decreases = decreases + excluded.decreases,
      disables = disables + excluded.disables,
      unfinished = unfinished + excluded.unfinished;
  DELETE FROM outbox_backlog WHERE subject = new.subject AND unfinished = 0 AND disables = 0;
END;
CREATE TRIGGER outbox_backlog_subject AFTER UPDATE OF subject ON outbox
WHEN new.subject <> old.subject AND (new.unfinished OR new.disables) BEGIN
  INSERT INTO outbox_backlog (subject, usages, decreases, disables, unfinished)
    VALUES
      (new.subject, new.usages, new.decreases, new.disables, new.unfinished),
      (old.subject, -old.usages, -old.decreases, -old.disables, -old.unfinished)
    ON CONFLICT (subject) DO UPDATE SET
      usages = usages + excluded.usages,
      decreases = decreases + excluded.decreases,
      disables = disables + excluded.disables,
      unfinished = unfinished + excluded.unfinished;
  DELETE FROM outbox_backlog WHERE subject = old.subject AND unfinished = 0 AND disables = 0;
END;`;
