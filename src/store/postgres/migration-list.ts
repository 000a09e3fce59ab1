/**
 * SQL that leads to a schema from the one before, the first from an empty schema. `minimum`: the oldest schema whose program
 * can still use the tables. The instances of an authority are not all replaced at once, so a migration only adds what the
 * new program needs. A later migration removes what no instance uses any more.
 */
export type Migration = { sql: string; minimum: number };

/** The migrations after the first schema. A released migration is never changed; a later change of the tables is another. */
export const migrations: readonly Migration[] = [
  // 2: leases.
  {
    minimum: 1,
    sql: `ALTER TABLE latchkey.product
      ADD COLUMN seats bigint,
      ADD COLUMN lease_hold_ms bigint NOT NULL DEFAULT 7776000000,
      ADD COLUMN lease_term_ms bigint NOT NULL DEFAULT 2592000000,
      ADD COLUMN lease_refresh_ms bigint NOT NULL DEFAULT 86400000,
      ADD COLUMN lease_email boolean NOT NULL DEFAULT false;

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

    -- Requests for leases wait at any node for a change of their license or activation. The channel is that of names.ts.
    CREATE FUNCTION latchkey.announce_license() RETURNS trigger LANGUAGE plpgsql AS $body$
    BEGIN
      PERFORM pg_notify(
        'latchkey_' || left(encode(sha256(convert_to(TG_TABLE_SCHEMA, 'UTF8')), 'hex'), 24), NEW.license_key
      );
      RETURN NULL;
    END $body$;
    CREATE TRIGGER license_enabled AFTER UPDATE OF enabled ON latchkey.license
      FOR EACH ROW WHEN (OLD.enabled <> NEW.enabled) EXECUTE FUNCTION latchkey.announce_license();
    CREATE TRIGGER activation_state AFTER UPDATE OF state ON latchkey.activation
      FOR EACH ROW WHEN (OLD.state <> NEW.state) EXECUTE FUNCTION latchkey.announce_license();`,
  },
  // 3: the console.
  {
    minimum: 1,
    sql: `-- What happened in each minute of a day, and in each ten minutes of a month, at all nodes together.
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
    );`,
  },
  // 4: webhooks.
  {
    minimum: 1,
    sql: `CREATE TABLE latchkey.webhook_endpoint (
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
    CREATE INDEX activation_expiry ON latchkey.activation (expires_at) WHERE state = 'active';`,
  },
  // 5: /sync/v1.
  {
    minimum: 1,
    sql: `-- Grows by 1 with each change of the count or of the state, and with each refund.
    ALTER TABLE latchkey.license ADD COLUMN revision bigint NOT NULL DEFAULT 0;
    -- The revision at which the license was last disabled or refunded.
    ALTER TABLE latchkey.license ADD COLUMN disabled_revision bigint NOT NULL DEFAULT 0;
    ALTER TABLE latchkey.redemption ADD COLUMN over_limit boolean NOT NULL DEFAULT false;

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
    END $body$;`,
  },
];
