/*
 * The sixth schema: the outbox and the history say in their checks and indexes what they said before, with words joined
 * by OR: for each `IN` of more than two words, SQLite fills a table of its own whenever a row is written.
 */
const oneOf = (column: string, words: readonly string[]): string =>
  `(${words.map((word) => `${column} = '${word}'`).join(' OR ')})`;

const states = [
  'pending',
  'in_flight',
  'uncertain',
  'delivered',
  'inferred',
  'conflicted',
  'dead',
  'cancelled',
  'dropped',
] as const;
const isUnfinished = (of = ''): string => oneOf(`${of}state`, ['pending', 'in_flight', 'uncertain']);
const isFinished = oneOf('state', ['delivered', 'inferred', 'cancelled', 'dropped']);
const kinds = ['usage', 'decrease', 'disable', 'enable', 'create_coupon', 'redeem', 'void'];

const outboxColumns = `seq, id, kind, subject, lane, product_key, state, doubtful, held, cause, base_uses, sent_at,
  attempts, failures, next_at, outage, fenced_until, upstream, last_error, seen_enabled, payload, created_at,
  finished_at, request_id, credential`;
const historyColumns = `license_key, number, at, change, credential, uses_before, enabled_before, uses_after,
  enabled_after`;

type Row = 'old' | 'new';
const isOfLicense = (row: Row): string => oneOf(`${row}.lane`, ['counter', 'state']);
/** What an operation adds to the backlog of its subject: usages, decreases, disables, unfinished. */
const weightOf = (row: Row): readonly string[] => [
  ...['usage', 'decrease'].map(
    (kind) => `(${row}.kind = '${kind}' AND ${row}.held = 0 AND ${isUnfinished(`${row}.`)})`,
  ),
  `(${row}.kind = 'disable' AND (${isUnfinished(`${row}.`)} OR ${oneOf(`${row}.state`, ['conflicted', 'dead'])}))`,
  isUnfinished(`${row}.`),
];
const weigh = (subject: string, weight: readonly string[]): string => `
  INSERT INTO outbox_backlog (subject, usages, decreases, disables, unfinished)
    VALUES (${subject}, ${weight.join(', ')})
    ON CONFLICT (subject) DO UPDATE SET usages = usages + excluded.usages,
      decreases = decreases + excluded.decreases, disables = disables + excluded.disables,
      unfinished = unfinished + excluded.unfinished;`;
const forgetEmpty = (subject: string): string =>
  `DELETE FROM outbox_backlog WHERE subject = ${subject} AND unfinished = 0 AND disables = 0;`;
const difference = weightOf('new').map((weight, index) => `${weight} - ${weightOf('old')[index]}`);

export const schema6: string = /* sql */ `
DROP VIEW outbox_weight;
CREATE TABLE outbox_6 (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  kind TEXT NOT NULL CHECK ${oneOf('kind', kinds)},
  subject TEXT NOT NULL,
  lane TEXT NOT NULL CHECK ${oneOf('lane', ['counter', 'state', 'coupon', 'redemption'])},
  product_key TEXT,
  state TEXT NOT NULL CHECK ${oneOf('state', states)},
  doubtful INTEGER NOT NULL CHECK (doubtful = 0 OR (doubtful = 1 AND ${isUnfinished()})),
  held INTEGER NOT NULL CHECK (held = 0 OR (held = 1 AND state = 'uncertain')),
  cause TEXT CHECK ((cause IS NOT NULL) = (state = 'dead') AND cause IN ('refused', 'missing')),
  base_uses INTEGER CHECK (base_uses IS NULL OR state IN ('in_flight', 'uncertain')),
  sent_at INTEGER CHECK ((sent_at IS NOT NULL) = (state = 'in_flight')),
  attempts INTEGER NOT NULL CHECK (attempts >= 0),
  failures INTEGER NOT NULL CHECK (failures >= 0),
  next_at INTEGER CHECK (next_at IS NULL OR (held = 0 AND ${isUnfinished()})),
  outage INTEGER NOT NULL CHECK (outage IN (0, 1)),
  fenced_until INTEGER,
  upstream TEXT,
  last_error TEXT,
  seen_enabled INTEGER CHECK (seen_enabled IN (0, 1)),
  payload TEXT,
  created_at INTEGER NOT NULL,
  finished_at INTEGER CHECK ((finished_at IS NOT NULL) = ${isFinished}),
  request_id TEXT,
  credential TEXT
) STRICT;
INSERT INTO outbox_6 (${outboxColumns}) SELECT ${outboxColumns} FROM outbox ORDER BY seq;
DELETE FROM sqlite_sequence WHERE name = 'outbox_6';
INSERT INTO sqlite_sequence (name, seq) SELECT 'outbox_6', seq FROM sqlite_sequence WHERE name = 'outbox';
DROP TABLE outbox;
ALTER TABLE outbox_6 RENAME TO outbox;
CREATE INDEX outbox_state ON outbox (state);
CREATE INDEX outbox_held ON outbox (seq) WHERE held = 1;
CREATE INDEX outbox_lane ON outbox (subject, lane) WHERE ${isUnfinished()};
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
CREATE TRIGGER outbox_weighed AFTER INSERT ON outbox WHEN ${isOfLicense('new')} BEGIN
  ${weigh('new.subject', weightOf('new'))}
END;
CREATE TRIGGER outbox_reweighed AFTER UPDATE OF state, held ON outbox
WHEN ${isOfLicense('new')} AND (new.held <> old.held
  OR ${isUnfinished('new.')} <> ${isUnfinished('old.')}
  OR (new.kind = 'disable' AND new.state <> old.state)) BEGIN
  ${weigh('new.subject', difference)}
  ${forgetEmpty('new.subject')}
END;
CREATE TRIGGER outbox_respelled AFTER UPDATE OF subject ON outbox
WHEN ${isOfLicense('new')} AND new.subject <> old.subject BEGIN
  ${weigh('new.subject', weightOf('new'))}
  ${weigh(
    'old.subject',
    weightOf('old').map((weight) => `-${weight}`),
  )}
  ${forgetEmpty('old.subject')}
END;

CREATE TABLE license_history_6 (
  license_key TEXT NOT NULL,
  number INTEGER NOT NULL,
  at INTEGER NOT NULL,
  change TEXT NOT NULL CHECK ${oneOf('change', ['usage', 'decrease', 'enable', 'disable', 'refund'])},
  credential TEXT NOT NULL,
  uses_before INTEGER NOT NULL,
  enabled_before INTEGER NOT NULL CHECK (enabled_before IN (0, 1)),
  uses_after INTEGER NOT NULL,
  enabled_after INTEGER NOT NULL CHECK (enabled_after IN (0, 1)),
  PRIMARY KEY (license_key, number)
) STRICT, WITHOUT ROWID;
INSERT INTO license_history_6 (${historyColumns})
  SELECT ${historyColumns} FROM license_history ORDER BY license_key, number;
DROP TABLE license_history;
ALTER TABLE license_history_6 RENAME TO license_history;
CREATE INDEX license_history_at ON license_history (at);
`;
