/* The third schema. */
export const schema3: string = /* sql */ `
-- A token for everything was of the default account in name only: it reaches every account.
UPDATE token SET account_id = NULL
  WHERE account_id = 'default' AND ' ' || scopes || ' ' LIKE '% admin %';

-- Products that are not sold any more; purchases by their date, and by the buyer whatever the letter case.
ALTER TABLE product ADD COLUMN archived_at INTEGER;
CREATE INDEX purchase_date ON purchase (created_at, purchase_id);
DROP INDEX license_buyer;
CREATE INDEX license_buyer ON license (lower(buyer_email));

-- Orders that have used a coupon, as they were answered; a coupon of an agent's is in its mirror.
CREATE TABLE redemption (
  id INTEGER PRIMARY KEY,
  account_id TEXT NOT NULL,
  order_id TEXT NOT NULL,
  coupon_id INTEGER NOT NULL,
  cart TEXT NOT NULL,
  quote TEXT NOT NULL,
  redeemed_at INTEGER NOT NULL,
  UNIQUE (account_id, order_id)
) STRICT;
CREATE INDEX redemption_coupon ON redemption (account_id, coupon_id);

-- How often a coupon is redeemed, without counting: usage_limit is compared at each redemption.
CREATE TABLE redemption_count (
  account_id TEXT NOT NULL,
  coupon_id INTEGER NOT NULL,
  count INTEGER NOT NULL CHECK (count >= 0),
  PRIMARY KEY (account_id, coupon_id)
) STRICT, WITHOUT ROWID;
CREATE TRIGGER redemption_added AFTER INSERT ON redemption BEGIN
  INSERT INTO redemption_count (account_id, coupon_id, count) VALUES (new.account_id, new.coupon_id, 1)
    ON CONFLICT (account_id, coupon_id) DO UPDATE SET count = count + 1;
END;
CREATE TRIGGER redemption_removed AFTER DELETE ON redemption BEGIN
  UPDATE redemption_count SET count = count - 1
    WHERE account_id = old.account_id AND coupon_id = old.coupon_id;
END;
CREATE TRIGGER redemption_renumbered AFTER UPDATE OF coupon_id ON redemption BEGIN
  UPDATE redemption_count SET count = count - 1
    WHERE account_id = old.account_id AND coupon_id = old.coupon_id;
  INSERT INTO redemption_count (account_id, coupon_id, count) VALUES (new.account_id, new.coupon_id, 1)
    ON CONFLICT (account_id, coupon_id) DO UPDATE SET count = count + 1;
END;

-- The record of acts, found by who, what and on what, newest first.
CREATE INDEX audit_at ON audit (at);
CREATE INDEX audit_actor ON audit (actor, at);
CREATE INDEX audit_act ON audit (act, at);
CREATE INDEX audit_subject ON audit (subject, at);

-- What happened to each license key; number counts its changes.
CREATE TABLE license_history (
  license_key TEXT NOT NULL,
  number INTEGER NOT NULL,
  at INTEGER NOT NULL,
  change TEXT NOT NULL CHECK (change IN ('usage', 'decrease', 'enable', 'disable', 'refund')),
  credential TEXT NOT NULL,
  uses_before INTEGER NOT NULL,
  enabled_before INTEGER NOT NULL CHECK (enabled_before IN (0, 1)),
  uses_after INTEGER NOT NULL,
  enabled_after INTEGER NOT NULL CHECK (enabled_after IN (0, 1)),
  PRIMARY KEY (license_key, number)
) STRICT, WITHOUT ROWID;
CREATE INDEX license_history_at ON license_history (at);

-- What the upstream tells of a license beyond the specification.
ALTER TABLE observation ADD COLUMN extra TEXT;

-- When a token was last used, to the hour, and from when on it is refused.
ALTER TABLE token ADD COLUMN last_used_at INTEGER;
ALTER TABLE token ADD COLUMN expires_at INTEGER;
-- Also in the stored answer of its revocation, which is repeated. Others may be nested too deeply for SQLite.
UPDATE idempotency SET value = json_insert(value, '$.value.lastUsedAt', NULL, '$.value.expiresAt', NULL)
  WHERE value LIKE '{"ok":true,"value":{"tokenId":%';

-- API keys and secrets that were rolled and go on for a while: one of an account or product at most.
CREATE TABLE old_credential (
  kind TEXT NOT NULL CHECK (kind IN ('api_key', 'product_secret')),
  id TEXT NOT NULL,
  digest TEXT NOT NULL,
  until INTEGER NOT NULL,
  PRIMARY KEY (kind, id),
  UNIQUE (kind, digest)
) STRICT, WITHOUT ROWID;
CREATE INDEX old_credential_until ON old_credential (until);

-- License keys that an agent's operator wants fetched; is_found: 0 when the upstream does not know it.
CREATE TABLE preload (
  id INTEGER PRIMARY KEY,
  license_key TEXT NOT NULL UNIQUE,
  product_key TEXT,
  is_found INTEGER CHECK (is_found IN (0, 1)),
  postponed INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX preload_left ON preload (is_found, postponed, id);
`;
