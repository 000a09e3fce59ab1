/*
 * The fifth schema: what a key's queue adds up to is kept by fewer and cheaper steps. SQLite makes a table of its
 * own for each `IN` of more than two words, each time that a trigger runs; words joined by OR cost nothing.
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
`;
