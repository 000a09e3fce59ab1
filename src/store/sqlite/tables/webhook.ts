import { eventsKeptMs, maxWaitMs } from '../../../domain/webhook.ts';
import type { WebhookReads, WebhookTable } from '../../../service/webhook/tables.ts';
import { deliveryFrom, endpointFrom, typesText } from '../../webhook-row.ts';
import { afterNumber, bit, type Prepare } from '../statements.ts';

const selectEndpoint = `SELECT endpoint_id AS endpointId, url, types, secret, old_secret AS oldSecret,
  old_secret_until AS oldSecretUntil, state, position, failures, failing_since AS failingSince, next_at AS nextAt,
  claim, claimed_until AS claimedUntil, last_success_at AS lastSuccessAt, last_error AS lastError,
  created_at AS createdAt FROM webhook_endpoint`;

const selectEvent = 'SELECT number, event_id AS eventId, type, subject, at FROM webhook_event';

const selectDelivery = `SELECT endpoint_id AS endpointId, number, event_id AS eventId, type, delivered AS isDelivered,
  attempts, status, error, duration_ms AS durationMs, at FROM webhook_delivery`;

const last = `max(coalesce((SELECT max(number) FROM webhook_event), 0),
  coalesce((SELECT max(position) FROM webhook_endpoint), 0))`;

export function webhookReads(prepare: Prepare): WebhookReads {
  const any = prepare.column<number>('SELECT 1 AS one FROM webhook_endpoint LIMIT 1');
  const due = prepare.column<string>(`SELECT endpoint_id FROM webhook_endpoint
    WHERE state = 'active' AND (coalesce(next_at, 0) <= ?1 OR next_at > ?3)
      AND (?2 OR coalesce(claimed_until, 0) <= ?1 OR claimed_until > ?3)
      AND position < (SELECT max(number) FROM webhook_event) ORDER BY endpoint_id`);
  const after = 'number > ?1 AND (?2 IS NULL OR type IN (SELECT value FROM json_each(?2)))';
  const next = prepare.query(`${selectEvent} WHERE ${after} ORDER BY number LIMIT 1`);
  const waiting = prepare.count(
    `SELECT count(*) AS count FROM (SELECT 1 FROM webhook_event WHERE ${after} LIMIT ?3) AS listed`,
  );
  const delivery = prepare.query(`${selectDelivery} WHERE endpoint_id = ? AND number = ?`, deliveryFrom);
  const deliveries = prepare.query(
    `${selectDelivery} WHERE endpoint_id = ?1 AND number < ?2 ORDER BY number DESC LIMIT ?3 OFFSET ?4`,
    deliveryFrom,
  );
  const lastNumber = prepare.count(`SELECT ${last} AS last`);
  return {
    isUsed: () => any.first() !== null,
    get: prepare.query(`${selectEndpoint} WHERE endpoint_id = ?`, endpointFrom).first,
    all: () => prepare.query(`${selectEndpoint} ORDER BY endpoint_id`, endpointFrom).all(),
    due: (now, isAlone) => due.all(now, bit(isAlone), now + maxWaitMs),
    event: prepare.query<ReturnType<WebhookReads['event']> & object>(`${selectEvent} WHERE event_id = ?`)
      .first,
    next: (position, types) => next.first(position, typesText(types)) as ReturnType<WebhookReads['next']>,
    waiting: (position, types, limit) => waiting(position, typesText(types), limit),
    lastNumber: () => lastNumber(),
    delivery: (endpointId, number) => delivery.first(endpointId, number),
    deliveries: (endpointId, { limit, offset, cursor }) =>
      deliveries.all(
        endpointId,
        cursor === undefined ? Number.MAX_SAFE_INTEGER : afterNumber({ limit, offset, cursor }),
        limit,
        offset,
      ),
    deliveryCount: prepare.count('SELECT count(*) AS count FROM webhook_delivery WHERE endpoint_id = ?'),
  };
}

export function webhookTable(prepare: Prepare): WebhookTable {
  const reads = webhookReads(prepare);
  const put = prepare.change(`INSERT INTO webhook_endpoint (endpoint_id, url, types, secret, old_secret,
      old_secret_until, state, position, failures, failing_since, next_at, claim, claimed_until, last_success_at,
      last_error, created_at)
    VALUES (:endpointId, :url, :types, :secret, :oldSecret, :oldSecretUntil, :state, :position, :failures,
      :failingSince, :nextAt, :claim, :claimedUntil, :lastSuccessAt, :lastError, :createdAt)
    ON CONFLICT (endpoint_id) DO UPDATE SET url = excluded.url, types = excluded.types, secret = excluded.secret,
      old_secret = excluded.old_secret, old_secret_until = excluded.old_secret_until, state = excluded.state,
      position = excluded.position, failures = excluded.failures, failing_since = excluded.failing_since,
      next_at = excluded.next_at, claim = excluded.claim, claimed_until = excluded.claimed_until,
      last_success_at = excluded.last_success_at, last_error = excluded.last_error`);
  const remove = prepare.change('DELETE FROM webhook_endpoint WHERE endpoint_id = :endpointId');
  const removeDeliveries = prepare.change('DELETE FROM webhook_delivery WHERE endpoint_id = :endpointId');
  const addEvent = prepare.change(`INSERT INTO webhook_event (number, event_id, type, subject, at)
    SELECT max(:at, 1 + ${last}), :eventId, :type, :subject, :at WHERE EXISTS (SELECT 1 FROM webhook_endpoint)`);
  const putDelivery =
    prepare.change(`INSERT OR REPLACE INTO webhook_delivery (endpoint_id, number, event_id, type,
      delivered, attempts, status, error, duration_ms, at)
    VALUES (:endpointId, :number, :eventId, :type, :isDelivered, :attempts, :status, :error, :durationMs, :at)`);
  // The numbers are in the future after the clock was ahead, until that time.
  const old = `SELECT number FROM webhook_event WHERE number < :before
    UNION ALL SELECT number FROM webhook_event WHERE number > :before + ${eventsKeptMs} AND at < :before
    ORDER BY number LIMIT :limit`;
  const pruneDeliveries = prepare.change(`DELETE FROM webhook_delivery WHERE number IN (${old})`);
  const prune = prepare.change(`DELETE FROM webhook_event WHERE number IN (${old})`);
  return {
    ...reads,
    // One connection writes, so transactions run one after another.
    lock: (endpointId) => reads.get(endpointId),
    put: ({ types, ...same }) => void put({ ...same, types: typesText(types) }),
    remove(endpointId) {
      removeDeliveries({ endpointId });
      remove({ endpointId });
    },
    addEvent: (event) => void addEvent(event),
    putDelivery: (delivery) => void putDelivery(delivery),
    prune(before, limit) {
      pruneDeliveries({ before, limit });
      return prune({ before, limit }).changes;
    },
  };
}
