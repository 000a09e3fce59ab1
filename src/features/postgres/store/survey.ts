import { Client } from 'pg';
import { clientConfig, deadlines, placeOf, type DatabaseAddress } from './client.ts';
import { isTimeout, refusalOf } from './faults.ts';
import { examine } from './migrations.ts';
import { namesIn, type Names } from './names.ts';
import { isIndexed } from './search-index.ts';
import type { SqlValue } from '../../../store/sql.ts';
import { epochMs, type Row } from './statements.ts';

/** The report about a database for the operator. Times are ms. */
export type Survey = {
  version: string;
  /** How far the clock of this machine is ahead of the clock of the database. */
  aheadMs: number;
  /** Why this version cannot use the database; null: it can. */
  refusal: string | null;
  /** `applied` null: there are no tables yet; `mayBeMade`: whether this role may create them. */
  schema: { applied: number } | { applied: null; mayBeMade: boolean };
  /** Whether searches have their index; null: there are no tables yet. */
  isSearchIndexed: boolean | null;
  durability: Durability;
  connections: ConnectionCounts;
  /** Descriptions of long transactions, the oldest first. They prevent VACUUM from cleaning tables. */
  longTransactions: readonly string[];
  pooler: 'none' | 'session' | 'transaction';
};

/** `standbys`: the number of replicas that this role can see. */
export type Durability = {
  fsync: boolean;
  fullPageWrites: boolean;
  synchronousCommit: string;
  synchronousStandbys: string;
  standbys: number;
};

/** `max`: for roles like this one; `used`: by all clients; `nodes`: connected processes of Latchkey. */
export type ConnectionCounts = { max: number; used: number; nodes: number };

/** The deadline of each step, in ms. */
const stepMs = 5_000;

/** `longMs`: the duration from which a transaction is long. */
export type SurveyOptions = { schema: string; now: () => number; longMs: number };

type Ask = (text: string, values?: readonly SqlValue[]) => Promise<readonly Row[]>;

/** Inspects a database and changes nothing. Rejects if it cannot be reached, or if this role may not read it. */
export async function surveyDatabase(
  address: DatabaseAddress,
  { schema, now, longMs }: SurveyOptions,
): Promise<Survey> {
  await using one = await connect(address);
  const { ask } = one;
  const [version] = await ask(`SELECT current_setting('server_version') AS version`);
  const aheadMs = await clockDifference(ask, now);
  return {
    version: String(version?.['version']),
    aheadMs,
    ...(await surveySchema(ask, { names: namesIn(schema), place: placeOf(address) })),
    isSearchIndexed: await surveySearch(ask, namesIn(schema)),
    durability: await surveyDurability(ask),
    connections: await countConnections(ask),
    longTransactions: await findLongTransactions(ask, longMs),
    pooler: await findPooler(one, address),
  };
}

type Connected = AsyncDisposable & { client: Client; ask: Ask };

async function connect(address: DatabaseAddress): Promise<Connected> {
  const client = new Client({ ...clientConfig(address), ...deadlines(stepMs) });
  // The next query reports the error.
  client.on('error', () => undefined);
  await client.connect();
  return {
    client,
    ask: async (text, values = []) => (await client.query<Row>(text, [...values])).rows,
    [Symbol.asyncDispose]: () => client.end(),
  };
}

/** A test of notifications: a unique payload, and the wait for it. */
export type NotificationTest = { payload: string; timeout: () => Promise<unknown> };

/**
 * Whether a notification that is sent to one address arrives at another, as between nodes. Rejects if an address cannot be
 * reached.
 */
export async function isNotificationReceived(
  sending: DatabaseAddress,
  listening: DatabaseAddress,
  { payload, timeout }: NotificationTest,
): Promise<boolean> {
  const channel = 'latchkey_doctor';
  await using listener = await connect(listening);
  const received = Promise.withResolvers<boolean>();
  listener.client.on('notification', (notification) => {
    if (notification.payload === payload) received.resolve(true);
  });
  await listener.ask(`LISTEN ${channel}`);
  await using sender = await connect(sending);
  await sender.ask('SELECT pg_notify($1, $2)', [channel, payload]);
  return await Promise.race([received.promise, timeout().then(() => false)]);
}

async function clockDifference(ask: Ask, now: () => number): Promise<number> {
  const before = now();
  const [row] = await ask(`SELECT ${epochMs} AS now`);
  return Math.round((before + now()) / 2 - Number(row?.['now']));
}

async function surveySchema(
  query: Ask,
  of: { names: Names; place: string },
): Promise<Pick<Survey, 'refusal' | 'schema'>> {
  const nothing = { applied: null, mayBeMade: false } as const;
  try {
    const found = await examine({ names: of.names, query });
    if (found !== null) return { refusal: null, schema: { applied: found.version } };
    const [row] = await query(
      `SELECT coalesce(has_schema_privilege(to_regnamespace($1::text), 'CREATE'),
         has_database_privilege(current_database(), 'CREATE')) AS "mayBeMade"`,
      [of.names.schema],
    );
    return { refusal: null, schema: { applied: null, mayBeMade: row?.['mayBeMade'] === true } };
  } catch (error) {
    const refusal = refusalOf(error, of) ?? error;
    if (!(refusal instanceof Error)) throw error;
    return { refusal: refusal.message, schema: nothing };
  }
}

async function surveySearch(ask: Ask, names: Names): Promise<boolean | null> {
  const [row] = await ask(isIndexed, [names.schema]);
  return row?.['isIndexed'] as boolean | null;
}

async function surveyDurability(ask: Ask): Promise<Durability> {
  const [row] = await ask(`SELECT current_setting('fsync')::boolean AS fsync,
    current_setting('full_page_writes')::boolean AS "fullPageWrites",
    current_setting('synchronous_commit') AS "synchronousCommit",
    current_setting('synchronous_standby_names') AS "synchronousStandbys",
    (SELECT count(*)::integer FROM pg_stat_replication) AS standbys`);
  return row as Durability;
}

async function countConnections(ask: Ask): Promise<ConnectionCounts> {
  const [row] = await ask(`SELECT
    least(current_setting('max_connections')::integer - current_setting('superuser_reserved_connections')::integer,
      (SELECT nullif(rolconnlimit, -1) FROM pg_roles WHERE rolname = current_user),
      (SELECT nullif(datconnlimit, -1) FROM pg_database WHERE datname = current_database())) AS max,
    (SELECT count(*)::integer FROM pg_stat_activity WHERE backend_type = 'client backend') AS used,
    (SELECT count(DISTINCT application_name)::integer FROM pg_stat_activity
       WHERE application_name LIKE 'latchkey %') AS nodes`);
  return row as ConnectionCounts;
}

async function findLongTransactions(ask: Ask, longMs: number): Promise<string[]> {
  const rows = await ask(
    `SELECT 'process ' || pid || coalesce(' (' || nullif(application_name, '') || ')', '') AS who, xact_start AS began
     FROM pg_stat_activity WHERE backend_type = 'client backend' AND xact_start < now() - make_interval(secs => $1::float8)
     UNION ALL SELECT 'the prepared transaction ' || gid, prepared FROM pg_prepared_xacts
     WHERE prepared < now() - make_interval(secs => $1::float8) ORDER BY began LIMIT 5`,
    [longMs / 1000],
  );
  return rows.map(({ who }) => String(who));
}

/**
 * A pooler reports process ids of its own. A pooler that lends connections for single transactions gives the connection
 * to the next client, so a setting of the session is lost.
 */
async function findPooler({ client, ask }: Connected, address: DatabaseAddress): Promise<Survey['pooler']> {
  const [own] = await ask('SELECT pg_backend_pid() AS pid');
  if ((client as Client & { processID?: number }).processID === own?.['pid']) return 'none';
  await ask(`SELECT set_config('latchkey.doctor', 'kept', false)`);
  await using other = await connect(address);
  await other.ask('BEGIN');
  await other.ask('SELECT 1');
  try {
    const [row] = await ask(`SELECT current_setting('latchkey.doctor', true) AS kept`);
    return row?.['kept'] === 'kept' ? 'session' : 'transaction';
  } catch (error) {
    // The pooler has only one connection, which the other client uses.
    if (isTimeout(error)) return 'transaction';
    throw error;
  } finally {
    await other.ask('ROLLBACK');
  }
}
