-- The tables of an authority on PostgreSQL. What changes after a release is a migration (migrations.ts).
--
-- The schema `latchkey` stands for the configured one. Times are epoch ms, amounts cents, digests SHA-256 as lower-case
-- hexadecimal.
--
-- Text is compared as bytes (COLLATE "C"). The program folds letter case itself, except in e-mail addresses: lower()
-- folds the letters of ASCII, as SQLite does.

CREATE TABLE latchkey.account (
  account_id text COLLATE "C" PRIMARY KEY,
  name text COLLATE "C" NOT NULL,
  key_digest text COLLATE "C" NOT NULL UNIQUE,
  created_at bigint NOT NULL
);

CREATE TABLE latchkey.product (
  product_key text COLLATE "C" PRIMARY KEY,
  account_id text COLLATE "C" NOT NULL REFERENCES latchkey.account,
  name text COLLATE "C" NOT NULL,
  recurring boolean NOT NULL,
  secret_digest text COLLATE "C" NOT NULL UNIQUE,
  created_at bigint NOT NULL,
  archived_at bigint,
  -- The terms of leases.
  seats bigint,
  lease_hold_ms bigint NOT NULL DEFAULT 7776000000,
  lease_term_ms bigint NOT NULL DEFAULT 2592000000,
  lease_refresh_ms bigint NOT NULL DEFAULT 86400000,
  lease_email boolean NOT NULL DEFAULT false,
  -- The terms of new licenses: how long they are valid, such as 1y, and what they unlock, as a JSON array.
  license_for text COLLATE "C",
  entitlements text COLLATE "C",
  -- How long licenses are answered as valid after their end.
  expiry_grace_ms bigint NOT NULL DEFAULT 0,
  -- While licenses get another grace: the last license key that has it.
  graced_to text COLLATE "C"
);
CREATE INDEX product_graced ON latchkey.product (product_key) WHERE graced_to IS NOT NULL;

CREATE TABLE latchkey.collection (
  collection_id text COLLATE "C" PRIMARY KEY,
  account_id text COLLATE "C" NOT NULL REFERENCES latchkey.account,
  name text COLLATE "C" NOT NULL
);

CREATE TABLE latchkey.collection_member (
  collection_id text COLLATE "C" NOT NULL REFERENCES latchkey.collection,
  position integer NOT NULL,
  product_key text COLLATE "C" NOT NULL REFERENCES latchkey.product,
  PRIMARY KEY (collection_id, position),
  UNIQUE (collection_id, product_key)
);

-- Uses change often. The fill factor leaves room for the new version of a row on the same page, so that no index is
-- written.
CREATE TABLE latchkey.license (
  license_key text COLLATE "C" PRIMARY KEY,
  product_key text COLLATE "C" NOT NULL REFERENCES latchkey.product,
  buyer_email text COLLATE "C" NOT NULL,
  uses bigint NOT NULL,
  enabled boolean NOT NULL,
  created_at bigint NOT NULL,
  -- Until when it is valid, and until when it is answered as valid; how often it may be used; the other terms as JSON.
  expires_at bigint,
  grace_until bigint,
  uses_limit bigint,
  terms text COLLATE "C",
  -- The number of the last entry of its history.
  changes bigint NOT NULL DEFAULT 0,
  -- The license key that took the place of this one. A key that was replaced stays disabled.
  replaced_by text COLLATE "C",
  -- Grows by 1 with each change of the license, and with each refund.
  revision bigint NOT NULL DEFAULT 0,
  -- The revision at which the license was last disabled or refunded.
  disabled_revision bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 80);
CREATE INDEX license_product ON latchkey.license (product_key);
CREATE INDEX license_buyer ON latchkey.license (lower(buyer_email));
CREATE INDEX license_end ON latchkey.license (expires_at) WHERE expires_at IS NOT NULL;
CREATE INDEX license_grace_end ON latchkey.license (coalesce(grace_until, expires_at)) WHERE expires_at IS NOT NULL;

CREATE TABLE latchkey.purchase (
  purchase_id text COLLATE "C" PRIMARY KEY,
  license_key text COLLATE "C" NOT NULL REFERENCES latchkey.license,
  created_at bigint NOT NULL,
  refunded_at bigint
);
CREATE INDEX purchase_license ON latchkey.purchase (license_key);
CREATE INDEX purchase_date ON latchkey.purchase (created_at, purchase_id);
CREATE INDEX purchase_refund ON latchkey.purchase (refunded_at) WHERE refunded_at IS NOT NULL;

CREATE TABLE latchkey.coupon (
  id bigint PRIMARY KEY,
  account_id text COLLATE "C" NOT NULL REFERENCES latchkey.account,
  code text COLLATE "C" NOT NULL,
  folded_code text COLLATE "C" NOT NULL,
  scope text COLLATE "C" NOT NULL CHECK (scope IN ('single', 'multi', 'collection')),
  product_key text COLLATE "C" REFERENCES latchkey.product
    CHECK ((product_key IS NOT NULL) = (scope = 'single')),
  collection_id text COLLATE "C" REFERENCES latchkey.collection
    CHECK ((collection_id IS NOT NULL) = (scope = 'collection')),
  percent_off double precision,
  amount_off bigint CHECK ((amount_off IS NULL) <> (percent_off IS NULL)),
  start_at bigint,
  end_at bigint,
  minimum_purchase_amount bigint,
  usage_limit bigint,
  notes text COLLATE "C",
  UNIQUE (account_id, folded_code)
);

-- The highest id that a coupon has had: one row. A transaction that creates a coupon locks it, so that no id is used
-- twice.
CREATE TABLE latchkey.coupon_number (last bigint NOT NULL);
INSERT INTO latchkey.coupon_number (last) VALUES (0);

CREATE TABLE latchkey.token (
  token_id text COLLATE "C" PRIMARY KEY,
  digest text COLLATE "C" NOT NULL UNIQUE,
  scopes text COLLATE "C" NOT NULL,
  product_key text COLLATE "C",
  account_id text COLLATE "C",
  label text COLLATE "C",
  created_at bigint NOT NULL,
  last_used_at bigint,
  expires_at bigint
);

-- Rotated API keys and product secrets that still work until an instant: at most one of each account or product.
CREATE TABLE latchkey.old_credential (
  kind text COLLATE "C" NOT NULL CHECK (kind IN ('api_key', 'product_secret', 'token')),
  id text COLLATE "C" NOT NULL,
  digest text COLLATE "C" NOT NULL,
  until bigint NOT NULL,
  PRIMARY KEY (kind, id),
  UNIQUE (kind, digest)
);
CREATE INDEX old_credential_until ON latchkey.old_credential (until);

-- Orders that redeemed a coupon, with the response that they got.
CREATE TABLE latchkey.redemption (
  id bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
  account_id text COLLATE "C" NOT NULL,
  order_id text COLLATE "C" NOT NULL,
  coupon_id bigint NOT NULL,
  cart text COLLATE "C" NOT NULL,
  quote text COLLATE "C" NOT NULL,
  redeemed_at bigint NOT NULL,
  over_limit boolean NOT NULL DEFAULT false,
  UNIQUE (account_id, order_id)
);
CREATE INDEX redemption_coupon ON latchkey.redemption (account_id, coupon_id, id);

-- Redemptions of each coupon. Every redemption compares this number with `usage_limit`.
CREATE TABLE latchkey.redemption_count (
  account_id text COLLATE "C" NOT NULL,
  coupon_id bigint NOT NULL,
  count bigint NOT NULL CHECK (count >= 0),
  PRIMARY KEY (account_id, coupon_id)
);

-- The changes of each license. `number` counts the changes of the key.
CREATE TABLE latchkey.license_history (
  license_key text COLLATE "C" NOT NULL,
  number bigint NOT NULL,
  at bigint NOT NULL,
  change text COLLATE "C" NOT NULL 
    CHECK (change IN ('usage', 'decrease', 'enable', 'disable', 'refund', 'renew', 'update', 'rekey', 'transfer',
      'set_uses')),
  credential text COLLATE "C" NOT NULL,
  uses_before bigint NOT NULL,
  enabled_before boolean NOT NULL,
  uses_after bigint NOT NULL,
  enabled_after boolean NOT NULL,
  -- The end of the license, if the change is about its terms.
  expires_before bigint,
  expires_after bigint,
  PRIMARY KEY (license_key, number)
);
CREATE INDEX license_history_at ON latchkey.license_history (at);

-- Changes licenses one after the other, in the order of `requests`, and keeps the last `history_limit` changes of each.
-- A count grows by `stepAtZero` if it is 0, and otherwise by `step`, but not beyond the limit. `skip_locked` leaves out a license that another
-- transaction has locked.
--
-- It is a function so that many changes, even of one license, are one statement and one commit: PostgreSQL plans the
-- statements of a function once.
CREATE FUNCTION latchkey.change_licenses(requests json, skip_locked boolean, history_limit bigint)
RETURNS TABLE (
  ordinal integer,
  license_key text,
  product_key text,
  buyer_email text,
  uses bigint,
  enabled boolean,
  created_at bigint,
  expires_at bigint,
  grace_until bigint,
  uses_limit bigint,
  terms text,
  revision bigint,
  uses_before bigint,
  enabled_before boolean
)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  request record;
  before latchkey.license;
  after latchkey.license;
BEGIN
  FOR request IN
    SELECT * FROM json_to_recordset(requests) AS listed (
      ordinal integer,
      key text,
      account text,
      product text,
      "stepAtZero" bigint,
      step bigint,
      "ifEnabled" boolean,
      "ifDisabled" boolean,
      at bigint,
      change text,
      credential text
    )
  LOOP
    IF skip_locked THEN
      SELECT * INTO before FROM latchkey.license WHERE license_key = request.key FOR NO KEY UPDATE SKIP LOCKED;
    ELSE
      SELECT * INTO before FROM latchkey.license WHERE license_key = request.key FOR NO KEY UPDATE;
    END IF;
    CONTINUE WHEN before.license_key IS NULL
      OR before.product_key <> request.product
      OR (request.product IS NULL AND NOT EXISTS (
        SELECT FROM latchkey.product WHERE product_key = before.product_key AND account_id = request.account
      ));
    after := before;
    after.uses := before.uses + CASE WHEN before.uses <= 0 THEN request."stepAtZero" ELSE request.step END;
    IF after.uses > before.uses AND after.uses > before.uses_limit THEN
      after.uses := before.uses;
    END IF;
    after.enabled := before.replaced_by IS NULL
      AND CASE WHEN before.enabled THEN request."ifEnabled" ELSE request."ifDisabled" END;
    after.changes := before.changes + 1;
    UPDATE latchkey.license SET uses = after.uses, enabled = after.enabled, changes = after.changes
      WHERE license_key = before.license_key;
    IF request.at IS NOT NULL AND (after.uses <> before.uses OR after.enabled <> before.enabled) THEN
      INSERT INTO latchkey.license_history (license_key, number, at, change, credential, uses_before, enabled_before,
        uses_after, enabled_after)
      VALUES (before.license_key, after.changes, request.at, request.change, request.credential, before.uses,
        before.enabled, after.uses, after.enabled);
    END IF;
    IF after.changes > history_limit THEN
      DELETE FROM latchkey.license_history
        WHERE license_key = before.license_key AND number = after.changes - history_limit;
    END IF;
    ordinal := request.ordinal;
    license_key := after.license_key;
    product_key := after.product_key;
    buyer_email := after.buyer_email;
    uses := after.uses;
    enabled := after.enabled;
    created_at := after.created_at;
    expires_at := after.expires_at;
    grace_until := after.grace_until;
    uses_limit := after.uses_limit;
    terms := after.terms;
    -- The trigger has the same condition.
    revision := before.revision
      + CASE WHEN after.uses <> before.uses OR after.enabled <> before.enabled THEN 1 ELSE 0 END;
    uses_before := before.uses;
    enabled_before := before.enabled;
    RETURN NEXT;
  END LOOP;
END$$;

-- Stored responses of writes under an Idempotency-Key.
CREATE TABLE latchkey.idempotency (
  credential text COLLATE "C" NOT NULL,
  key text COLLATE "C" NOT NULL,
  fingerprint text COLLATE "C" NOT NULL,
  -- Null while the request is under way.
  value text COLLATE "C",
  kept_until bigint NOT NULL,
  -- The request changed nothing. The number of these responses is limited, because nothing else limits them.
  unchanged boolean NOT NULL DEFAULT false,
  PRIMARY KEY (credential, key)
);
CREATE INDEX idempotency_kept_until ON latchkey.idempotency (kept_until);
CREATE INDEX idempotency_unchanged ON latchkey.idempotency (credential) WHERE unchanged;

CREATE TABLE latchkey.setting (
  name text COLLATE "C" PRIMARY KEY,
  value text COLLATE "C" NOT NULL
);

CREATE TABLE latchkey.audit_event (
  id bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
  at bigint NOT NULL,
  actor text COLLATE "C" NOT NULL,
  action text COLLATE "C" NOT NULL,
  subject text COLLATE "C" NOT NULL,
  detail text COLLATE "C" NOT NULL
);
CREATE INDEX audit_event_at ON latchkey.audit_event (at);
CREATE INDEX audit_event_actor ON latchkey.audit_event (actor, at);
CREATE INDEX audit_event_action ON latchkey.audit_event (action, at);
CREATE INDEX audit_event_subject ON latchkey.audit_event (subject, at);
CREATE FUNCTION latchkey.refuse_audit_change() RETURNS trigger LANGUAGE plpgsql AS
  $$BEGIN RAISE EXCEPTION 'the audit is append-only'; END$$;
CREATE TRIGGER audit_event_change BEFORE UPDATE OR DELETE OR TRUNCATE ON latchkey.audit_event
  FOR EACH STATEMENT EXECUTE FUNCTION latchkey.refuse_audit_change();

-- Devices that have asked for seats of a license.
CREATE TABLE latchkey.activation (
  activation_id text COLLATE "C" PRIMARY KEY,
  license_key text COLLATE "C" NOT NULL,
  product_key text COLLATE "C" NOT NULL,
  -- The thumbprint (RFC 7638) of the key of the device.
  device text COLLATE "C" NOT NULL,
  device_name text COLLATE "C",
  state text COLLATE "C" NOT NULL CHECK (state IN ('active', 'ended', 'replaced', 'blocked')),
  -- The last request that was carried out, and its answer as JSON.
  seq bigint NOT NULL,
  digest text COLLATE "C" NOT NULL,
  answer text COLLATE "C" NOT NULL,
  rev bigint NOT NULL,
  expires_at bigint NOT NULL,
  seat_until bigint NOT NULL,
  uses_recorded bigint NOT NULL,
  uses_returned bigint NOT NULL,
  created_at bigint NOT NULL,
  renewed_at bigint NOT NULL,
  -- Instants, as JSON arrays.
  moved_at text COLLATE "C" NOT NULL,
  challenged_at text COLLATE "C" NOT NULL,
  copied_at bigint,
  UNIQUE (license_key, device)
);
CREATE INDEX activation_product ON latchkey.activation (product_key);
-- The seats of a license are counted at each renewal.
CREATE INDEX activation_seat ON latchkey.activation (license_key, seat_until) INCLUDE (activation_id);
CREATE INDEX activation_expiry ON latchkey.activation (expires_at) WHERE state = 'active';
CREATE INDEX activation_date ON latchkey.activation (created_at);

-- Requests for leases wait at any node for a change of their license or activation. The channel is that of names.ts.
CREATE FUNCTION latchkey.announce_license() RETURNS trigger LANGUAGE plpgsql AS $body$
BEGIN
  PERFORM pg_notify(
    'latchkey_' || left(encode(sha256(convert_to(TG_TABLE_SCHEMA, 'UTF8')), 'hex'), 24), NEW.license_key
  );
  RETURN NULL;
END $body$;
CREATE TRIGGER license_terms AFTER UPDATE OF enabled, expires_at, grace_until, uses_limit, terms ON latchkey.license
  FOR EACH ROW WHEN (
    (OLD.enabled, OLD.expires_at, OLD.grace_until, OLD.uses_limit, OLD.terms)
      IS DISTINCT FROM (NEW.enabled, NEW.expires_at, NEW.grace_until, NEW.uses_limit, NEW.terms)
  ) EXECUTE FUNCTION latchkey.announce_license();
CREATE TRIGGER activation_state AFTER UPDATE OF state ON latchkey.activation
  FOR EACH ROW WHEN (OLD.state <> NEW.state) EXECUTE FUNCTION latchkey.announce_license();

-- What happened in each minute of a day, and in each ten minutes of a month, at all nodes together.
CREATE TABLE latchkey.series (
  step_s integer NOT NULL CHECK (step_s IN (60, 600)),
  -- When the step begins.
  at bigint NOT NULL,
  verifies bigint NOT NULL,
  uses bigint NOT NULL,
  -- Null: an authority has no outbox.
  pending bigint,
  oldest_age_s bigint,
  upstream text COLLATE "C",
  PRIMARY KEY (step_s, at)
);

CREATE TABLE latchkey.webhook_endpoint (
  endpoint_id text COLLATE "C" PRIMARY KEY,
  url text COLLATE "C" NOT NULL,
  -- The types of events, as a JSON array; null: all.
  types text COLLATE "C",
  -- Readable, because each message is signed with it.
  secret text COLLATE "C" NOT NULL,
  old_secret text COLLATE "C",
  old_secret_until bigint CHECK ((old_secret_until IS NULL) = (old_secret IS NULL)),
  state text COLLATE "C" NOT NULL CHECK (state IN ('active', 'paused')),
  -- The number of the last event that was delivered or that the endpoint does not get.
  position bigint NOT NULL,
  failures bigint NOT NULL CHECK (failures >= 0),
  failing_since bigint,
  next_at bigint,
  -- The delivery of a node that has the endpoint, and until when.
  claim text COLLATE "C",
  claimed_until bigint CHECK ((claimed_until IS NULL) = (claim IS NULL)),
  last_success_at bigint,
  last_error text COLLATE "C",
  created_at bigint NOT NULL
);

-- Events for endpoints. The number is at least the time in epoch ms.
CREATE TABLE latchkey.webhook_event (
  number bigint PRIMARY KEY,
  event_id text COLLATE "C" NOT NULL UNIQUE,
  type text COLLATE "C" NOT NULL,
  -- A license key, or the id of an activation.
  subject text COLLATE "C",
  at bigint NOT NULL
);

-- The last result of each event at each endpoint.
CREATE TABLE latchkey.webhook_delivery (
  endpoint_id text COLLATE "C" NOT NULL,
  number bigint NOT NULL,
  event_id text COLLATE "C" NOT NULL,
  type text COLLATE "C" NOT NULL,
  delivered boolean NOT NULL,
  attempts bigint NOT NULL,
  status bigint,
  error text COLLATE "C",
  duration_ms bigint NOT NULL,
  at bigint NOT NULL,
  PRIMARY KEY (endpoint_id, number)
);
CREATE INDEX webhook_delivery_number ON latchkey.webhook_delivery (number);

-- Agents that follow license keys: a row for each reach (account/product) of their credentials.
CREATE TABLE latchkey.sync_agent (
  number bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
  agent_id text COLLATE "C" NOT NULL,
  reach text COLLATE "C" NOT NULL,
  account_id text COLLATE "C" NOT NULL,
  product_key text COLLATE "C",
  followed bigint NOT NULL CHECK (followed >= 0),
  created_at bigint NOT NULL,
  seen_at bigint NOT NULL,
  UNIQUE (agent_id, reach)
);
CREATE INDEX sync_agent_account ON latchkey.sync_agent (account_id);
CREATE INDEX sync_agent_seen ON latchkey.sync_agent (seen_at) WHERE followed > 0;
CREATE INDEX sync_agent_idle ON latchkey.sync_agent (seen_at);

CREATE TABLE latchkey.sync_follow (
  agent bigint NOT NULL,
  license_key text COLLATE "C" NOT NULL,
  PRIMARY KEY (agent, license_key)
);
CREATE INDEX sync_follow_license ON latchkey.sync_follow (license_key);

-- The transaction of the last change of each license that an agent follows or has followed.
CREATE TABLE latchkey.license_change (
  license_key text COLLATE "C" PRIMARY KEY,
  xid xid8 NOT NULL
);
CREATE INDEX license_change_xid ON latchkey.license_change (xid, license_key);

-- A transaction that begins to follow a license locks its row, so this function sees each follow that was committed.
CREATE FUNCTION latchkey.note_license_change() RETURNS trigger LANGUAGE plpgsql AS $body$
BEGIN
  IF TG_OP = 'UPDATE' THEN
    NEW.revision := OLD.revision + 1;
    IF OLD.enabled AND NOT NEW.enabled THEN
      NEW.disabled_revision := NEW.revision;
    END IF;
  END IF;
  IF EXISTS (SELECT FROM latchkey.sync_follow WHERE license_key = NEW.license_key) THEN
    INSERT INTO latchkey.license_change (license_key, xid) VALUES (NEW.license_key, pg_current_xact_id())
      ON CONFLICT (license_key) DO UPDATE SET xid = excluded.xid;
  END IF;
  RETURN NEW;
END $body$;
-- A refund of a disabled license changes only its revision.
CREATE TRIGGER license_revision BEFORE UPDATE OF uses, enabled, revision ON latchkey.license
  FOR EACH ROW WHEN (OLD.uses <> NEW.uses OR OLD.enabled <> NEW.enabled OR OLD.revision <> NEW.revision)
  EXECUTE FUNCTION latchkey.note_license_change();
CREATE TRIGGER license_added AFTER INSERT ON latchkey.license
  FOR EACH ROW EXECUTE FUNCTION latchkey.note_license_change();

-- Names the history of this server: a copy of it, a restored backup and a standby that took over have another.
CREATE FUNCTION latchkey.server_history() RETURNS text LANGUAGE plpgsql AS $body$
DECLARE
  history text := '';
BEGIN
  IF has_function_privilege('pg_control_system()', 'EXECUTE')
    AND has_function_privilege('pg_control_checkpoint()', 'EXECUTE') THEN
    SELECT system.system_identifier || ' ' || checkpoint.timeline_id INTO history
      FROM pg_control_system() AS system, pg_control_checkpoint() AS checkpoint;
  END IF;
  RETURN history;
END $body$;
