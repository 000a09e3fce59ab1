/*
 * The fifth schema: what a key's queue adds up to is kept by fewer and cheaper steps, and what lists and the status
 * tell of large tables is kept instead of counted. SQLite makes a table of its own for each `IN` of more than two
 * words, each time that a trigger runs; words joined by OR cost nothing.
 */
const isUnfinished = (row: 'old' | 'new'): string =>
  `(${row}.state = 'pending' OR ${row}.state = 'in_flight' OR ${row}.state = 'uncertain')`;
const counts = (row: 'old' | 'new', kind: 'usage' | 'decrease'): string =>
  `(${row}.kind = '${kind}' AND ${row}.held = 0 AND ${isUnfinished(row)})`;
const disables = (row: 'old' | 'new'): string =>
  `(${row}.kind = 'disable' AND (${isUnfinished(row)} OR ${row}.state = 'conflicted' OR ${row}.state = 'dead'))`;

const addUp = /* sql */ `ON CONFLICT (subject) DO UPDATE SET usages = usages + excluded.usages,
      decreases = decreases + excluded.decreases, disables = disables + excluded.disables,
      unfinished = unfinished + excluded.unfinished`;

const countLicense = /* sql */ `INSERT INTO license_count (product_key, licenses, disabled)
    VALUES (new.product_key, 1, new.enabled = 0)
    ON CONFLICT (product_key) DO UPDATE SET licenses = licenses + 1, disabled = disabled + excluded.disabled;`;
const discountLicense = /* sql */ `UPDATE license_count
    SET licenses = licenses - 1, disabled = disabled - (old.enabled = 0) WHERE product_key = old.product_key;`;

export const schema5: string = /* sql */ `
DROP TRIGGER outbox_weighed;
CREATE TRIGGER outbox_weighed AFTER INSERT ON outbox WHEN new.lane = 'counter' OR new.lane = 'state' BEGIN
  INSERT INTO outbox_backlog (subject, usages, decreases, disables, unfinished)
    VALUES (new.subject, ${counts('new', 'usage')}, ${counts('new', 'decrease')}, ${disables('new')},
      ${isUnfinished('new')})
    ${addUp};
END;

DROP TRIGGER outbox_reweighed;
CREATE TRIGGER outbox_reweighed AFTER UPDATE OF state, held ON outbox
WHEN (new.lane = 'counter' OR new.lane = 'state') AND (new.held <> old.held
  OR ${isUnfinished('new')} <> ${isUnfinished('old')}
  OR (new.kind = 'disable' AND new.state <> old.state)) BEGIN
  INSERT INTO outbox_backlog (subject, usages, decreases, disables, unfinished)
    VALUES (new.subject, ${counts('new', 'usage')} - ${counts('old', 'usage')},
      ${counts('new', 'decrease')} - ${counts('old', 'decrease')}, ${disables('new')} - ${disables('old')},
      ${isUnfinished('new')} - ${isUnfinished('old')})
    ${addUp};
  DELETE FROM outbox_backlog WHERE subject = new.subject AND unfinished = 0 AND disables = 0;
END;

-- How many licenses each product has, and how many of them are disabled, without counting them.
CREATE TABLE license_count (
  product_key TEXT PRIMARY KEY NOT NULL,
  licenses INTEGER NOT NULL,
  disabled INTEGER NOT NULL CHECK (disabled BETWEEN 0 AND licenses)
) STRICT, WITHOUT ROWID;
INSERT INTO license_count (product_key, licenses, disabled)
  SELECT product_key, count(*), 0 FROM license GROUP BY product_key;
UPDATE license_count SET disabled = counted.disabled
  FROM (SELECT product_key, count(*) AS disabled FROM license NOT INDEXED WHERE enabled = 0 GROUP BY product_key)
    AS counted
  WHERE counted.product_key = license_count.product_key;
CREATE TRIGGER license_added AFTER INSERT ON license BEGIN
  ${countLicense}
END;
CREATE TRIGGER license_changed AFTER UPDATE OF enabled, product_key ON license
WHEN new.enabled <> old.enabled OR new.product_key <> old.product_key BEGIN
  ${discountLicense}
  ${countLicense}
END;
CREATE TRIGGER license_removed AFTER DELETE ON license BEGIN
  ${discountLicense}
END;
-- A list of the disabled ones, which are few, does not look at the others.
CREATE INDEX license_disabled ON license (license_key) WHERE enabled = 0;

-- How many of the licenses of each product were bought, and how many of those purchases refunded.
CREATE TABLE purchase_count (
  product_key TEXT PRIMARY KEY NOT NULL,
  purchases INTEGER NOT NULL,
  refunded INTEGER NOT NULL CHECK (refunded BETWEEN 0 AND purchases)
) STRICT, WITHOUT ROWID;
INSERT INTO purchase_count (product_key, purchases, refunded)
  SELECT product_key, count(*), 0
  FROM purchase INDEXED BY purchase_license JOIN license USING (license_key) GROUP BY product_key;
UPDATE purchase_count SET refunded = counted.refunded
  FROM (SELECT product_key, count(*) AS refunded FROM purchase JOIN license USING (license_key)
    WHERE refunded_at IS NOT NULL GROUP BY product_key) AS counted
  WHERE counted.product_key = purchase_count.product_key;
CREATE TRIGGER purchase_added AFTER INSERT ON purchase BEGIN
  INSERT INTO purchase_count (product_key, purchases, refunded)
    SELECT product_key, 1, new.refunded_at IS NOT NULL FROM license WHERE license_key = new.license_key
    ON CONFLICT (product_key) DO UPDATE SET purchases = purchases + 1, refunded = refunded + excluded.refunded;
END;
CREATE TRIGGER purchase_refunded AFTER UPDATE OF refunded_at ON purchase
WHEN (new.refunded_at IS NULL) <> (old.refunded_at IS NULL) BEGIN
  UPDATE purchase_count SET refunded = refunded + (old.refunded_at IS NULL) - (new.refunded_at IS NULL)
    WHERE product_key = (SELECT product_key FROM license WHERE license_key = new.license_key);
END;

-- How many license keys an agent last saw confirmed in each hour, without counting them.
CREATE TABLE observation_count (
  enabled INTEGER NOT NULL,
  hour INTEGER NOT NULL,
  count INTEGER NOT NULL CHECK (count >= 0),
  PRIMARY KEY (enabled, hour)
) STRICT, WITHOUT ROWID;
INSERT INTO observation_count (enabled, hour, count)
  SELECT local_enabled, confirmed_at / 3600000, count(*) FROM observation WHERE gone = 0 GROUP BY 1, 2;
CREATE TRIGGER observation_added AFTER INSERT ON observation WHEN new.gone = 0 BEGIN
  INSERT INTO observation_count (enabled, hour, count) VALUES (new.local_enabled, new.confirmed_at / 3600000, 1)
    ON CONFLICT (enabled, hour) DO UPDATE SET count = count + 1;
END;
CREATE TRIGGER observation_changed AFTER UPDATE OF local_enabled, confirmed_at, gone ON observation
WHEN new.local_enabled <> old.local_enabled OR new.gone <> old.gone
  OR new.confirmed_at / 3600000 <> old.confirmed_at / 3600000 BEGIN
  UPDATE observation_count SET count = count - 1
    WHERE old.gone = 0 AND enabled = old.local_enabled AND hour = old.confirmed_at / 3600000;
  DELETE FROM observation_count
    WHERE enabled = old.local_enabled AND hour = old.confirmed_at / 3600000 AND count = 0;
  INSERT INTO observation_count (enabled, hour, count)
    SELECT new.local_enabled, new.confirmed_at / 3600000, 1 WHERE new.gone = 0
    ON CONFLICT (enabled, hour) DO UPDATE SET count = count + 1;
END;
CREATE TRIGGER observation_removed AFTER DELETE ON observation WHEN old.gone = 0 BEGIN
  UPDATE observation_count SET count = count - 1
    WHERE enabled = old.local_enabled AND hour = old.confirmed_at / 3600000;
  DELETE FROM observation_count
    WHERE enabled = old.local_enabled AND hour = old.confirmed_at / 3600000 AND count = 0;
END;

-- How far the license keys to be fetched are, without counting them.
CREATE TABLE preload_count (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  done INTEGER NOT NULL,
  failed INTEGER NOT NULL,
  left INTEGER NOT NULL
) STRICT;
INSERT INTO preload_count (id, done, failed, left)
  SELECT 1, count(*) FILTER (WHERE is_found = 1), count(*) FILTER (WHERE is_found = 0),
    count(*) FILTER (WHERE is_found IS NULL) FROM preload;
CREATE TRIGGER preload_added AFTER INSERT ON preload BEGIN
  UPDATE preload_count SET left = left + 1;
END;
CREATE TRIGGER preload_changed AFTER UPDATE OF is_found ON preload WHEN new.is_found IS NOT old.is_found BEGIN
  UPDATE preload_count SET done = done + (new.is_found IS 1) - (old.is_found IS 1),
    failed = failed + (new.is_found IS 0) - (old.is_found IS 0),
    left = left + (new.is_found IS NULL) - (old.is_found IS NULL);
END;
`;
