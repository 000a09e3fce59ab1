import { activationFrom } from '../../activation-row.ts';
import { movesWithinMs, type Activation } from '../../../domain/lease.ts';
import type { ActivationFilter, ActivationReads, ActivationTable } from '../../../service/lease/tables.ts';
import { afterText, bit, type Prepare } from '../statements.ts';

const select = `SELECT activation_id AS activationId, license_key AS licenseKey, product_key AS productKey, device,
  device_name AS deviceName, state, seq, digest, answer, rev, expires_at AS expiresAt, seat_until AS seatUntil,
  uses_recorded AS recorded, uses_returned AS returned, created_at AS createdAt, renewed_at AS renewedAt,
  moved_at AS movedAt, challenged_at AS challengedAt, copied_at AS copiedAt FROM activation`;

/** Parameters: license key, product, state, instant of a seat, copied, account and product of the tenant. */
const conditions = `(?1 IS NULL OR license_key = ?1) AND (?2 IS NULL OR product_key = ?2)
  AND (?3 IS NULL OR state = ?3) AND (?4 IS NULL OR seat_until > ?4) AND (?5 IS NULL OR (copied_at IS NOT NULL) = ?5)
  AND (?6 IS NULL OR EXISTS (SELECT 1 FROM product
    WHERE product.product_key = activation.product_key AND product.account_id = ?6))
  AND (?7 IS NULL OR product_key = ?7)`;

function parametersOf({ licenseKey, productKey, state, seatAt, copied, tenant }: ActivationFilter) {
  return [
    licenseKey ?? null,
    productKey ?? null,
    state ?? null,
    seatAt ?? null,
    copied === undefined ? null : bit(copied),
    tenant?.accountId ?? null,
    tenant?.productKey ?? null,
  ] as const;
}

export function activationReads(prepare: Prepare): ActivationReads {
  const page = `${conditions} AND activation_id > ?8 ORDER BY activation_id LIMIT ?9 OFFSET ?10`;
  // A condition with IS NULL cannot use the index of license keys.
  const list = prepare.query(`${select} WHERE ${page}`, activationFrom);
  const listOfKey = prepare.query(`${select} WHERE license_key = ?1 AND ${page}`, activationFrom);
  const count = prepare.count(`SELECT count(*) AS count FROM activation WHERE ${conditions}`);
  const countOfKey = prepare.count(
    `SELECT count(*) AS count FROM activation WHERE license_key = ?1 AND ${conditions}`,
  );
  const ofDevice = prepare.query(`${select} WHERE license_key = ? AND device = ?`, activationFrom);
  const ofLicense = prepare.query(
    `${select} WHERE license_key = ? ORDER BY renewed_at DESC, activation_id LIMIT ?`,
    activationFrom,
  );
  const expiring = prepare.query<Pick<Activation, 'activationId' | 'expiresAt'>>(
    `SELECT activation_id AS activationId, expires_at AS expiresAt FROM activation
     WHERE state = 'active' AND expires_at > ? AND expires_at <= ? ORDER BY expires_at LIMIT ?`,
  );
  return {
    expiring: (after, until, limit) => expiring.all(after, until, limit),
    get: prepare.query(`${select} WHERE activation_id = ?`, activationFrom).first,
    ofDevice: (licenseKey, device) => ofDevice.first(licenseKey, device),
    ofLicense: (licenseKey, limit) => ofLicense.all(licenseKey, limit),
    seatsTaken: prepare.count(
      'SELECT count(*) AS count FROM activation WHERE license_key = ? AND seat_until > ? AND activation_id <> ?',
    ),
    movesSince: prepare.count(
      `SELECT count(*) AS count FROM activation, json_each(activation.moved_at) AS moved
       WHERE license_key = ? AND moved_at <> '[]' AND moved.value >= ?`,
    ),
    list: (filter, { limit, offset, ...after }) =>
      (filter.licenseKey === undefined ? list : listOfKey).all(
        ...parametersOf(filter),
        afterText({ limit, offset, ...after }),
        limit,
        offset,
      ),
    count: (filter) => (filter.licenseKey === undefined ? count : countOfKey)(...parametersOf(filter)),
    after: (filter, activationId, limit) => list.all(...parametersOf(filter), activationId, limit, 0),
  };
}

export function activationTable(prepare: Prepare): ActivationTable {
  const put =
    prepare.change(`INSERT INTO activation (activation_id, license_key, product_key, device, device_name, state, seq,
       digest, answer, rev, expires_at, seat_until, uses_recorded, uses_returned, created_at, renewed_at, moved_at,
       challenged_at, copied_at)
     VALUES (:activationId, :licenseKey, :productKey, :device, :deviceName, :state, :seq, :digest, :answer, :rev,
       :expiresAt, :seatUntil, :recorded, :returned, :createdAt, :renewedAt, :movedAt, :challengedAt, :copiedAt)
     ON CONFLICT (activation_id) DO UPDATE SET license_key = excluded.license_key, product_key = excluded.product_key,
       device_name = excluded.device_name, state = excluded.state, seq = excluded.seq, digest = excluded.digest,
       answer = excluded.answer, rev = excluded.rev, expires_at = excluded.expires_at,
       seat_until = excluded.seat_until, uses_recorded = excluded.uses_recorded,
       uses_returned = excluded.uses_returned, renewed_at = excluded.renewed_at, moved_at = excluded.moved_at,
       challenged_at = excluded.challenged_at, copied_at = excluded.copied_at`);
  const pruneEnded = prepare.change(`DELETE FROM activation WHERE activation_id IN (
       SELECT activation_id FROM activation
       WHERE license_key = :licenseKey AND state <> 'blocked' AND seat_until <= :now
         AND NOT EXISTS (SELECT 1 FROM json_each(moved_at) AS moved WHERE moved.value > :now - ${movesWithinMs})
       ORDER BY renewed_at DESC, created_at DESC, activation_id DESC LIMIT -1 OFFSET :keep)`);
  // A device that has an activation of both keys keeps the one whose seat is taken for longer.
  const removeShorter = prepare.change(`DELETE FROM activation WHERE license_key = :from AND EXISTS (
       SELECT 1 FROM activation AS other WHERE other.license_key = :to AND other.device = activation.device
         AND other.seat_until >= activation.seat_until)`);
  const removeSame = prepare.change(`DELETE FROM activation WHERE license_key = :to AND EXISTS (
       SELECT 1 FROM activation AS other WHERE other.license_key = :from AND other.device = activation.device)`);
  const changeKey = prepare.change('UPDATE activation SET license_key = :to WHERE license_key = :from');
  const forgetRequests = prepare.change("UPDATE activation SET seq = 0, digest = ''");
  return {
    ...activationReads(prepare),
    // One connection writes, so transactions run one after another.
    lockLicense: () => undefined,
    put: ({ answer, uses, movedAt, challengedAt, ...same }) => {
      put({
        ...same,
        ...uses,
        answer: JSON.stringify(answer),
        movedAt: JSON.stringify(movedAt),
        challengedAt: JSON.stringify(challengedAt),
      });
    },
    pruneEnded: (licenseKey, keep, now) => void pruneEnded({ licenseKey, keep, now }),
    changeKey: (from, to) => {
      for (const change of [removeShorter, removeSame, changeKey]) change({ from, to });
    },
    forgetRequests: () => void forgetRequests({}),
  };
}
