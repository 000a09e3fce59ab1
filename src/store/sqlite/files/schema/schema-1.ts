/*
 * The first schema. A migration is never changed once it was released: what comes later is the next one.
 * Times are epoch ms, truth values 0 or 1, amounts cents, digests SHA-256 as lower-case hexadecimal.
 */
export const schema1: string = /* sql */ `
CREATE TABLE account (
  account_id TEXT PRIMARY KEY NOT NULL,
  name TEXT NOT NULL,
  key_digest TEXT NOT NULL UNIQUE,
  created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE product (
  product_key TEXT PRIMARY KEY NOT NULL,
  account_id TEXT NOT NULL REFERENCES account,
  name TEXT NOT NULL,
  recurring INTEGER NOT NULL CHECK (recurring IN (0, 1)),
  secret_digest TEXT NOT NULL UNIQUE,
  created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE collection (
  collection_id TEXT PRIMARY KEY NOT NULL,
  account_id TEXT NOT NULL REFERENCES account,
  name TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE collection_member (
  collection_id TEXT NOT NULL REFERENCES collection,
  position INTEGER NOT NULL,
  product_key TEXT NOT NULL REFERENCES product,
  PRIMARY KEY (collection_id, position),
  UNIQUE (collection_id, product_key)
) STRICT, WITHOUT ROWID;

CREATE TABLE license (
  license_key TEXT PRIMARY KEY NOT NULL,
  product_key TEXT NOT NULL REFERENCES product,
  buyer_email TEXT NOT NULL,
  uses INTEGER NOT NULL,
  enabled INTEGER NOT NULL CHECK (enabled IN (0, 1)),
  created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX license_product ON license (product_key);
CREATE INDEX license_buyer ON license (buyer_email);

CREATE TABLE purchase (
  purchase_id TEXT PRIMARY KEY NOT NULL,
  license_key TEXT NOT NULL REFERENCES license,
  created_at INTEGER NOT NULL,
  refunded_at INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX purchase_license ON purchase (license_key);

CREATE TABLE coupon (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  account_id TEXT NOT NULL REFERENCES account,
  code TEXT NOT NULL,
  folded_code TEXT NOT NULL,
  scope TEXT NOT NULL CHECK (scope IN ('single', 'multi', 'collection')),
  product_key TEXT REFERENCES product CHECK ((product_key IS NOT NULL) = (scope = 'single')),
  collection_id TEXT REFERENCES collection CHECK ((collection_id IS NOT NULL) = (scope = 'collection')),
  percent_off REAL,
  amount_off INTEGER CHECK ((amount_off IS NULL) <> (percent_off IS NULL)),
  start_at INTEGER,
  end_at INTEGER,
  minimum_purchase_amount INTEGER,
  usage_limit INTEGER,
  notes TEXT,
  UNIQUE (account_id, folded_code)
) STRICT;
CREATE INDEX coupon_account ON coupon (account_id);

-- The upstream's coupons, whose products and collections need not be known here.
CREATE TABLE mirrored_coupon (
  id INTEGER PRIMARY KEY,
  code TEXT NOT NULL,
  folded_code TEXT NOT NULL,
  scope TEXT NOT NULL CHECK (scope IN ('single', 'multi', 'collection')),
  product_key TEXT CHECK ((product_key IS NOT NULL) = (scope = 'single')),
  collection_id TEXT CHECK ((collection_id IS NOT NULL) = (scope = 'collection')),
  percent_off REAL,
  amount_off INTEGER CHECK ((amount_off IS NULL) <> (percent_off IS NULL)),
  start_at INTEGER,
  end_at INTEGER,
  minimum_purchase_amount INTEGER,
  usage_limit INTEGER,
  notes TEXT,
  confirmed_at INTEGER CHECK ((confirmed_at IS NULL) = (id < 0))
) STRICT;
CREATE INDEX mirrored_coupon_code ON mirrored_coupon (folded_code);

-- Every provisional id that was given, without its minus sign, and what it has come to mean.
CREATE TABLE provisional_coupon (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  real_id INTEGER
) STRICT;

CREATE TABLE token (
  token_id TEXT PRIMARY KEY NOT NULL,
  digest TEXT NOT NULL UNIQUE,
  scopes TEXT NOT NULL,
  product_key TEXT,
  account_id TEXT,
  label TEXT,
  created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE observation (
  license_key TEXT PRIMARY KEY NOT NULL,
  product_link TEXT NOT NULL,
  buyer_email TEXT NOT NULL,
  uses INTEGER NOT NULL,
  enabled INTEGER NOT NULL CHECK (enabled IN (0, 1)),
  created_at INTEGER NOT NULL,
  local_uses INTEGER NOT NULL,
  local_enabled INTEGER NOT NULL CHECK (local_enabled IN (0, 1)),
  local_pending INTEGER NOT NULL,
  product_key TEXT NOT NULL,
  confirmed_at INTEGER NOT NULL,
  boot INTEGER NOT NULL,
  many_writers INTEGER NOT NULL CHECK (many_writers IN (0, 1)),
  missing_since INTEGER,
  gone INTEGER NOT NULL CHECK (gone IN (0, 1)),
  lingers_until INTEGER,
  asked_at INTEGER NOT NULL,
  refresh_at INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX observation_lingering ON observation (lingers_until) WHERE lingers_until IS NOT NULL;
CREATE INDEX observation_latest ON observation (product_key, confirmed_at);
CREATE INDEX observation_refresh ON observation (refresh_at) WHERE refresh_at IS NOT NULL AND gone = 0;
CREATE INDEX observation_age ON observation (local_enabled, confirmed_at) WHERE gone = 0;

CREATE TABLE outbox (
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
    CHECK (doubtful = 0 OR (doubtful = 1 AND state IN ('pending', 'in_flight'))),
  held INTEGER NOT NULL CHECK (held = 0 OR (held = 1 AND state = 'uncertain')),
  base_uses INTEGER CHECK (base_uses IS NULL OR state IN ('in_flight', 'uncertain')),
  sent_at INTEGER CHECK ((sent_at IS NOT NULL) = (state = 'in_flight')),
  attempts INTEGER NOT NULL CHECK (attempts >= 0),
  failures INTEGER NOT NULL CHECK (failures >= 0),
  next_at INTEGER
    CHECK (next_at IS NULL OR (held = 0 AND state IN ('pending', 'in_flight', 'uncertain'))),
  outage INTEGER NOT NULL CHECK (outage IN (0, 1)),
  last_error TEXT,
  revision TEXT,
  payload TEXT,
  created_at INTEGER NOT NULL,
  finished_at INTEGER
    CHECK ((finished_at IS NOT NULL) = (state IN ('delivered', 'inferred', 'cancelled', 'dropped')))
) STRICT;
CREATE INDEX outbox_state ON outbox (state);
CREATE INDEX outbox_held ON outbox (seq) WHERE held = 1;
CREATE INDEX outbox_open ON outbox (seq) WHERE finished_at IS NULL;
CREATE INDEX outbox_lane ON outbox (subject, lane) WHERE state IN ('pending', 'in_flight', 'uncertain');
CREATE INDEX outbox_standing ON outbox (subject) WHERE kind = 'disable' AND state IN ('conflicted', 'dead');
CREATE INDEX outbox_due ON outbox (product_key, next_at) WHERE next_at IS NOT NULL;
CREATE INDEX outbox_outage ON outbox (next_at) WHERE outage = 1;
CREATE INDEX outbox_finished ON outbox (finished_at) WHERE finished_at IS NOT NULL;

-- How many operations are in each state, without counting them.
CREATE TABLE outbox_depth (
  state TEXT PRIMARY KEY NOT NULL,
  count INTEGER NOT NULL CHECK (count >= 0)
) STRICT, WITHOUT ROWID;
INSERT INTO outbox_depth (state, count) VALUES
  ('pending', 0), ('in_flight', 0), ('uncertain', 0), ('delivered', 0), ('inferred', 0),
  ('conflicted', 0), ('dead', 0), ('cancelled', 0), ('dropped', 0);
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

CREATE TABLE idempotency (
  credential TEXT NOT NULL,
  key TEXT NOT NULL,
  fingerprint TEXT NOT NULL,
  value TEXT NOT NULL,
  at INTEGER NOT NULL,
  PRIMARY KEY (credential, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX idempotency_at ON idempotency (at);

CREATE TABLE setting (
  name TEXT PRIMARY KEY NOT NULL,
  value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE audit (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  at INTEGER NOT NULL,
  actor TEXT NOT NULL,
  act TEXT NOT NULL,
  subject TEXT NOT NULL,
  detail TEXT NOT NULL
) STRICT;
CREATE TRIGGER audit_unchanged BEFORE UPDATE ON audit BEGIN
  SELECT RAISE(ABORT, 'the audit is append-only');
END;
CREATE TRIGGER audit_unremoved BEFORE DELETE ON audit BEGIN
  SELECT RAISE(ABORT, 'the audit is append-only');
END;
`;
