-- The tables of an authority, an agent and a holder on SQLite. What changes after a release is a migration
-- (migrations.ts).
--
-- Times are epoch ms, truth values 0 or 1, amounts cents, digests SHA-256 as lower-case hexadecimal.
--
-- In tables with many writes, CHECKs, triggers and partial indexes use OR instead of IN. For each IN with more than two
-- values, SQLite builds a temporary table whenever a row is written.

-- ---------------------------------------------------------------------------------------------------------------------
-- Authority: what is sold
-- ---------------------------------------------------------------------------------------------------------------------

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
  created_at INTEGER NOT NULL,
  archived_at INTEGER,
  -- The terms of leases.
  seats INTEGER,
  lease_hold_ms INTEGER NOT NULL DEFAULT 7776000000,
  lease_term_ms INTEGER NOT NULL DEFAULT 2592000000,
  lease_refresh_ms INTEGER NOT NULL DEFAULT 86400000,
  lease_email INTEGER NOT NULL DEFAULT 0 CHECK (lease_email IN (0, 1)),
  -- The terms of new licenses: how long they are valid, such as 1y, and what they unlock, as a JSON array.
  license_for TEXT,
  entitlements TEXT,
  -- How long licenses are answered as valid after their end.
  expiry_grace_ms INTEGER NOT NULL DEFAULT 0,
  -- While licenses get another grace: the last license key that has it.
  graced_to TEXT
) STRICT, WITHOUT ROWID;
CREATE INDEX product_graced ON product (product_key) WHERE graced_to IS NOT NULL;

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
  created_at INTEGER NOT NULL,
  -- Until when it is valid, and until when it is answered as valid; how often it may be used; the other terms as JSON.
  expires_at INTEGER,
  grace_until INTEGER,
  uses_limit INTEGER,
  terms TEXT,
  -- The license key that took the place of this one. A key that was replaced stays disabled.
  replaced_by TEXT,
  -- Grows by 1 with each change of the license, and with each refund.
  revision INTEGER NOT NULL DEFAULT 0,
  -- The revision at which the license was last disabled or refunded.
  disabled_revision INTEGER NOT NULL DEFAULT 0
) STRICT, WITHOUT ROWID;
CREATE INDEX license_product ON license (product_key);
CREATE INDEX license_buyer ON license (lower(buyer_email));
-- Few licenses are disabled: a list of them does not read the others.
CREATE INDEX license_disabled ON license (license_key) WHERE enabled = 0;
CREATE INDEX license_end ON license (expires_at) WHERE expires_at IS NOT NULL;
CREATE INDEX license_grace_end ON license (coalesce(grace_until, expires_at)) WHERE expires_at IS NOT NULL;

-- The licenses in the order in which they were added, which a search looks for by three characters at a time.
-- `license_search_end`: the last one that it finds by them. The writer adds the next ones while it has nothing else to do.
CREATE TABLE license_number (
  number INTEGER PRIMARY KEY,
  license_key TEXT NOT NULL
) STRICT;
CREATE TRIGGER license_number_insert AFTER INSERT ON license BEGIN
  INSERT INTO license_number (license_key) VALUES (new.license_key);
END;
CREATE VIRTUAL TABLE license_search USING fts5 (text, tokenize = 'trigram', content = '', columnsize = 0, detail = none);
CREATE TABLE license_search_end (number INTEGER NOT NULL) STRICT;
INSERT INTO license_search_end (number) VALUES (0);

-- Licenses of each product, so that lists and the status need not count them.
CREATE TABLE license_count (
  product_key TEXT PRIMARY KEY NOT NULL,
  licenses INTEGER NOT NULL,
  disabled INTEGER NOT NULL CHECK (disabled BETWEEN 0 AND licenses)
) STRICT, WITHOUT ROWID;
CREATE TRIGGER license_count_insert AFTER INSERT ON license BEGIN
  INSERT INTO license_count (product_key, licenses, disabled)
    VALUES (new.product_key, 1, new.enabled = 0)
    ON CONFLICT (product_key) DO UPDATE SET licenses = licenses + 1, disabled = disabled + excluded.disabled;
END;
CREATE TRIGGER license_count_update AFTER UPDATE OF enabled, product_key ON license
WHEN new.enabled <> old.enabled OR new.product_key <> old.product_key BEGIN
  UPDATE license_count
    SET licenses = licenses - 1, disabled = disabled - (old.enabled = 0)
    WHERE product_key = old.product_key;
  INSERT INTO license_count (product_key, licenses, disabled)
    VALUES (new.product_key, 1, new.enabled = 0)
    ON CONFLICT (product_key) DO UPDATE SET licenses = licenses + 1, disabled = disabled + excluded.disabled;
END;
CREATE TRIGGER license_count_delete AFTER DELETE ON license BEGIN
  UPDATE license_count
    SET licenses = licenses - 1, disabled = disabled - (old.enabled = 0)
    WHERE product_key = old.product_key;
END;

CREATE TABLE purchase (
  purchase_id TEXT PRIMARY KEY NOT NULL,
  license_key TEXT NOT NULL REFERENCES license,
  created_at INTEGER NOT NULL,
  refunded_at INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX purchase_license ON purchase (license_key);
CREATE INDEX purchase_date ON purchase (created_at, purchase_id);
CREATE INDEX purchase_refund ON purchase (refunded_at) WHERE refunded_at IS NOT NULL;

-- Purchases of each product. A purchase is never deleted.
CREATE TABLE purchase_count (
  product_key TEXT PRIMARY KEY NOT NULL,
  purchases INTEGER NOT NULL,
  refunded INTEGER NOT NULL CHECK (refunded BETWEEN 0 AND purchases)
) STRICT, WITHOUT ROWID;
CREATE TRIGGER purchase_count_insert AFTER INSERT ON purchase BEGIN
  INSERT INTO purchase_count (product_key, purchases, refunded)
    SELECT product_key, 1, new.refunded_at IS NOT NULL FROM license WHERE license_key = new.license_key
    ON CONFLICT (product_key) DO UPDATE SET purchases = purchases + 1, refunded = refunded + excluded.refunded;
END;
CREATE TRIGGER purchase_count_update AFTER UPDATE OF refunded_at ON purchase
WHEN (new.refunded_at IS NULL) <> (old.refunded_at IS NULL) BEGIN
  UPDATE purchase_count SET refunded = refunded + (old.refunded_at IS NULL) - (new.refunded_at IS NULL)
    WHERE product_key = (SELECT product_key FROM license WHERE license_key = new.license_key);
END;

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

-- The changes of each license. `number` counts the changes of the key.
CREATE TABLE license_history (
  license_key TEXT NOT NULL,
  number INTEGER NOT NULL,
  at INTEGER NOT NULL,
  change TEXT NOT NULL CHECK (
    change = 'usage' OR change = 'decrease' OR change = 'enable' OR change = 'disable' OR change = 'refund'
    OR change = 'renew' OR change = 'update' OR change = 'rekey' OR change = 'transfer' OR change = 'set_uses'
  ),
  credential TEXT NOT NULL,
  uses_before INTEGER NOT NULL,
  enabled_before INTEGER NOT NULL CHECK (enabled_before IN (0, 1)),
  uses_after INTEGER NOT NULL,
  enabled_after INTEGER NOT NULL CHECK (enabled_after IN (0, 1)),
  -- The end of the license, if the change is about its terms.
  expires_before INTEGER,
  expires_after INTEGER,
  PRIMARY KEY (license_key, number)
) STRICT, WITHOUT ROWID;
CREATE INDEX license_history_at ON license_history (at);

-- ---------------------------------------------------------------------------------------------------------------------
-- Authority and agent
-- ---------------------------------------------------------------------------------------------------------------------

CREATE TABLE setting (
  name TEXT PRIMARY KEY NOT NULL,
  value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE token (
  token_id TEXT PRIMARY KEY NOT NULL,
  digest TEXT NOT NULL UNIQUE,
  scopes TEXT NOT NULL,
  product_key TEXT,
  account_id TEXT,
  label TEXT,
  created_at INTEGER NOT NULL,
  -- Rounded down to the hour.
  last_used_at INTEGER,
  expires_at INTEGER
) STRICT, WITHOUT ROWID;

-- Rotated API keys and product secrets that still work until an instant: at most one of each account or product.
CREATE TABLE old_credential (
  kind TEXT NOT NULL CHECK (kind IN ('api_key', 'product_secret', 'token')),
  id TEXT NOT NULL,
  digest TEXT NOT NULL,
  until INTEGER NOT NULL,
  PRIMARY KEY (kind, id),
  UNIQUE (kind, digest)
) STRICT, WITHOUT ROWID;
CREATE INDEX old_credential_until ON old_credential (until);

-- Stored responses of writes under an Idempotency-Key.
CREATE TABLE idempotency (
  credential TEXT NOT NULL,
  key TEXT NOT NULL,
  fingerprint TEXT NOT NULL,
  value TEXT NOT NULL,
  kept_until INTEGER NOT NULL,
  -- 1: the request changed nothing. The number of these responses is limited, because nothing else limits them.
  unchanged INTEGER NOT NULL DEFAULT 0 CHECK (unchanged IN (0, 1)),
  PRIMARY KEY (credential, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX idempotency_kept_until ON idempotency (kept_until);
CREATE INDEX idempotency_unchanged ON idempotency (credential) WHERE unchanged = 1;

CREATE TABLE audit_event (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  at INTEGER NOT NULL,
  actor TEXT NOT NULL,
  action TEXT NOT NULL,
  subject TEXT NOT NULL,
  detail TEXT NOT NULL
) STRICT;
CREATE INDEX audit_event_at ON audit_event (at);
CREATE INDEX audit_event_actor ON audit_event (actor, at);
CREATE INDEX audit_event_action ON audit_event (action, at);
CREATE INDEX audit_event_subject ON audit_event (subject, at);
CREATE TRIGGER audit_event_update BEFORE UPDATE ON audit_event BEGIN
  SELECT RAISE(ABORT, 'the audit is append-only');
END;
CREATE TRIGGER audit_event_delete BEFORE DELETE ON audit_event BEGIN
  SELECT RAISE(ABORT, 'the audit is append-only');
END;

-- Orders that redeemed a coupon, with the response that they got. On an agent, `coupon_id` is the id of a mirrored
-- coupon.
CREATE TABLE redemption (
  id INTEGER PRIMARY KEY,
  account_id TEXT NOT NULL,
  order_id TEXT NOT NULL,
  coupon_id INTEGER NOT NULL,
  cart TEXT NOT NULL,
  quote TEXT NOT NULL,
  redeemed_at INTEGER NOT NULL,
  over_limit INTEGER NOT NULL DEFAULT 0 CHECK (over_limit IN (0, 1)),
  UNIQUE (account_id, order_id)
) STRICT;
CREATE INDEX redemption_coupon ON redemption (account_id, coupon_id);

-- Redemptions of each coupon. Every redemption compares this number with `usage_limit`.
CREATE TABLE redemption_count (
  account_id TEXT NOT NULL,
  coupon_id INTEGER NOT NULL,
  count INTEGER NOT NULL CHECK (count >= 0),
  PRIMARY KEY (account_id, coupon_id)
) STRICT, WITHOUT ROWID;
CREATE TRIGGER redemption_count_insert AFTER INSERT ON redemption BEGIN
  INSERT INTO redemption_count (account_id, coupon_id, count) VALUES (new.account_id, new.coupon_id, 1)
    ON CONFLICT (account_id, coupon_id) DO UPDATE SET count = count + 1;
END;
CREATE TRIGGER redemption_count_delete AFTER DELETE ON redemption BEGIN
  UPDATE redemption_count SET count = count - 1
    WHERE account_id = old.account_id AND coupon_id = old.coupon_id;
END;
CREATE TRIGGER redemption_count_update AFTER UPDATE OF coupon_id ON redemption BEGIN
  UPDATE redemption_count SET count = count - 1
    WHERE account_id = old.account_id AND coupon_id = old.coupon_id;
  INSERT INTO redemption_count (account_id, coupon_id, count) VALUES (new.account_id, new.coupon_id, 1)
    ON CONFLICT (account_id, coupon_id) DO UPDATE SET count = count + 1;
END;

-- What happened in each minute of a day, and in each ten minutes of a month.
CREATE TABLE series (
  step_s INTEGER NOT NULL CHECK (step_s = 60 OR step_s = 600),
  -- When the step begins.
  at INTEGER NOT NULL,
  verifies INTEGER NOT NULL,
  uses INTEGER NOT NULL,
  -- Null: there is no outbox.
  pending INTEGER,
  oldest_age_s INTEGER,
  upstream TEXT CHECK (upstream IN ('unknown', 'up', 'paused', 'down')),
  PRIMARY KEY (step_s, at)
) STRICT, WITHOUT ROWID;

CREATE TABLE webhook_endpoint (
  endpoint_id TEXT PRIMARY KEY NOT NULL,
  url TEXT NOT NULL,
  -- The types of events, as a JSON array; null: all.
  types TEXT,
  -- Readable, because each message is signed with it.
  secret TEXT NOT NULL,
  old_secret TEXT,
  old_secret_until INTEGER CHECK ((old_secret_until IS NULL) = (old_secret IS NULL)),
  state TEXT NOT NULL CHECK (state IN ('active', 'paused')),
  -- The number of the last event that was delivered or that the endpoint does not get.
  position INTEGER NOT NULL,
  failures INTEGER NOT NULL CHECK (failures >= 0),
  failing_since INTEGER,
  next_at INTEGER,
  -- The delivery that has the endpoint, and until when.
  claim TEXT,
  claimed_until INTEGER CHECK ((claimed_until IS NULL) = (claim IS NULL)),
  last_success_at INTEGER,
  last_error TEXT,
  created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Events for endpoints. The number is at least the time in epoch ms.
CREATE TABLE webhook_event (
  number INTEGER PRIMARY KEY,
  event_id TEXT NOT NULL UNIQUE,
  type TEXT NOT NULL,
  -- A license key, a list of license keys in JSON, or the id of an activation or of an operation.
  subject TEXT,
  at INTEGER NOT NULL
) STRICT;

-- The last result of each event at each endpoint.
CREATE TABLE webhook_delivery (
  endpoint_id TEXT NOT NULL,
  number INTEGER NOT NULL,
  event_id TEXT NOT NULL,
  type TEXT NOT NULL,
  delivered INTEGER NOT NULL CHECK (delivered IN (0, 1)),
  attempts INTEGER NOT NULL,
  status INTEGER,
  error TEXT,
  duration_ms INTEGER NOT NULL,
  at INTEGER NOT NULL,
  PRIMARY KEY (endpoint_id, number)
) STRICT, WITHOUT ROWID;
CREATE INDEX webhook_delivery_number ON webhook_delivery (number);

-- ---------------------------------------------------------------------------------------------------------------------
-- Leases: of an issuer, and of a holder
-- ---------------------------------------------------------------------------------------------------------------------

-- Devices that have asked for seats of a license, at an issuer.
CREATE TABLE activation (
  activation_id TEXT PRIMARY KEY NOT NULL,
  license_key TEXT NOT NULL,
  product_key TEXT NOT NULL,
  -- The thumbprint (RFC 7638) of the key of the device.
  device TEXT NOT NULL,
  device_name TEXT,
  state TEXT NOT NULL CHECK (state IN ('active', 'ended', 'replaced', 'blocked')),
  -- The last request that was carried out, and its answer as JSON.
  seq INTEGER NOT NULL,
  digest TEXT NOT NULL,
  answer TEXT NOT NULL,
  rev INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,
  seat_until INTEGER NOT NULL,
  uses_recorded INTEGER NOT NULL,
  uses_returned INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  renewed_at INTEGER NOT NULL,
  -- Instants, as JSON arrays.
  moved_at TEXT NOT NULL,
  challenged_at TEXT NOT NULL,
  copied_at INTEGER,
  UNIQUE (license_key, device)
) STRICT, WITHOUT ROWID;
CREATE INDEX activation_product ON activation (product_key);
-- The seats of a license are counted at each renewal.
CREATE INDEX activation_seat ON activation (license_key, seat_until);
CREATE INDEX activation_expiry ON activation (expires_at) WHERE state = 'active';
CREATE INDEX activation_date ON activation (created_at);

-- The leases of a holder, and its requests to the issuer.
CREATE TABLE held_lease (
  license_key TEXT PRIMARY KEY NOT NULL,
  product_key TEXT NOT NULL,
  activation_id TEXT,
  -- The signed document, and the members that responses need, as JSON.
  document TEXT,
  rev INTEGER NOT NULL,
  seq INTEGER NOT NULL,
  -- The signed request that is repeated until it is answered, as JSON.
  request TEXT,
  uses_recorded INTEGER NOT NULL,
  uses_returned INTEGER NOT NULL,
  confirmed_recorded INTEGER NOT NULL,
  confirmed_returned INTEGER NOT NULL,
  wanted TEXT NOT NULL CHECK (wanted IN ('active', 'ended')),
  created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- ---------------------------------------------------------------------------------------------------------------------
-- Agent: what the upstream said
-- ---------------------------------------------------------------------------------------------------------------------

-- A license as the upstream last described it, and as local callers see it (`local_…`).
CREATE TABLE license_snapshot (
  license_key TEXT PRIMARY KEY NOT NULL,
  -- The product as the upstream names it.
  product_link TEXT NOT NULL,
  buyer_email TEXT NOT NULL,
  uses INTEGER NOT NULL,
  enabled INTEGER NOT NULL CHECK (enabled IN (0, 1)),
  created_at INTEGER NOT NULL,
  -- Members of the upstream's response that the specification does not have, as JSON.
  extra TEXT,
  -- As of a license of an authority.
  expires_at INTEGER,
  grace_until INTEGER,
  uses_limit INTEGER,
  terms TEXT,
  local_uses INTEGER NOT NULL,
  local_enabled INTEGER NOT NULL CHECK (local_enabled IN (0, 1)),
  local_pending INTEGER NOT NULL,
  -- The configured product under whose secret the key was found.
  product_key TEXT NOT NULL,
  confirmed_at INTEGER NOT NULL,
  -- The start of this process in which the upstream was last read (setting `run`).
  run INTEGER NOT NULL,
  many_writers INTEGER NOT NULL CHECK (many_writers IN (0, 1)),
  -- The first 404 of the upstream, and whether the key counts as removed.
  missing_since INTEGER,
  gone INTEGER NOT NULL CHECK (gone IN (0, 1)),
  -- 1: the next change is sent only after the key was read again.
  read_first INTEGER NOT NULL DEFAULT 0 CHECK (read_first IN (0, 1)),
  requested_at INTEGER NOT NULL,
  refresh_at INTEGER,
  -- The revision of the license at the upstream, and the number of the history of the upstream that it belongs to.
  revision INTEGER,
  epoch INTEGER NOT NULL DEFAULT 0,
  -- Grows with each change of what callers see; and the number when the key was last turned off.
  shown_revision INTEGER NOT NULL DEFAULT 0,
  shown_disabled_revision INTEGER NOT NULL DEFAULT 0,
  -- 1: the upstream says what changes about the key.
  followed INTEGER NOT NULL DEFAULT 0 CHECK (followed = 0 OR followed = 1)
) STRICT, WITHOUT ROWID;
-- A covering index for the counts by age.
CREATE INDEX license_snapshot_latest ON license_snapshot (product_key, confirmed_at, local_enabled, gone);
CREATE INDEX license_snapshot_refresh ON license_snapshot (refresh_at) WHERE refresh_at IS NOT NULL;
CREATE INDEX license_snapshot_buyer ON license_snapshot (lower(buyer_email));
CREATE INDEX license_snapshot_to_follow ON license_snapshot (product_key)
  WHERE followed = 0 AND refresh_at IS NOT NULL AND gone = 0 AND read_first = 0 AND missing_since IS NULL;
CREATE INDEX license_snapshot_to_unfollow ON license_snapshot (product_key)
  WHERE followed = 1 AND refresh_at IS NULL;
CREATE INDEX license_snapshot_followed ON license_snapshot (product_key) WHERE followed = 1;
CREATE INDEX license_snapshot_missing ON license_snapshot (missing_since)
  WHERE missing_since IS NOT NULL AND gone = 0;

-- Snapshots by the hour in which they were confirmed.
CREATE TABLE license_snapshot_count (
  enabled INTEGER NOT NULL,
  hour INTEGER NOT NULL,
  count INTEGER NOT NULL CHECK (count >= 0),
  PRIMARY KEY (enabled, hour)
) STRICT, WITHOUT ROWID;
CREATE TRIGGER license_snapshot_count_insert AFTER INSERT ON license_snapshot WHEN new.gone = 0 BEGIN
  INSERT INTO license_snapshot_count (enabled, hour, count)
    VALUES (new.local_enabled, new.confirmed_at / 3600000, 1)
    ON CONFLICT (enabled, hour) DO UPDATE SET count = count + 1;
END;
CREATE TRIGGER license_snapshot_count_update AFTER UPDATE OF local_enabled, confirmed_at, gone ON license_snapshot
WHEN new.local_enabled <> old.local_enabled
  OR new.gone <> old.gone
  OR new.confirmed_at / 3600000 <> old.confirmed_at / 3600000 BEGIN
  UPDATE license_snapshot_count SET count = count - 1
    WHERE old.gone = 0 AND enabled = old.local_enabled AND hour = old.confirmed_at / 3600000;
  DELETE FROM license_snapshot_count
    WHERE enabled = old.local_enabled AND hour = old.confirmed_at / 3600000 AND count = 0;
  INSERT INTO license_snapshot_count (enabled, hour, count)
    SELECT new.local_enabled, new.confirmed_at / 3600000, 1 WHERE new.gone = 0
    ON CONFLICT (enabled, hour) DO UPDATE SET count = count + 1;
END;
CREATE TRIGGER license_snapshot_count_delete AFTER DELETE ON license_snapshot WHEN old.gone = 0 BEGIN
  UPDATE license_snapshot_count SET count = count - 1
    WHERE enabled = old.local_enabled AND hour = old.confirmed_at / 3600000;
  DELETE FROM license_snapshot_count
    WHERE enabled = old.local_enabled AND hour = old.confirmed_at / 3600000 AND count = 0;
END;

-- What the upstream last said about the followed keys of each product.
CREATE TABLE follow (
  product_key TEXT PRIMARY KEY NOT NULL,
  epoch TEXT NOT NULL,
  cursor TEXT NOT NULL,
  confirmed_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Other spellings of a license key. `license_key` is the spelling of the upstream.
CREATE TABLE license_alias (
  alias TEXT PRIMARY KEY NOT NULL,
  license_key TEXT NOT NULL,
  added_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX license_alias_age ON license_alias (license_key, added_at);

-- Activations that were sent to the upstream, and whose answer is not known or did not reach its caller.
CREATE TABLE activation_attempt (
  license_key TEXT NOT NULL,
  -- What the caller calls its installation.
  name TEXT NOT NULL,
  attempt_id TEXT NOT NULL,
  sent_at INTEGER NOT NULL,
  -- The activation, if the answer came after the caller had left.
  activation_id TEXT,
  PRIMARY KEY (license_key, name)
) STRICT, WITHOUT ROWID;
CREATE INDEX activation_attempt_sent ON activation_attempt (sent_at);

-- The coupons of the upstream. They refer to no table: their products and collections may be unknown here.
CREATE TABLE mirrored_coupon (
  -- Negative until the upstream has created the coupon.
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

-- Every provisional id that was ever given, without its minus sign, and the id that the upstream gave to its coupon.
CREATE TABLE provisional_coupon (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  real_id INTEGER
) STRICT;

-- License keys that an operator wants to have fetched.
CREATE TABLE preload (
  id INTEGER PRIMARY KEY,
  license_key TEXT NOT NULL UNIQUE,
  product_key TEXT,
  -- Null: not fetched yet. 0: the upstream does not know the key.
  is_found INTEGER CHECK (is_found IN (0, 1)),
  postponed INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX preload_left ON preload (is_found, postponed, id);

-- The progress of the preload: one row. Keys leave the table only all together, when the program resets this row.
CREATE TABLE preload_count (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  done INTEGER NOT NULL,
  failed INTEGER NOT NULL,
  left INTEGER NOT NULL
) STRICT;
INSERT INTO preload_count (id, done, failed, left) VALUES (1, 0, 0, 0);
CREATE TRIGGER preload_count_insert AFTER INSERT ON preload BEGIN
  UPDATE preload_count SET left = left + 1;
END;
CREATE TRIGGER preload_count_update AFTER UPDATE OF is_found ON preload WHEN new.is_found IS NOT old.is_found BEGIN
  UPDATE preload_count SET
    done = done + (new.is_found IS 1) - (old.is_found IS 1),
    failed = failed + (new.is_found IS 0) - (old.is_found IS 0),
    left = left + (new.is_found IS NULL) - (old.is_found IS NULL);
END;

-- ---------------------------------------------------------------------------------------------------------------------
-- Agent: what is to be sent to the upstream
-- ---------------------------------------------------------------------------------------------------------------------

-- Local changes for the upstream, in the order in which they arrived. The CHECKs say which columns each state fills
-- (src/domain/outbox/operation.ts).
CREATE TABLE outbox (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  kind TEXT NOT NULL CHECK (
    kind = 'usage' OR kind = 'decrease' OR kind = 'disable' OR kind = 'enable' OR kind = 'create_coupon'
    OR kind = 'redeem' OR kind = 'void'
  ),
  -- How many uses a `usage` counts.
  amount INTEGER NOT NULL DEFAULT 1 CHECK (amount = 1 OR (amount > 1 AND kind = 'usage')),
  -- A license key, a coupon code, or the order of a redemption.
  subject TEXT NOT NULL,
  -- Operations of one subject and queue are sent one after the other.
  queue TEXT NOT NULL CHECK (
    queue = 'counter' OR queue = 'state' OR queue = 'coupon' OR queue = 'order'
  ),
  -- Null: a coupon or a redemption.
  product_key TEXT,
  state TEXT NOT NULL CHECK (
    state = 'pending' OR state = 'in_flight' OR state = 'uncertain' OR state = 'delivered' OR state = 'inferred'
    OR state = 'conflicted' OR state = 'dead' OR state = 'cancelled' OR state = 'dropped'
  ),
  -- 1: the upstream may have applied it already, and no read can rule that out.
  maybe_applied INTEGER NOT NULL CHECK (
    maybe_applied = 0
    OR (maybe_applied = 1 AND (state = 'pending' OR state = 'in_flight' OR state = 'uncertain'))
  ),
  -- 1: it was sent under its id, and the upstream has not answered: it may have applied it.
  unanswered INTEGER NOT NULL DEFAULT 0 CHECK (
    unanswered = 0 OR (unanswered = 1 AND (state = 'pending' OR state = 'in_flight'))
  ),
  -- 1: reading cannot decide it; a person must.
  held INTEGER NOT NULL CHECK (held = 0 OR (held = 1 AND state = 'uncertain')),
  -- Why it is dead.
  cause TEXT CHECK ((cause IS NOT NULL) = (state = 'dead') AND cause IN ('refused', 'missing')),
  -- The count on which it was sent.
  base_uses INTEGER CHECK (base_uses IS NULL OR state IN ('in_flight', 'uncertain')),
  sent_at INTEGER CHECK ((sent_at IS NOT NULL) = (state = 'in_flight')),
  attempts INTEGER NOT NULL CHECK (attempts >= 0),
  -- Failed attempts in a row: the exponent of the backoff.
  failures INTEGER NOT NULL CHECK (failures >= 0),
  -- When the first operation of a queue takes its next step.
  next_at INTEGER CHECK (
    next_at IS NULL OR (held = 0 AND (state = 'pending' OR state = 'in_flight' OR state = 'uncertain'))
  ),
  -- 1: `next_at` was set because of an outage, and the first success ends the wait.
  outage INTEGER NOT NULL CHECK (outage IN (0, 1)),
  -- An attempt may still be on its way until then: only after it a read shows whether the operation was applied.
  reconcile_at INTEGER,
  -- The upstream to which it was first sent.
  upstream TEXT,
  last_error TEXT,
  -- Of an enable: the state that callers saw when it was requested.
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
  -- What it counts in `outbox_backlog`.
  unfinished INTEGER NOT NULL AS (
    (queue = 'counter' OR queue = 'state') AND (state = 'pending' OR state = 'in_flight' OR state = 'uncertain')
  ),
  usages INTEGER NOT NULL AS (amount * (kind = 'usage' AND unfinished AND held = 0)),
  decreases INTEGER NOT NULL AS (kind = 'decrease' AND unfinished AND held = 0),
  disables INTEGER NOT NULL AS (kind = 'disable' AND (unfinished OR state = 'conflicted' OR state = 'dead'))
) STRICT;
CREATE INDEX outbox_state ON outbox (state);
CREATE INDEX outbox_held ON outbox (seq) WHERE held = 1;
-- SQLite uses a partial index only if the statement repeats its condition word for word.
CREATE INDEX outbox_queue ON outbox (subject, queue)
  WHERE (state = 'pending' OR state = 'in_flight' OR state = 'uncertain');
CREATE INDEX outbox_uncertain ON outbox (subject, queue) WHERE state = 'uncertain' AND held = 0;
CREATE INDEX outbox_dead ON outbox (subject) WHERE state IN ('conflicted', 'dead');
CREATE INDEX outbox_reconcile ON outbox (subject, queue, reconcile_at) WHERE reconcile_at IS NOT NULL;
CREATE INDEX outbox_due ON outbox (product_key, next_at) WHERE next_at IS NOT NULL;
CREATE INDEX outbox_outage ON outbox (next_at) WHERE outage = 1;
CREATE INDEX outbox_finished ON outbox (finished_at) WHERE finished_at IS NOT NULL;
CREATE INDEX outbox_seen ON outbox (seq) WHERE seen_revision IS NOT NULL;

-- Operations in each state.
CREATE TABLE outbox_count (
  state TEXT PRIMARY KEY NOT NULL,
  count INTEGER NOT NULL CHECK (count >= 0)
) STRICT, WITHOUT ROWID;
INSERT INTO outbox_count (state, count) VALUES
  ('pending', 0),
  ('in_flight', 0),
  ('uncertain', 0),
  ('delivered', 0),
  ('inferred', 0),
  ('conflicted', 0),
  ('dead', 0),
  ('cancelled', 0),
  ('dropped', 0);
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

-- The open operations of each license key, added up, so that a change reads one row and not the whole queue.
CREATE TABLE outbox_backlog (
  subject TEXT PRIMARY KEY NOT NULL,
  -- Unfinished and not held; of uses their sum.
  usages INTEGER NOT NULL,
  decreases INTEGER NOT NULL,
  -- Unfinished, conflicted or dead.
  disables INTEGER NOT NULL,
  unfinished INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TRIGGER outbox_backlog_insert AFTER INSERT ON outbox WHEN new.unfinished OR new.disables BEGIN
  INSERT INTO outbox_backlog (subject, usages, decreases, disables, unfinished)
    VALUES (new.subject, new.usages, new.decreases, new.disables, new.unfinished)
    ON CONFLICT (subject) DO UPDATE SET
      usages = usages + excluded.usages,
      decreases = decreases + excluded.decreases,
      disables = disables + excluded.disables,
      unfinished = unfinished + excluded.unfinished;
END;
-- Adds what the operation counts now and subtracts what it counted before.
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
-- An operation moves to another spelling of its license key.
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
END;

-- ---------------------------------------------------------------------------------------------------------------------
-- Authority and agent: agents that follow license keys
-- ---------------------------------------------------------------------------------------------------------------------

-- Agents that follow license keys: a row for each reach (account/product) of their credentials.
CREATE TABLE sync_agent (
  number INTEGER PRIMARY KEY AUTOINCREMENT,
  agent_id TEXT NOT NULL,
  reach TEXT NOT NULL,
  account_id TEXT NOT NULL,
  product_key TEXT,
  followed INTEGER NOT NULL CHECK (followed >= 0),
  created_at INTEGER NOT NULL,
  seen_at INTEGER NOT NULL,
  UNIQUE (agent_id, reach)
) STRICT;
CREATE INDEX sync_agent_account ON sync_agent (account_id);
CREATE INDEX sync_agent_seen ON sync_agent (seen_at) WHERE followed > 0;
CREATE INDEX sync_agent_idle ON sync_agent (seen_at);

CREATE TABLE sync_follow (
  agent INTEGER NOT NULL,
  license_key TEXT NOT NULL,
  PRIMARY KEY (agent, license_key)
) STRICT, WITHOUT ROWID;
CREATE INDEX sync_follow_license ON sync_follow (license_key);

-- The last change of each license that an agent follows or has followed.
CREATE TABLE license_change (
  number INTEGER PRIMARY KEY AUTOINCREMENT,
  license_key TEXT NOT NULL UNIQUE
) STRICT;
-- A trigger cannot say OR REPLACE: the clause of the statement that causes it would hold instead.
CREATE TRIGGER license_changed AFTER UPDATE OF revision ON license
WHEN EXISTS (SELECT 1 FROM sync_follow WHERE license_key = new.license_key) BEGIN
  DELETE FROM license_change WHERE license_key = new.license_key;
  INSERT INTO license_change (license_key) VALUES (new.license_key);
END;
CREATE TRIGGER license_added AFTER INSERT ON license
WHEN EXISTS (SELECT 1 FROM sync_follow WHERE license_key = new.license_key) BEGIN
  DELETE FROM license_change WHERE license_key = new.license_key;
  INSERT INTO license_change (license_key) VALUES (new.license_key);
END;
-- The same on an agent, for the agents below it.
CREATE TRIGGER license_snapshot_changed
AFTER UPDATE OF local_uses, local_enabled, gone, product_key, product_link, buyer_email, created_at, expires_at,
  grace_until, uses_limit, terms ON license_snapshot
WHEN (new.local_uses <> old.local_uses OR new.local_enabled <> old.local_enabled OR new.gone <> old.gone
    OR new.product_key <> old.product_key OR new.product_link <> old.product_link
    OR new.buyer_email <> old.buyer_email OR new.created_at <> old.created_at
    OR new.expires_at IS NOT old.expires_at OR new.grace_until IS NOT old.grace_until
    OR new.uses_limit IS NOT old.uses_limit OR new.terms IS NOT old.terms)
  AND EXISTS (SELECT 1 FROM sync_follow WHERE license_key = new.license_key) BEGIN
  DELETE FROM license_change WHERE license_key = new.license_key;
  INSERT INTO license_change (license_key) VALUES (new.license_key);
END;
CREATE TRIGGER license_snapshot_added AFTER INSERT ON license_snapshot
WHEN EXISTS (SELECT 1 FROM sync_follow WHERE license_key = new.license_key) BEGIN
  DELETE FROM license_change WHERE license_key = new.license_key;
  INSERT INTO license_change (license_key) VALUES (new.license_key);
END;
CREATE TRIGGER license_snapshot_removed AFTER DELETE ON license_snapshot
WHEN EXISTS (SELECT 1 FROM sync_follow WHERE license_key = old.license_key) BEGIN
  DELETE FROM license_change WHERE license_key = old.license_key;
  INSERT INTO license_change (license_key) VALUES (old.license_key);
END;
