import { eventsKeptMs, maxWaitMs, type WebhookEvent } from '../../../domain/webhook.ts';
import type { AuthorityTable, AwaitableTable } from '../../../service/tables.ts';
import type { WebhookReads, WebhookTable } from '../../../service/webhook/tables.ts';
import { deliveryFrom, endpointFrom, typesText } from '../../webhook-row.ts';
import { lockEvents } from '../locks.ts';
import type { Names } from '../names.ts';
import type { Prepare, WritingPrepare } from '../statements.ts';

const endpointColumns = `endpoint_id AS "endpointId", url, types, secret, old_secret AS "oldSecret",
  old_secret_until AS "oldSecretUntil", state, position, failures, failing_since AS "failingSince",
  next_at AS "nextAt", claim, claimed_until AS "claimedUntil", last_success_at AS "lastSuccessAt",
  last_error AS "lastError", created_at AS "createdAt"`;

const eventColumns = 'number, event_id AS "eventId", type, subject, at';

const deliveryColumns = `endpoint_id AS "endpointId", number, event_id AS "eventId", type, delivered AS "isDelivered",
  attempts, status, error, duration_ms AS "durationMs", at`;

function lastIn({ webhookEvent, webhookEndpoint }: Names): string {
  return `greatest(coalesce((SELECT max(number) FROM ${webhookEvent}), 0),
    coalesce((SELECT max(position) FROM ${webhookEndpoint}), 0))`;
}

export function webhookReads(prepare: Prepare): AwaitableTable<WebhookReads> {
  const { names } = prepare;
  const { webhookEndpoint, webhookEvent, webhookDelivery } = names;
  const endpoints = `SELECT ${endpointColumns} FROM ${webhookEndpoint}`;
  const events = `SELECT ${eventColumns} FROM ${webhookEvent}`;
  const used = prepare.column<boolean>(`SELECT EXISTS (SELECT 1 FROM ${webhookEndpoint}) AS used`);
  const due = prepare.column<string>(`SELECT endpoint_id FROM ${webhookEndpoint}
    WHERE state = 'active' AND (coalesce(next_at, 0) <= $1 OR next_at > $3)
      AND ($2::boolean OR coalesce(claimed_until, 0) <= $1 OR claimed_until > $3)
      AND position < (SELECT max(number) FROM ${webhookEvent}) ORDER BY endpoint_id`);
  const after = `number > $1::bigint AND ($2::text IS NULL OR type IN (SELECT json_array_elements_text($2::json)))`;
  const next = prepare.query<WebhookEvent>(`${events} WHERE ${after} ORDER BY number LIMIT 1`);
  const waiting = prepare.column<number>(
    `SELECT count(*) AS count FROM (SELECT 1 FROM ${webhookEvent} WHERE ${after} LIMIT $3::bigint) AS listed`,
  );
  const last = prepare.column<number>(`SELECT ${lastIn(names)} AS last`);
  const ofEndpoint = `SELECT ${deliveryColumns} FROM ${webhookDelivery} WHERE endpoint_id = $1`;
  const delivery = prepare.query(`${ofEndpoint} AND number = $2::bigint`, deliveryFrom);
  const deliveries = prepare.query(
    `${ofEndpoint} AND number < $2::bigint ORDER BY number DESC LIMIT $3::bigint OFFSET $4::bigint`,
    deliveryFrom,
  );
  const count = prepare.column<number>(
    `SELECT count(*) AS count FROM ${webhookDelivery} WHERE endpoint_id = $1`,
  );
  const all = prepare.query(`${endpoints} ORDER BY endpoint_id`, endpointFrom);
  return {
    isUsed: async () => (await used.first()) === true,
    get: prepare.query(`${endpoints} WHERE endpoint_id = $1`, endpointFrom).first,
    all: () => all.all(),
    due: (now, isAlone) => due.all(now, isAlone, now + maxWaitMs),
    event: prepare.query<WebhookEvent>(`${events} WHERE event_id = $1`).first,
    next: (position, types) => next.first(position, typesText(types)),
    waiting: async (position, types, limit) => (await waiting.first(position, typesText(types), limit)) ?? 0,
    lastNumber: async () => (await last.first()) ?? 0,
    delivery: (endpointId, number) => delivery.first(endpointId, number),
    deliveries: (endpointId, { limit, offset, cursor }) =>
      deliveries.all(endpointId, cursor?.[0] ?? Number.MAX_SAFE_INTEGER, limit, offset),
    deliveryCount: async (endpointId) => (await count.first(endpointId)) ?? 0,
  };
}

type Table = AuthorityTable<WebhookTable>;

export function webhookTable(prepare: WritingPrepare): Table {
  return { ...webhookReads(prepare), ...endpointWrites(prepare), ...eventWrites(prepare) };
}

function endpointWrites(prepare: WritingPrepare): Pick<Table, 'lock' | 'put' | 'remove'> {
  const { webhookEndpoint, webhookDelivery } = prepare.names;
  const lock = prepare.query(
    `SELECT ${endpointColumns} FROM ${webhookEndpoint} WHERE endpoint_id = $1 FOR UPDATE`,
    endpointFrom,
  );
  const put = prepare.write(`INSERT INTO ${webhookEndpoint} (endpoint_id, url, types, secret, old_secret,
      old_secret_until, state, position, failures, failing_since, next_at, claim, claimed_until, last_success_at,
      last_error, created_at)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)
    ON CONFLICT (endpoint_id) DO UPDATE SET url = excluded.url, types = excluded.types, secret = excluded.secret,
      old_secret = excluded.old_secret, old_secret_until = excluded.old_secret_until, state = excluded.state,
      position = excluded.position, failures = excluded.failures, failing_since = excluded.failing_since,
      next_at = excluded.next_at, claim = excluded.claim, claimed_until = excluded.claimed_until,
      last_success_at = excluded.last_success_at, last_error = excluded.last_error`);
  const remove = prepare.write(`DELETE FROM ${webhookEndpoint} WHERE endpoint_id = $1`);
  const removeDeliveries = prepare.write(`DELETE FROM ${webhookDelivery} WHERE endpoint_id = $1`);
  return {
    lock: lock.first,
    put: ({ types, ...row }) =>
      put(
        row.endpointId,
        row.url,
        typesText(types),
        row.secret,
        row.oldSecret,
        row.oldSecretUntil,
        row.state,
        row.position,
        row.failures,
        row.failingSince,
        row.nextAt,
        row.claim,
        row.claimedUntil,
        row.lastSuccessAt,
        row.lastError,
        row.createdAt,
      ),
    remove(endpointId) {
      removeDeliveries(endpointId);
      remove(endpointId);
    },
  };
}

function eventWrites(prepare: WritingPrepare): Pick<Table, 'addEvent' | 'putDelivery' | 'prune'> {
  const { names } = prepare;
  const { webhookEndpoint, webhookEvent, webhookDelivery } = names;
  const lockNumbers = prepare.write(lockEvents(names).text);
  const addEvent = prepare.write(`INSERT INTO ${webhookEvent} (number, event_id, type, subject, at)
    SELECT greatest($4::bigint, 1 + ${lastIn(names)}), $1, $2, $3, $4::bigint
    WHERE EXISTS (SELECT 1 FROM ${webhookEndpoint})`);
  const putDelivery =
    prepare.write(`INSERT INTO ${webhookDelivery} (endpoint_id, number, event_id, type, delivered,
      attempts, status, error, duration_ms, at)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
    ON CONFLICT (endpoint_id, number) DO UPDATE SET delivered = excluded.delivered, attempts = excluded.attempts,
      status = excluded.status, error = excluded.error, duration_ms = excluded.duration_ms, at = excluded.at`);
  // The numbers are in the future after the clock was ahead, until that time.
  const old = `SELECT number FROM ${webhookEvent} WHERE number < $1::bigint
    UNION ALL SELECT number FROM ${webhookEvent} WHERE number > $1::bigint + ${eventsKeptMs} AND at < $1::bigint
    ORDER BY number LIMIT $2::bigint`;
  const pruneDeliveries = prepare.write(`DELETE FROM ${webhookDelivery} WHERE number IN (${old})`);
  const prune = prepare.changeCount(`DELETE FROM ${webhookEvent} WHERE number IN (${old})`);
  return {
    addEvent({ eventId, type, subject, at }) {
      // Numbers follow the order of commits, so that no event appears below a position that was reached already.
      lockNumbers();
      addEvent(eventId, type, subject, at);
    },
    putDelivery: (row) =>
      putDelivery(
        row.endpointId,
        row.number,
        row.eventId,
        row.type,
        row.isDelivered,
        row.attempts,
        row.status,
        row.error,
        row.durationMs,
        row.at,
      ),
    prune(before, limit) {
      pruneDeliveries(before, limit);
      return prune(before, limit);
    },
  };
}
