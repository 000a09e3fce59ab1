import { movesWithinMs, type Activation } from '../domain/lease.ts';
import { maxFound, type Search } from '../../../domain/search.ts';
import type { End } from '../../../domain/time.ts';
import { isFound } from '../../../store/tables/search.ts';
import type { ActivationFilter, ActivationReads, ActivationTable } from '../service/tables.ts';
import {
  columns,
  ofTenant,
  type Condition,
  type Engine,
  type On,
  type Sql,
  type WritingSql,
} from '../../../store/sql.ts';

const activation = columns<
  Omit<Activation, 'uses'> & Activation['uses']
>(`activation_id, license_key, product_key,
  device, device_name, state, seq, digest, answer JSON, rev, expires_at, seat_until, uses_recorded AS recorded,
  uses_returned AS returned, created_at, renewed_at, moved_at JSON, challenged_at JSON, copied_at`);

function activationFrom(row: never): Activation {
  const { recorded, returned, ...same } = activation.from(row);
  return { ...same, uses: { recorded, returned } };
}

function conditionsOf<E extends Engine>(
  sql: Sql<E>,
  { licenseKey, productKey, state, seatAt, copied, search, tenant }: ActivationFilter,
): Condition[] {
  return [
    ...(search === undefined ? [] : [found(sql, search)]),
    ['license_key = $1', licenseKey],
    ['product_key = $1', productKey],
    ['state = $1', state],
    ['seat_until > $1', seatAt],
    ['(copied_at IS NOT NULL) = $1', copied],
    ...ofTenant('activation', tenant),
  ];
}

function found<E extends Engine>({ engine, dialect }: Sql<E>, { keys, text }: Search): Condition {
  const buyerIn = (table: string): string =>
    `(SELECT buyer_email FROM latchkey.${table} AS sold WHERE sold.license_key = activation.license_key)`;
  // An agent knows the buyer from its upstream.
  const buyers = [buyerIn('license'), ...(engine === 'sqlite' ? [buyerIn('license_snapshot')] : [])];
  return [isFound(dialect, '$1', { keys, key: 'license_key', others: ['device_name', ...buyers] }), text];
}

export function activationReads<E extends Engine>(sql: Sql<E>): On<E, ActivationReads> {
  const from = 'latchkey.activation';
  const listed = sql.list({ select: activation.list, from, key: ['activation_id'] }, activationFrom);
  const select = `SELECT ${activation.list} FROM ${from}`;
  const expiring = sql.all<End>(`SELECT expires_at AS at, activation_id AS key FROM ${from}
     WHERE state = 'active' AND expires_at >= $1 AND (expires_at > $1 OR activation_id > $2) AND expires_at <= $3
     ORDER BY expires_at, activation_id LIMIT $4`);
  return {
    expiring: ({ at, key }, until, limit) => expiring(at, key, until, limit),
    get: sql.get(`${select} WHERE activation_id = $1`, activationFrom),
    ofDevice: sql.get(`${select} WHERE license_key = $1 AND device = $2`, activationFrom),
    activeOf: sql.column(`SELECT activation_id FROM ${from}
     WHERE license_key = $1 AND state = 'active' ORDER BY activation_id`),
    ofLicense: sql.all(
      `${select} WHERE license_key = $1 ORDER BY renewed_at DESC, activation_id LIMIT $2`,
      activationFrom,
    ),
    seatsTaken: sql.count(`SELECT count(*) AS count FROM latchkey.activation
     WHERE license_key = $1 AND seat_until > $2 AND activation_id <> $3`),
    movesSince: sql.count(`SELECT count(*) AS count FROM ${from}, ${sql.dialect.items('activation.moved_at')}
     WHERE license_key = $1 AND moved_at <> '[]' AND items.value::bigint >= $2`),
    list: (filter, page) => listed.list(conditionsOf(sql, filter), page),
    count: (filter) =>
      filter.search === undefined
        ? listed.count(conditionsOf(sql, filter))
        : listed.countUpTo(conditionsOf(sql, filter), maxFound + 1),
  };
}

export function activationTable<E extends Engine>(sql: WritingSql<E>): On<E, ActivationTable> {
  // On SQLite, one connection writes, so transactions run one after another.
  const lock: (licenseKey: string) => unknown =
    sql.engine === 'sqlite'
      ? () => null
      : sql.get('SELECT 1 FROM latchkey.license WHERE license_key = $1 FOR UPDATE');
  const { items, noLimit } = sql.dialect;
  const put = sql.run(activation.upsert('activation', ['activation_id'], ['device', 'created_at']));
  // A device that has an activation of both keys keeps the one whose seat is taken for longer.
  const removeShorter =
    sql.run(`DELETE FROM latchkey.activation AS shorter WHERE license_key = $1 AND EXISTS (
       SELECT 1 FROM latchkey.activation AS other WHERE other.license_key = $2 AND other.device = shorter.device
         AND other.seat_until >= shorter.seat_until)`);
  const removeSame = sql.run(`DELETE FROM latchkey.activation AS same WHERE license_key = $2 AND EXISTS (
       SELECT 1 FROM latchkey.activation AS other WHERE other.license_key = $1 AND other.device = same.device)`);
  const changeKey = sql.run('UPDATE latchkey.activation SET license_key = $2 WHERE license_key = $1');
  // A device is a digest: its first 96 bits tell it from every other one.
  const copy =
    sql.run(`INSERT INTO latchkey.activation (activation_id, license_key, product_key, device, device_name,
      state, seq, digest, answer, rev, expires_at, seat_until, uses_recorded, uses_returned, created_at, renewed_at,
      moved_at, challenged_at, copied_at)
    SELECT $3::text || '-' || substr(device, 1, 16), $2, product_key, device, device_name,
      state, 0, '', answer, rev, expires_at, seat_until, 0, 0, created_at, renewed_at, moved_at, '[]', copied_at
    FROM latchkey.activation WHERE license_key = $1`);
  const endAll =
    sql.run(`UPDATE latchkey.activation SET state = CASE state WHEN 'active' THEN 'ended' ELSE state END,
      seat_until = CASE WHEN seat_until > $2 THEN $2 ELSE seat_until END WHERE license_key = $1`);
  const withoutEmail = sql.run(`UPDATE latchkey.activation SET answer = replace(answer, $2, '""')
    WHERE ${sql.dialect.isIn('license_key', '$1')}`);
  return {
    ...activationReads(sql),
    copyToKey(from, to, id) {
      copy(from, to, id);
      endAll(from, 0);
    },
    endAll,
    removeNames: sql.column(`UPDATE latchkey.activation SET device_name = NULL
      WHERE ${sql.dialect.isIn('license_key', '$1')} RETURNING activation_id`),
    removeEmail: (licenseKeys, email) => withoutEmail(licenseKeys, JSON.stringify(email)),
    lockLicense: async (licenseKey) => void (await lock(licenseKey)),
    put: ({ uses, ...same }) => put(...activation.values({ ...same, ...uses })),
    pruneEnded: sql.run(`DELETE FROM latchkey.activation WHERE activation_id IN (
       SELECT activation_id FROM latchkey.activation AS ended
       WHERE license_key = $1 AND state <> 'blocked' AND seat_until <= $3 AND NOT EXISTS (
         SELECT 1 FROM ${items('ended.moved_at')} WHERE items.value::bigint > $3 - ${movesWithinMs})
       ORDER BY renewed_at DESC, created_at DESC, activation_id DESC LIMIT ${noLimit} OFFSET $2)`),
    changeKey(from, to) {
      for (const change of [removeShorter, removeSame, changeKey]) change(from, to);
    },
    forgetRequests: sql.run("UPDATE latchkey.activation SET seq = 0, digest = ''"),
  };
}
