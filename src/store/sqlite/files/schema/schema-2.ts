/*
 * The second schema: fences, doubt and refusals that outlive a change of mind, the upstream of an operation,
 * other spellings of a license key, and what a key's queue adds up to. (src/sync/README.md, Operation states)
 */
export const schema2: string = /* sql */ `
CREATE TABLE outbox_2 (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  kind TEXT NOT NULL
    CHECK (kind IN ('usage', 'decrease', 'disable', 'enable', 'create_coupon', 'redeem', 'void')),
  subject TEXT NOT NULL,
  lane TEXT NOT NULL CHECK (lane IN ('counter', 'state', 'coupon', 'redemption')),
  product_key TEXT,
  state TEXT NOT NULL
    CHECK (state IN ('pending', 'in_flight', 'uncertain', 'delivered', 'inferred',
                     'conflicted', 'dead', 'cancelled', 'dropped')),
  doubtful INTEGER NOT NULL
    CHECK (doubtful = 0 OR (doubtful = 1 AND state IN ('pending', 'in_flight', 'uncertain'))),
  held INTEGER NOT NULL CHECK (held = 0 OR (held = 1 AND state = 'uncertain')),
  cause TEXT CHECK ((cause IS NOT NULL) = (state = 'dead') AND cause IN ('refused', 'missing')),
  base_uses INTEGER CHECK (base_uses IS NULL OR state IN ('in_flight', 'uncertain')),
  sent_at INTEGER CHECK ((sent_at IS NOT NULL) = (state = 'in_flight')),
  attempts INTEGER NOT NULL CHECK (attempts >= 0),
  failures INTEGER NOT NULL CHECK (failures >= 0),
  next_at INTEGER
    CHECK (next_at IS NULL OR (held = 0 AND state IN ('pending', 'in_flight', 'uncertain'))),
  outage INTEGER NOT NULL CHECK (outage IN (0, 1)),
  fenced_until INTEGER,
  upstream TEXT,
  last_error TEXT,
  seen_enabled INTEGER CHECK (seen_enabled IN (0, 1)),
  payload TEXT,
  created_at INTEGER NOT NULL,
  finished_at INTEGER
    CHECK ((finished_at IS NOT NULL) = (state IN ('delivered', 'inferred', 'cancelled', 'dropped')))
) STRICT;
INSERT INTO outbox_2 (seq, id, kind, subject, lane, product_key, state, doubtful, held, cause, base_uses, sent_at,
    attempts, failures, next_at, outage, fenced_until, last_error, payload, created_at, finished_at)
  SELECT seq, id, kind, subject, lane, product_key, state, doubtful, held,
    CASE WHEN state <> 'dead' THEN NULL
         WHEN last_error = 'the upstream does not know this license key' THEN 'missing' ELSE 'refused' END,
    base_uses, sent_at, attempts, failures, next_at, outage,
    CASE WHEN state = 'uncertain' AND held = 0 THEN next_at END,
    last_error, payload, created_at, finished_at
  FROM outbox;
UPDATE outbox_2 SET fenced_until = (SELECT lingers_until FROM observation WHERE license_key = subject)
  WHERE kind = 'disable' AND seq IN (SELECT max(seq) FROM outbox_2 WHERE kind = 'disable' GROUP BY subject);
DELETE FROM sqlite_sequence WHERE name = 'outbox_2';
INSERT INTO sqlite_sequence (name, seq) SELECT 'outbox_2', seq FROM sqlite_sequence WHERE name = 'outbox';
DROP TABLE outbox;
ALTER TABLE outbox_2 RENAME TO outbox;
CREATE INDEX outbox_state ON outbox (state);
CREATE INDEX outbox_held ON outbox (seq) WHERE held = 1;
CREATE INDEX outbox_open ON outbox (seq) WHERE finished_at IS NULL;
CREATE INDEX outbox_lane ON outbox (subject, lane) WHERE state IN ('pending', 'in_flight', 'uncertain');
CREATE INDEX outbox_uncertain ON outbox (subject, lane) WHERE state = 'uncertain' AND held = 0;
CREATE INDEX outbox_dead ON outbox (subject) WHERE state IN ('conflicted', 'dead');
CREATE INDEX outbox_fenced ON outbox (subject, lane, fenced_until) WHERE fenced_until IS NOT NULL;
CREATE INDEX outbox_due ON outbox (product_key, next_at) WHERE next_at IS NOT NULL;
CREATE INDEX outbox_outage ON outbox (next_at) WHERE outage = 1;
CREATE INDEX outbox_finished ON outbox (finished_at) WHERE finished_at IS NOT NULL;

CREATE TRIGGER outbox_added AFTER INSERT ON outbox BEGIN
  UPDATE outbox_depth SET count = count + 1 WHERE state = new.state;
END;
CREATE TRIGGER outbox_removed AFTER DELETE ON outbox BEGIN
  UPDATE outbox_depth SET count = count - 1 WHERE state = old.state;
END;
CREATE TRIGGER outbox_moved AFTER UPDATE OF state ON outbox WHEN new.state <> old.state BEGIN
  UPDATE outbox_depth SET count = count - 1 WHERE state = old.state;
  UPDATE outbox_depth SET count = count + 1 WHERE state = new.state;
END;

-- What the unfinished operations of a license key add up to, without looking at each.
CREATE TABLE outbox_backlog (
  subject TEXT PRIMARY KEY NOT NULL,
  usages INTEGER NOT NULL,
  decreases INTEGER NOT NULL,
  disables INTEGER NOT NULL,
  unfinished INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE VIEW outbox_weight AS
  SELECT seq, subject,
    kind = 'usage' AND held = 0 AND state IN ('pending', 'in_flight', 'uncertain') AS usages,
    kind = 'decrease' AND held = 0 AND state IN ('pending', 'in_flight', 'uncertain') AS decreases,
    kind = 'disable' AND state IN ('pending', 'in_flight', 'uncertain', 'conflicted', 'dead') AS disables,
    state IN ('pending', 'in_flight', 'uncertain') AS unfinished
  FROM outbox WHERE lane IN ('counter', 'state');
INSERT INTO outbox_backlog (subject, usages, decreases, disables, unfinished)
  SELECT subject, sum(usages), sum(decreases), sum(disables), sum(unfinished) FROM outbox_weight
  WHERE usages OR decreases OR disables OR unfinished GROUP BY subject;
CREATE TRIGGER outbox_weighed AFTER INSERT ON outbox WHEN new.lane IN ('counter', 'state') BEGIN
  INSERT INTO outbox_backlog (subject, usages, decreases, disables, unfinished)
    SELECT subject, usages, decreases, disables, unfinished FROM outbox_weight WHERE seq = new.seq
    ON CONFLICT (subject) DO UPDATE SET usages = usages + excluded.usages,
      decreases = decreases + excluded.decreases, disables = disables + excluded.disables,
      unfinished = unfinished + excluded.unfinished;
END;
CREATE TRIGGER outbox_reweighed AFTER UPDATE OF state, held ON outbox
WHEN new.lane IN ('counter', 'state') AND (new.held <> old.held
  OR (new.state IN ('pending', 'in_flight', 'uncertain')) <> (old.state IN ('pending', 'in_flight', 'uncertain'))
  OR (new.kind = 'disable' AND new.state <> old.state)) BEGIN
  INSERT OR IGNORE INTO outbox_backlog (subject, usages, decreases, disables, unfinished)
    VALUES (new.subject, 0, 0, 0, 0);
  UPDATE outbox_backlog SET
    usages = usages - (old.kind = 'usage' AND old.held = 0 AND old.state IN ('pending', 'in_flight', 'uncertain'))
      + (new.kind = 'usage' AND new.held = 0 AND new.state IN ('pending', 'in_flight', 'uncertain')),
    decreases = decreases
      - (old.kind = 'decrease' AND old.held = 0 AND old.state IN ('pending', 'in_flight', 'uncertain'))
      + (new.kind = 'decrease' AND new.held = 0 AND new.state IN ('pending', 'in_flight', 'uncertain')),
    disables = disables
      - (old.kind = 'disable' AND old.state IN ('pending', 'in_flight', 'uncertain', 'conflicted', 'dead'))
      + (new.kind = 'disable' AND new.state IN ('pending', 'in_flight', 'uncertain', 'conflicted', 'dead')),
    unfinished = unfinished - (old.state IN ('pending', 'in_flight', 'uncertain'))
      + (new.state IN ('pending', 'in_flight', 'uncertain'))
    WHERE subject = new.subject;
  DELETE FROM outbox_backlog WHERE subject = new.subject AND unfinished = 0 AND disables = 0;
END;
CREATE TRIGGER outbox_respelled AFTER UPDATE OF subject ON outbox
WHEN new.lane IN ('counter', 'state') AND new.subject <> old.subject BEGIN
  INSERT INTO outbox_backlog (subject, usages, decreases, disables, unfinished)
    SELECT subject, usages, decreases, disables, unfinished FROM outbox_weight WHERE seq = new.seq
    ON CONFLICT (subject) DO UPDATE SET usages = usages + excluded.usages,
      decreases = decreases + excluded.decreases, disables = disables + excluded.disables,
      unfinished = unfinished + excluded.unfinished;
  UPDATE outbox_backlog SET usages = outbox_backlog.usages - weight.usages,
      decreases = outbox_backlog.decreases - weight.decreases,
      disables = outbox_backlog.disables - weight.disables,
      unfinished = outbox_backlog.unfinished - weight.unfinished
    FROM outbox_weight AS weight WHERE weight.seq = new.seq AND outbox_backlog.subject = old.subject;
  DELETE FROM outbox_backlog WHERE subject = old.subject AND unfinished = 0 AND disables = 0;
END;

-- Other spellings of a license key under which callers know it; the upstream's own is the subject.
CREATE TABLE license_alias (
  alias TEXT PRIMARY KEY NOT NULL,
  license_key TEXT NOT NULL
) STRICT, WITHOUT ROWID;

DROP INDEX observation_lingering;
DROP INDEX observation_refresh;
ALTER TABLE observation DROP COLUMN lingers_until;
ALTER TABLE observation ADD COLUMN read_first INTEGER NOT NULL DEFAULT 0 CHECK (read_first IN (0, 1));
CREATE INDEX observation_refresh ON observation (refresh_at) WHERE refresh_at IS NOT NULL;

-- Stored answers of changes that changed nothing: they are bounded, since nothing else bounds them.
ALTER TABLE idempotency ADD COLUMN unchanged INTEGER NOT NULL DEFAULT 0 CHECK (unchanged IN (0, 1));
CREATE INDEX idempotency_unchanged ON idempotency (credential) WHERE unchanged = 1;
`;
