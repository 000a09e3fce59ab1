import {
  eventsKeptMs,
  maxWaitMs,
  type WebhookDelivery,
  type WebhookEndpoint,
  type WebhookEvent,
} from '../domain/webhook.ts';
import type { WebhookReads, WebhookTable } from '../service/tables.ts';
import {
  columns,
  type Dialect,
  type Engine,
  type On,
  type Sql,
  type WritingSql,
} from '../../../store/sql.ts';
import type { FeatureTables } from '../../../store/feature-tables.ts';

const endpoint =
  columns<WebhookEndpoint>(`endpoint_id, url, types JSON, secret, old_secret, old_secret_until, state,
  position, failures, failing_since, next_at, claim, claimed_until, last_success_at, last_error, created_at`);
const event = columns<WebhookEvent>('number, event_id, type, subject, at');
const delivery = columns<WebhookDelivery>(
  'endpoint_id, number, event_id, type, delivered AS isDelivered BOOL, attempts, status, error, duration_ms, at',
);

const selectEndpoint = `SELECT ${endpoint.list} FROM latchkey.webhook_endpoint`;

function lastIn({ greatest }: Dialect): string {
  return `${greatest}(coalesce((SELECT max(number) FROM latchkey.webhook_event), 0),
    coalesce((SELECT max(position) FROM latchkey.webhook_endpoint), 0))`;
}

function webhookReads<E extends Engine>(sql: Sql<E>): On<E, WebhookReads> {
  const due = sql.column<string>(`SELECT endpoint_id FROM latchkey.webhook_endpoint
    WHERE state = 'active' AND (coalesce(next_at, 0) <= $1 OR next_at > $3)
      AND ($2::boolean OR coalesce(claimed_until, 0) <= $1 OR claimed_until > $3)
      AND position < (SELECT max(number) FROM latchkey.webhook_event) ORDER BY endpoint_id`);
  const after = `number > $1 AND ($2::text IS NULL OR type IN (SELECT value FROM ${sql.dialect.items('$2')}))`;
  const selectEvent = `SELECT ${event.list} FROM latchkey.webhook_event`;
  const next = sql.get<WebhookEvent>(`${selectEvent} WHERE ${after} ORDER BY number LIMIT 1`);
  const waiting = sql.count(
    `SELECT count(*) AS count FROM (SELECT 1 FROM latchkey.webhook_event WHERE ${after} LIMIT $3) AS listed`,
  );
  const ofEndpoint = `SELECT ${delivery.list} FROM latchkey.webhook_delivery WHERE endpoint_id = $1`;
  const deliveries = sql.all(
    `${ofEndpoint} AND number < $2 ORDER BY number DESC LIMIT $3 OFFSET $4`,
    delivery.from,
  );
  return {
    isUsed: sql.exists('SELECT 1 FROM latchkey.webhook_endpoint LIMIT 1'),
    get: sql.get(`${selectEndpoint} WHERE endpoint_id = $1`, endpoint.from),
    all: sql.all(`${selectEndpoint} ORDER BY endpoint_id`, endpoint.from),
    due: (now, isAlone) => due(now, isAlone, now + maxWaitMs),
    event: sql.get(`${selectEvent} WHERE event_id = $1`),
    next: (position, types) => next(position, types && JSON.stringify(types)),
    waiting: (position, types, limit) => waiting(position, types && JSON.stringify(types), limit),
    lastNumber: sql.count(`SELECT ${lastIn(sql.dialect)} AS last`),
    delivery: sql.get(`${ofEndpoint} AND number = $2`, delivery.from),
    deliveries: (endpointId, { limit, offset, cursor }) =>
      deliveries(endpointId, cursor?.[0] ?? Number.MAX_SAFE_INTEGER, limit, offset),
    deliveryCount: sql.count(
      'SELECT count(*) AS count FROM latchkey.webhook_delivery WHERE endpoint_id = $1',
    ),
  };
}

function webhookTable<E extends Engine>(sql: WritingSql<E>): On<E, WebhookTable> {
  const put = sql.run(endpoint.upsert('webhook_endpoint', ['endpoint_id'], ['created_at']));
  const remove = sql.run('DELETE FROM latchkey.webhook_endpoint WHERE endpoint_id = $1');
  const removeDeliveries = sql.run('DELETE FROM latchkey.webhook_delivery WHERE endpoint_id = $1');
  const addEvent = sql.run(`INSERT INTO latchkey.webhook_event (number, event_id, type, subject, at)
    SELECT ${sql.dialect.greatest}($4::bigint, 1 + ${lastIn(sql.dialect)}), $1, $2, $3, $4::bigint
    WHERE EXISTS (SELECT 1 FROM latchkey.webhook_endpoint)`);
  const lockEvents = sql.lock('events', 'EXISTS (SELECT 1 FROM latchkey.webhook_endpoint)');
  const putDelivery = sql.run(delivery.upsert('webhook_delivery', ['endpoint_id', 'number']));
  // The numbers are in the future after the clock was ahead, until that time.
  const old = `SELECT number FROM latchkey.webhook_event WHERE number < $1::bigint
    UNION ALL SELECT number FROM latchkey.webhook_event
    WHERE number > $1::bigint + ${eventsKeptMs} AND at < $1::bigint ORDER BY number LIMIT $2`;
  const pruneDeliveries = sql.run(`DELETE FROM latchkey.webhook_delivery WHERE number IN (${old})`);
  const prune = sql.changes(`DELETE FROM latchkey.webhook_event WHERE number IN (${old})`);
  return {
    ...webhookReads(sql),
    lock: sql.get(`${selectEndpoint} WHERE endpoint_id = $1 ${sql.dialect.forUpdate}`, endpoint.from),
    put: (row) => put(...endpoint.values(row)),
    remove(endpointId) {
      removeDeliveries(endpointId);
      remove(endpointId);
    },
    addEvent({ eventId, type, subject, at }) {
      // Numbers follow the order of commits, so that no event appears below a position that was reached already.
      lockEvents();
      return addEvent(eventId, type, subject, at);
    },
    putDelivery: (row) => putDelivery(...delivery.values(row)),
    prune(before, limit) {
      pruneDeliveries(before, limit);
      return prune(before, limit);
    },
  };
}

export const tables: FeatureTables = {
  reads: (sql) => ({ webhooks: webhookReads(sql) }),
  tables: (sql) => ({ webhooks: webhookTable(sql) }),
};
