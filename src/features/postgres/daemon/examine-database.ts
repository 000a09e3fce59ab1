import { setTimeout as sleep } from 'node:timers/promises';
import type { Configuration } from '../../../config/configuration.ts';
import { formatReason } from '../../../config/errors.ts';
import { fail, ok, warn, type Finding } from '../../../domain/finding.ts';
import { placeOf, type DatabaseAddress } from '../store/client.ts';
import { Database } from '../store/database.ts';
import { sqlState, sqlStates, reasonOf, refusalOf } from '../store/faults.ts';
import { namesIn } from '../store/names.ts';
import {
  isNotificationReceived,
  surveyDatabase,
  type ConnectionCounts,
  type Durability,
  type Survey,
} from '../store/survey.ts';
import { addressOf, databaseSettings, directAddressOf, type PostgresSettings } from './database-settings.ts';
import { findLeftBehind } from './left-behind.ts';
import { systemRandom } from '../../../daemon/system/machine.ts';
import { counted } from '../../../domain/text.ts';
import { minuteMs } from '../../../domain/time.ts';

/** From this difference on, the doctor mentions the clocks, in ms. */
const noticeableMs = 5_000;
/** From this duration on, a transaction is long, in ms. */
const longTransactionMs = 5 * minuteMs;
/** How long the doctor waits for a notification, in ms. */
const notificationMs = 2_000;
/** A node listens on one connection besides its pool. */
const listeningConnections = 1;
const moreConnections =
  'raise max_connections, or the limit of the role or database, or lower store.postgres.pool';

/** Examines the database of an authority. Changes nothing. */
export async function examineDatabase({ stateDir, store: { postgres } }: Configuration): Promise<Finding[]> {
  if (postgres === null) return [];
  let address: DatabaseAddress;
  try {
    address = addressOf(postgres);
  } catch (error) {
    return [fail(`store.postgres.ca_file: ${formatReason(error)}`, 'correct it')];
  }
  try {
    const survey = await surveyDatabase(address, {
      schema: postgres.schema,
      now: () => Date.now(),
      longMs: longTransactionMs,
    });
    return [
      ok(`PostgreSQL ${survey.version} answers at ${placeOf(address)}`),
      ...examineTls(address),
      ...(survey.refusal === null ? await examineLeftBehind(stateDir, postgres) : []),
      ...examineSchema(survey, postgres),
      ...examineSearch(survey),
      examineClock(survey),
      examineDurability(survey.durability),
      ...examineReplication(survey.durability),
      examineConnections(survey.connections, postgres),
      ...examineTransactions(survey),
      ...examinePooler(survey, postgres),
      ...(survey.refusal === null ? await examineListening(address, postgres) : []),
    ];
  } catch (error) {
    const names = namesIn(postgres.schema);
    const refusal = refusalOf(error, { names, place: placeOf(address) });
    return refusal === null
      ? [examineUnavailable(error, placeOf(address))]
      : [fail(refusal.message, 'correct it: nothing else was checked')];
  }
}

/** If notifications are lost, credentials that one node revokes still work at the others for up to a second. */
async function examineListening(address: DatabaseAddress, postgres: PostgresSettings): Promise<Finding[]> {
  if (postgres.listenUrl === null) return [];
  const listening = directAddressOf(postgres);
  const where = `at ${placeOf(listening)} (store.postgres.listen_url)`;
  const advice = 'point it to the same database as store.postgres.url, past any pooler';
  const timeout = (): Promise<unknown> => sleep(notificationMs, undefined, { ref: false });
  try {
    return (await isNotificationReceived(address, listening, {
      payload: systemRandom.uuid(Date.now()),
      timeout,
    }))
      ? [ok(`notifications from other nodes arrive ${where}`)]
      : [fail(`notifications from other nodes do not arrive ${where}`, advice)];
  } catch (error) {
    return [fail(`notifications from other nodes do not arrive ${where}: ${reasonOf(error)}`, advice)];
  }
}

/** The database is unavailable, perhaps only now. */
function examineUnavailable(error: unknown, place: string): Finding {
  const reason = reasonOf(error);
  if (sqlState(error) === sqlStates.tooManyConnections) {
    return fail(`the database at ${place} has no free connections: ${reason}`, moreConnections);
  }
  const advice = 'check store.postgres.url, the server, and the firewall between';
  return fail(`the database at ${place} cannot be reached: ${reason}`, advice);
}

function examineTls({ tls, host }: DatabaseAddress): Finding[] {
  if (tls !== null) return [ok('the connection to it uses TLS, and its certificate is verified')];
  return host.startsWith('/') ? [] : [ok('the connection to it does not use TLS, and stays on this machine')];
}

async function examineLeftBehind(stateDir: string, postgres: PostgresSettings): Promise<Finding[]> {
  await using database = new Database({ ...databaseSettings(postgres), pool: 1 });
  const leftBehind = await findLeftBehind(stateDir, database);
  return leftBehind === null ? [] : [fail(leftBehind.what, leftBehind.advice)];
}

function examineSchema({ refusal, schema }: Survey, { schema: name }: PostgresSettings): Finding[] {
  if (refusal !== null) return [fail(refusal, 'no node can use the database until that is corrected')];
  if (schema.applied !== null) return [ok(`this version can use its schema ${name} (${schema.applied})`)];
  return schema.mayBeMade
    ? [warn(`its schema ${name} does not exist yet`, 'the first start creates it')]
    : [
        fail(
          `its schema ${name} does not exist, and the role may not create it`,
          `run CREATE SCHEMA ${name} AUTHORIZATION, followed by the name of the role`,
        ),
      ];
}

function examineSearch({ isSearchIndexed }: Survey): Finding[] {
  if (isSearchIndexed !== false) return [];
  return [
    warn(
      'a search reads every license, about a second for a million: the extension pg_trgm is not in the database',
      'run CREATE EXTENSION pg_trgm as its owner, and restart a node whose role owns the tables',
    ),
  ];
}

function examineClock({ aheadMs }: Survey): Finding {
  if (Math.abs(aheadMs) < noticeableMs) return ok('the clock agrees with that of the database');
  const seconds = Math.round(Math.abs(aheadMs) / 1000);
  return warn(
    `the clock is ${seconds} s ${aheadMs > 0 ? 'ahead of' : 'behind'} that of the database`,
    'synchronize both by NTP',
  );
}

function examineDurability({ fsync, fullPageWrites, synchronousCommit }: Durability): Finding {
  if (!fsync || !fullPageWrites) {
    const what = 'fsync or full_page_writes is off: what was answered may be lost in a power failure';
    return fail(what, 'turn both on');
  }
  if (synchronousCommit !== 'off')
    return ok(`what is committed is safely on its disk (synchronous_commit ${synchronousCommit})`);
  const advice = 'turn it on for the role: nodes do so for themselves, but a pooler may lose that';
  return warn('synchronous_commit is off for this role', advice);
}

function examineReplication({ standbys, synchronousStandbys }: Durability): Finding[] {
  if (standbys === 0) return [];
  const who = counted(standbys, 'standby follows', 'standbys follow');
  if (synchronousStandbys !== '') return [ok(`${who} it, and commits wait for ${synchronousStandbys}`)];
  const advice = 'set synchronous_standby_names if nothing that was answered may be lost';
  return [warn(`${who} it asynchronously: a failover loses what has not arrived there yet`, advice)];
}

function examineConnections({ max, used, nodes }: ConnectionCounts, { pool }: PostgresSettings): Finding {
  const each = pool + listeningConnections;
  const needed = Math.max(nodes, 1) * each;
  const who = counted(nodes, 'node is', 'nodes are');
  const how = `${who} connected, and each may take ${each} connections; ${used} of ${max} are in use`;
  return needed > max || (nodes === 0 && used + each > max) ? warn(how, moreConnections) : ok(how);
}

function examineTransactions({ longTransactions }: Survey): Finding[] {
  return longTransactions.map((who) =>
    warn(
      `${who} has a transaction open for more than 5 minutes`,
      'end it: tables cannot be vacuumed until then',
    ),
  );
}

function examinePooler({ pooler }: Survey, { listenUrl }: PostgresSettings): Finding[] {
  switch (pooler) {
    case 'none':
      return [];
    case 'session':
      return [ok('a pooler is in between, in session mode')];
    case 'transaction':
      // With listen_url, nodes use no session state.
      return listenUrl === null
        ? [
            fail(
              'a pooler is in between, in transaction mode: notifications from other nodes are lost, and prepared statements may be',
              'set store.postgres.listen_url to the database itself',
            ),
          ]
        : [ok('a pooler is in between, in transaction mode')];
    default:
      return pooler satisfies never;
  }
}
