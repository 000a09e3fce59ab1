import { activationFrom } from '../../activation-row.ts';
import { movesWithinMs, type Activation } from '../../../domain/lease.ts';
import type { ActivationFilter, ActivationReads, ActivationTable } from '../../../service/lease/tables.ts';
import type { AwaitableTable, AuthorityTable } from '../../../service/tables.ts';
import type { Names } from '../names.ts';
import type { Condition, Prepare, WritingPrepare } from '../statements.ts';

const columns = `activation_id AS "activationId", license_key AS "licenseKey", product_key AS "productKey", device,
  device_name AS "deviceName", state, seq, digest, answer, rev, expires_at AS "expiresAt",
  seat_until AS "seatUntil", uses_recorded AS recorded, uses_returned AS returned, created_at AS "createdAt",
  renewed_at AS "renewedAt", moved_at AS "movedAt", challenged_at AS "challengedAt", copied_at AS "copiedAt"`;

function conditionsOf({ activation, product }: Names, filter: ActivationFilter): Condition[] {
  const { tenant } = filter;
  return [
    [(place) => `license_key = ${place}`, filter.licenseKey],
    [(place) => `product_key = ${place}`, filter.productKey],
    [(place) => `state = ${place}`, filter.state],
    [(place) => `seat_until > ${place}`, filter.seatAt],
    [(place) => `(copied_at IS NOT NULL) = ${place}`, filter.copied],
    [
      (place) => `EXISTS (SELECT 1 FROM ${product} AS reached
        WHERE reached.product_key = ${activation}.product_key AND reached.account_id = ${place})`,
      tenant?.accountId,
    ],
    [(place) => `product_key = ${place}`, tenant?.productKey ?? undefined],
  ];
}

export function activationReads(prepare: Prepare): AwaitableTable<ActivationReads> {
  const { names } = prepare;
  const { activation } = names;
  const listed = prepare.list({ select: columns, from: activation, key: ['activation_id'] }, activationFrom);
  const one = (condition: string) =>
    prepare.query(`SELECT ${columns} FROM ${activation} WHERE ${condition}`, activationFrom);
  const ofDevice = one('license_key = $1 AND device = $2');
  const ofLicense = one('license_key = $1 ORDER BY renewed_at DESC, activation_id LIMIT $2::bigint');
  const seatsTaken = prepare.column<number>(
    `SELECT count(*) AS count FROM ${activation} WHERE license_key = $1 AND seat_until > $2 AND activation_id <> $3`,
  );
  const movesSince = prepare.column<number>(
    `SELECT count(*) AS count FROM ${activation}, json_array_elements_text(moved_at::json) AS moved (at)
     WHERE license_key = $1 AND moved_at <> '[]' AND moved.at::bigint >= $2`,
  );
  const expiring = prepare.query<Pick<Activation, 'activationId' | 'expiresAt'>>(
    `SELECT activation_id AS "activationId", expires_at AS "expiresAt" FROM ${activation}
     WHERE state = 'active' AND expires_at > $1 AND expires_at <= $2 ORDER BY expires_at LIMIT $3::bigint`,
  );
  return {
    expiring: (after, until, limit) => expiring.all(after, until, limit),
    get: one('activation_id = $1').first,
    ofDevice: (licenseKey, device) => ofDevice.first(licenseKey, device),
    ofLicense: (licenseKey, limit) => ofLicense.all(licenseKey, limit),
    seatsTaken: async (licenseKey, at, except) => (await seatsTaken.first(licenseKey, at, except)) ?? 0,
    movesSince: async (licenseKey, since) => (await movesSince.first(licenseKey, since)) ?? 0,
    list: (filter, page) => listed.list(conditionsOf(names, filter), page),
    count: (filter) => listed.count(conditionsOf(names, filter)),
    after: (filter, activationId, limit) =>
      listed.list(conditionsOf(names, filter), { limit, offset: 0, cursor: [activationId] }),
  };
}

export function activationTable(prepare: WritingPrepare): AuthorityTable<ActivationTable> {
  const { activation, license } = prepare.names;
  const lock = prepare.query(`SELECT 1 FROM ${license} WHERE license_key = $1 FOR UPDATE`);
  const put = prepare.write(
    `INSERT INTO ${activation} (activation_id, license_key, product_key, device, device_name, state, seq, digest,
       answer, rev, expires_at, seat_until, uses_recorded, uses_returned, created_at, renewed_at, moved_at,
       challenged_at, copied_at)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19)
     ON CONFLICT (activation_id) DO UPDATE SET license_key = excluded.license_key, product_key = excluded.product_key,
       device_name = excluded.device_name, state = excluded.state, seq = excluded.seq, digest = excluded.digest,
       answer = excluded.answer, rev = excluded.rev, expires_at = excluded.expires_at,
       seat_until = excluded.seat_until, uses_recorded = excluded.uses_recorded,
       uses_returned = excluded.uses_returned, renewed_at = excluded.renewed_at, moved_at = excluded.moved_at,
       challenged_at = excluded.challenged_at, copied_at = excluded.copied_at`,
  );
  const pruneEnded = prepare.write(`DELETE FROM ${activation} WHERE activation_id IN (
       SELECT activation_id FROM ${activation}
       WHERE license_key = $1 AND state <> 'blocked' AND seat_until <= $3 AND NOT EXISTS (
         SELECT 1 FROM json_array_elements_text(moved_at::json) AS moved (at)
         WHERE moved.at::bigint > $3 - ${movesWithinMs})
       ORDER BY renewed_at DESC, created_at DESC, activation_id DESC OFFSET $2::bigint)`);
  return {
    ...activationReads(prepare),
    lockLicense: async (licenseKey) => void (await lock.first(licenseKey)),
    put: ({ uses, ...row }) =>
      put(
        row.activationId,
        row.licenseKey,
        row.productKey,
        row.device,
        row.deviceName,
        row.state,
        row.seq,
        row.digest,
        JSON.stringify(row.answer),
        row.rev,
        row.expiresAt,
        row.seatUntil,
        uses.recorded,
        uses.returned,
        row.createdAt,
        row.renewedAt,
        JSON.stringify(row.movedAt),
        JSON.stringify(row.challengedAt),
        row.copiedAt,
      ),
    pruneEnded: (licenseKey, keep, now) => pruneEnded(licenseKey, keep, now),
  };
}
